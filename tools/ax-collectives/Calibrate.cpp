//===- Calibrate.cpp - What ranks have of this machine --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks have a processor's memory, a card or a network in common, so that one
// alone would get more than it does in a run. All of them measure the same at
// the same time, and the slowest rank is the one that the others wait for: what
// it gets counts.
//
//===----------------------------------------------------------------------===//
#include "Calibrate.h"

#include "MeasureLink.h"
#include "Team.h"

#include "ax/Runtime/DeviceRates.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <cstdio>

using namespace ax;

namespace {

/// A machine, and of what is not a matter of course where it is from.
struct Calibration {
  MachineRates rates;
  bool hasFlops = false, hasNarrowFlops = false, hasBytes = false,
       hasLatency = false;
  /// Nothing where there are no two ranks that reach each other that way.
  std::optional<cost::LinkFit> link, hostLink;
};

/// Measured so often: what disturbs for a while does not disturb all of them.
constexpr int numPasses = 3;

/// The best of what was measured; 0, or nothing, where none was.
struct Best {
  double flops = 0, narrowFlops = 0, bytes = 0;
  std::optional<double> latency;

  void add(const rt::DeviceRates &rates, std::optional<double> commandLatency) {
    auto take = [&](DType type, double &best) {
      auto found = rates.flopsPerSecond.find(type);
      if (found != rates.flopsPerSecond.end())
        best = std::max(best, found->second);
    };
    take(DType::F32, flops);
    take(DType::BF16, narrowFlops);
    bytes = std::max(bytes, rates.bytesPerSecond);
    if (commandLatency)
      latency = std::min(*commandLatency, latency.value_or(*commandLatency));
  }
};

class Calibrator {
public:
  Calibrator(rt::Communicator &comm, rt::Device &device, Team &team,
             const CalibrateOptions &options, const Reductions &reductions)
      : comm(comm), device(device), team(team), options(options),
        reductions(reductions) {}

  /// Whether each host has as many ranks, and those of one are neighbours.
  llvm::Expected<bool> isHostByHost();
  llvm::Expected<Calibration> measure();

private:
  int32_t numHosts() const { return comm.getSize() / options.ranksOnHost; }
  /// How many ranks have this one's memory.
  llvm::Expected<int32_t> countSharers();
  llvm::Error measureDevice();
  llvm::Error measureMemory(int32_t numSharers);
  llvm::Error measureLinks();
  /// Of the group of `size` ranks from `first` on, so far apart.
  llvm::Expected<std::optional<cost::LinkFit>>
  measureGroup(int32_t first, int32_t size, int32_t stride);
  llvm::Error findName();

  rt::Communicator &comm;
  rt::Device &device;
  Team &team;
  const CalibrateOptions &options;
  const Reductions &reductions;
  Calibration found;
};

} // namespace

llvm::Expected<bool> Calibrator::isHostByHost() {
  auto sizes = team.gather(options.ranksOnHost);
  if (!sizes)
    return sizes.takeError();
  auto indices = team.gather(options.indexOnHost);
  if (!indices)
    return indices.takeError();
  // Of a host the ranks' numbers ascend, so that these are all it takes.
  for (size_t rank = 0; rank < sizes->size(); ++rank) {
    auto size = static_cast<size_t>(sizes->front());
    if ((*sizes)[rank] != sizes->front() ||
        (*indices)[rank] != static_cast<double>(rank % size))
      return false;
  }
  return true;
}

llvm::Expected<int32_t> Calibrator::countSharers() {
  auto cards = team.gather(device.getCard());
  if (!cards)
    return cards.takeError();
  auto first = cards->begin() + (comm.getRank() - options.indexOnHost);
  return static_cast<int32_t>(
      std::count(first, first + options.ranksOnHost, device.getCard()));
}

llvm::Error Calibrator::measureMemory(int32_t numSharers) {
  auto size = device.getMemorySize();
  if (!size)
    return size.takeError();
  auto least = team.findLargest(-static_cast<double>(size->total / numSharers));
  if (!least)
    return least.takeError();
  found.rates.memoryBytes = static_cast<int64_t>(-*least);
  return llvm::Error::success();
}

llvm::Error Calibrator::measureDevice() {
  auto numSharers = countSharers();
  if (!numSharers)
    return numSharers.takeError();
  rt::RateTeam together{*numSharers,
                        [&](double own) { return team.findLargest(own); }};
  Best best;
  for (int pass = 0; pass < numPasses; ++pass) {
    auto rates = rt::measureRates(device, {DType::F32, DType::BF16}, together);
    if (!rates)
      return rates.takeError();
    auto latency = rt::measureCommandLatency(device, together);
    if (!latency)
      return latency.takeError();
    best.add(*rates, *latency);
  }
  MachineRates &machine = found.rates;
  if ((found.hasFlops = best.flops > 0))
    machine.flopsPerSecond = best.flops;
  // Who has no products of few bits widens their factors.
  found.hasNarrowFlops = best.narrowFlops > 0;
  machine.narrowFlopsPerSecond =
      found.hasNarrowFlops ? best.narrowFlops : machine.flopsPerSecond;
  if ((found.hasBytes = best.bytes > 0))
    machine.bytesPerSecond = best.bytes;
  if ((found.hasLatency = best.latency.has_value()))
    machine.commandLatency = *best.latency;
  return measureMemory(*numSharers);
}

