//===- Profile.cpp - What takes the time ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Profile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <algorithm>

using namespace ax;

namespace {

constexpr size_t whatWidth = 40, nodesWidth = 60;

class ProfileTable {
public:
  ProfileTable(const rt::Executor &executor, const Measurement &measurement,
               int64_t lines, llvm::raw_ostream &os)
      : program(executor.getProgram()), times(executor.getCommandTimes()),
        measurement(measurement),
        spent(sumRankTime(times, program, measurement)), os(os),
        lines(lines ? static_cast<size_t>(lines) : times.size()),
        runs(static_cast<double>(measurement.times.size())),
        ranks(static_cast<double>(program.mesh.numRanks())),
        isBeside(llvm::any_of(times, [](const rt::CommandTime &command) {
          return command.held != command.total;
        })) {}

  void print();

private:
  void printCommands(bool exchanges);
  void printRow(const rt::CommandTime &command);
  void printKinds();
  void printDeviceRates();
  /// How long it takes the device at least to do so much.
  double leastSeconds(const rt::CommandTime &command) const;
  /// Milliseconds and percent of something that all ranks together did for so
  /// long, and those of them that do it.
  void printTime(double seconds, double ofRanks);
  void printSum(double seconds, llvm::StringRef what);
  void printRate(double amount, double seconds);
  void printPeak(double least, double seconds);

  const rt::Program &program;
  std::vector<rt::CommandTime> times;
  const Measurement &measurement;
  RankTime spent;
  llvm::raw_ostream &os;
  size_t lines;
  double runs, ranks;
  /// Exchanges go on beside what is computed.
  bool isBeside;
};

} // namespace