llvm::Expected<std::optional<cost::LinkFit>>
Calibrator::measureGroup(int32_t first, int32_t size, int32_t stride) {
  if (size == 1)
    return std::nullopt;
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < size; ++i)
    ranks.push_back(first + i * stride);
  auto group = comm.createGroup(ranks);
  if (!group)
    return group.takeError();
  auto fit = measureLink(comm, device, team, *group, reductions);
  if (!fit)
    return fit.takeError();
  return *fit;
}

llvm::Error Calibrator::measureLinks() {
  int32_t index = options.indexOnHost;
  auto within =
      measureGroup(comm.getRank() - index, options.ranksOnHost, /*stride=*/1);
  if (!within)
    return within.takeError();
  // Each rank of a host with those of the same number on the others: together
  // they share what leads out of it.
  auto between = measureGroup(index, numHosts(), options.ranksOnHost);
  if (!between)
    return between.takeError();
  found.link = *within;
  found.hostLink = *between;
  MachineRates &machine = found.rates;
  if (found.link)
    machine.link = machine.hostLink = found.link->link;
  if (!found.hostLink)
    return llvm::Error::success();
  machine.ranksPerHost = options.ranksOnHost;
  Link &link = machine.hostLink;
  link = found.hostLink->link;
  if (!found.link) {
    machine.link = link;
    return llvm::Error::success();
  }
  // Plans are priced with a way between hosts that is not the faster one.
  link.latency = std::max(link.latency, machine.link.latency);
  link.bytesPerSecond =
      std::min(link.bytesPerSecond, machine.link.bytesPerSecond);
  return llvm::Error::success();
}

llvm::Error Calibrator::findName() {
  auto model = device.findModel();
  if (!model)
    return model.takeError();
  auto counted = [](int64_t number, const char *what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string &name = found.rates.name;
  name = *model + ", " + counted(comm.getSize(), "rank");
  if (device.getNumThreads() > 1)
    name += " of " + counted(device.getNumThreads(), "thread");
  if (numHosts() > 1)
    name += " on " + counted(numHosts(), "host");
  return llvm::Error::success();
}

llvm::Expected<Calibration> Calibrator::measure() {
  if (std::optional<MachineRates> gpu = MachineRates::ofGpu(options.target))
    found.rates = *gpu;
  if (llvm::Error error = findName())
    return error;
  if (llvm::Error error = measureDevice())
    return error;
  if (llvm::Error error = measureLinks())
    return error;
  return found;
}

static void printLine(const char *what, const std::string &text,
                      const std::string &remark) {
  std::printf("  %-20s %s%s%s\n", what, text.c_str(),
              remark.empty() ? "" : "; ", remark.c_str());
}

static void printLink(const char *what, const Link &link,
                      const std::optional<cost::LinkFit> &fit) {
  // Of a machine that does nothing else it is 1.5 to 2.5.
  constexpr double largest = 3;
  std::string remark = "not measured: there is one rank";
  if (fit)
    remark = llvm::formatv(
        "times differ from these by a factor of {0:F1}{1}", fit->error,
        fit->error > largest ? ": was something else running?" : "");
  printLine(what,
            llvm::formatv("{0:F2} us and {1}", link.latency * 1e6,
                          countText(link.bytesPerSecond, "B/s")),
            remark);
}

static void print(const Calibration &found) {
  const MachineRates &machine = found.rates;
  auto unless = [](bool isMeasured) {
    return isMeasured ? "" : "not measured: too little memory is free";
  };
  std::printf("%s; each has, while all work,\n", machine.name.c_str());
  printLine("products of f32", countText(machine.flopsPerSecond, "FLOP/s"),
            unless(found.hasFlops));
  printLine("products of bf16",
            countText(machine.narrowFlopsPerSecond, "FLOP/s"),
            found.hasNarrowFlops ? "" : "not measured: as those of f32");
  printLine("copies",
            countText(machine.bytesPerSecond, "B/s") + " read and written",
            unless(found.hasBytes));
  printLine("beginning a command",
            llvm::formatv("{0:F2} us", machine.commandLatency * 1e6),
            unless(found.hasLatency));
  printLine("memory", bytesText(machine.memoryBytes), "");
  if (!found.hostLink) {
    printLink("exchanges", machine.link, found.link);
    return;
  }
  if (found.link)
    printLink("exchanges in a host", machine.link, found.link);
  printLink("between hosts", machine.hostLink, found.hostLink);
}

llvm::Error ax::calibrate(rt::Communicator &comm, rt::Device &device,
                          const CalibrateOptions &options,
                          const Reductions &reductions) {
  auto team = Team::create(comm, device);
  if (!team)
    return team.takeError();
  Calibrator calibrator(comm, device, **team, options, reductions);
  bool isFirst = comm.getRank() == 0;
  auto isHostByHost = calibrator.isHostByHost();
  if (!isHostByHost)
    return isHostByHost.takeError();
  if (!*isHostByHost) {
    if (!isFirst)
      return llvm::Error::success();
    return makeError(ExitCode::Usage,
                     "--calibrate needs as many ranks on each host as on the "
                     "others, numbered host by host: start them with mpirun "
                     "--map-by ppr:N:node");
  }
  auto found = calibrator.measure();
  if (!found)
    return found.takeError();
  if (!isFirst)
    return llvm::Error::success();
  if (llvm::Error error =
          writeFileAtomically(options.file, found->rates.toYAML()))
    return error;
  print(*found);
  std::printf("%s has it, for axopt --machine\n", options.file.c_str());
  return llvm::Error::success();
}