static double secondsOf(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The end of a name tells more than its beginning.
static std::string fitted(llvm::StringRef name, size_t width) {
  return name.size() <= width ? name.str()
                              : "..." + name.take_back(width - 3).str();
}

std::string ax::shortenNodes(const std::vector<std::string> &nodes,
                             size_t width) {
  if (nodes.empty())
    return "";
  // Room for what is said of the others.
  constexpr size_t reserve = 24;
  std::string text =
      fitted(nodes[0], nodes.size() > 1 ? width - reserve : width);
  for (size_t i = 1; i < nodes.size(); ++i) {
    llvm::StringRef last = llvm::StringRef(nodes[i]).rsplit('/').second;
    std::string next = ", " + (last.empty() ? nodes[i] : last.str());
    std::string more = " +" + std::to_string(nodes.size() - i);
    std::string after =
        i + 1 < nodes.size() ? " +" + std::to_string(nodes.size() - i - 1) : "";
    if (text.size() + next.size() + after.size() > width)
      return text + more;
    text += next;
  }
  return text;
}

void ProfileTable::printTime(double seconds, double ofRanks) {
  os << llvm::format("%10.3f %6.1f", 1e3 * seconds / (runs * ofRanks),
                     spent.total > 0 ? 100 * seconds / spent.total : 0);
}

void ProfileTable::printRate(double amount, double seconds) {
  if (amount > 0 && seconds > 0)
    os << llvm::format(" %8.2f", 1e-9 * amount / seconds);
  else
    os << "        -";
}

void ProfileTable::printPeak(double least, double seconds) {
  if (least > 0 && seconds > 0)
    os << llvm::format(" %6.1f", 100 * least / seconds);
  else
    os << "      -";
}

double ProfileTable::leastSeconds(const rt::CommandTime &command) const {
  if (!measurement.rates)
    return 0;
  return static_cast<double>(command.executions) *
         measurement.rates->leastSeconds(command.flops, command.factors,
                                         command.bytes);
}

void ProfileTable::printRow(const rt::CommandTime &command) {
  double total = secondsOf(command.total),
         ofRanks = static_cast<double>(command.ranks),
         executions = static_cast<double>(command.executions);
  printTime(total, ofRanks);
  os << llvm::format(" %6.6g", executions / (runs * ofRanks));
  auto printPart = [&](std::chrono::nanoseconds part) {
    os << llvm::format(" %8.3f", 1e3 * secondsOf(part) / (runs * ofRanks));
  };
  if (command.isExchange) {
    printPart(command.waiting);
    if (isBeside)
      printPart(command.held);
  } else
    printRate(static_cast<double>(command.flops) * executions, total);
  printRate(static_cast<double>(command.bytes) * executions, total);
  if (!command.isExchange)
    printPeak(leastSeconds(command), total);
  if (program.stages.size() > 1)
    os << llvm::format(" %5d", command.stage);
  std::string what = command.what;
  if (what.size() > whatWidth)
    what = what.substr(0, whatWidth - 3) + "...";
  what.resize(whatWidth, ' ');
  os << "  " << what << "  "
     << (command.nodes.empty() ? fitted(command.name, nodesWidth)
                               : shortenNodes(command.nodes, nodesWidth))
     << '\n';
}

void ProfileTable::printCommands(bool exchanges) {
  std::vector<const rt::CommandTime *> rows;
  for (const rt::CommandTime &command : times)
    // Elsewhere waits have no time of their own.
    if (command.isExchange == exchanges && command.executions > 0 &&
        (!isBeside || command.total.count() || command.held.count()))
      rows.push_back(&command);
  if (rows.empty())
    return;
  std::stable_sort(rows.begin(), rows.end(), [](const auto *a, const auto *b) {
    return a->total > b->total;
  });
  os << "        ms      %  calls "
     << (!exchanges ? " GFLOP/s     GB/s  %peak"
         : isBeside ? " waiting     held     GB/s"
                    : " waiting     GB/s")
     << (program.stages.size() > 1 ? " stage" : "") << "  "
     << (exchanges ? "exchange" : "computation")
     << std::string(whatWidth - (exchanges ? 8 : 11), ' ') << "  nodes\n";
  std::chrono::nanoseconds others{0};
  for (size_t i = 0; i < rows.size(); ++i)
    if (i < lines)
      printRow(*rows[i]);
    else
      others += rows[i]->total;
  if (rows.size() > lines)
    printSum(secondsOf(others),
             std::to_string(rows.size() - lines) + " others");
}

/// Sums of commands of one kind.
void ProfileTable::printKinds() {
  struct Sum {
    std::string kind;
    double seconds = 0, executions = 0, flops = 0, bytes = 0, least = 0;
  };
  std::vector<Sum> sums;
  for (const rt::CommandTime &command : times) {
    if (command.executions == 0)
      continue;
    auto sum = llvm::find_if(
        sums, [&](const Sum &other) { return other.kind == command.kind; });
    if (sum == sums.end())
      sum = sums.insert(sum, Sum{command.kind});
    auto executions = static_cast<double>(command.executions);
    sum->seconds += secondsOf(command.total);
    sum->executions += executions;
    sum->flops += executions * static_cast<double>(command.flops);
    sum->bytes += executions * static_cast<double>(command.bytes);
    if (!command.isExchange)
      sum->least += leastSeconds(command);
  }
  llvm::stable_sort(
      sums, [](const Sum &a, const Sum &b) { return a.seconds > b.seconds; });
  os << "        ms      %  calls  GFLOP/s     GB/s  %peak  kind\n";
  for (const Sum &sum : sums) {
    printTime(sum.seconds, ranks);
    os << llvm::format(" %6.6g", sum.executions / (runs * ranks));
    printRate(sum.flops, sum.seconds);
    printRate(sum.bytes, sum.seconds);
    printPeak(sum.least, sum.seconds);
    os << "  " << sum.kind << '\n';
  }
}

/// What stands under %peak is held against.
void ProfileTable::printDeviceRates() {
  if (!measurement.rates)
    return;
  os << "%peak: of what the device reaches with nothing else to do:";
  for (auto [type, rate] : measurement.rates->flopsPerSecond)
    os << llvm::format(" %.2f GFLOP/s in products of %s,", 1e-9 * rate,
                       toString(type));
  os << llvm::format(" %.2f GB/s in copies\n",
                     1e-9 * measurement.rates->bytesPerSecond);
}

void ProfileTable::printSum(double seconds, llvm::StringRef what) {
  printTime(seconds, ranks);
  os << "  " << what << '\n';
}

void ProfileTable::print() {
  auto count = [](size_t number, llvm::StringRef what) {
    return std::to_string(number) + " " + what.str() + (number == 1 ? "" : "s");
  };
  os << count(measurement.times.size(), "run") << " on "
     << count(static_cast<size_t>(program.mesh.numRanks()), "rank")
     << "; ms: of a run, mean of the ranks that do it; %: of all ranks' time\n";
  printDeviceRates();
  printCommands(/*exchanges=*/false);
  printCommands(/*exchanges=*/true);
  printKinds();
  printSum(spent.computing, "computing");
  printSum(spent.exchanging, "exchanging");
  printSum(spent.waiting, "waiting for other ranks");
  printSum(spent.between, "between commands");
  printSum(spent.total, "in all");
}

void ax::printProfile(const rt::Executor &executor,
                      const Measurement &measurement, int64_t lines,
                      llvm::raw_ostream &os) {
  ProfileTable(executor, measurement, lines, os).print();
}
