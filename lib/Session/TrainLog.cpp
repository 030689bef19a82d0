//===- TrainLog.cpp - What is told of steps -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TrainLog.h"

#include "Flush.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"
#include "ax/Support/MappedFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <fstream>

using namespace ax;

static bool isTable(llvm::StringRef path) { return path.ends_with(".csv"); }

/// Leaves out lines of steps after `last`, and one that is cut off.
static llvm::Error cutLog(const std::string &path, int64_t last) {
  if (!llvm::sys::fs::is_regular_file(path))
    return llvm::Error::success();
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::StringRef text = llvm::toStringRef((*file)->bytes()), rest = text;
  std::string kept;
  while (rest.contains('\n')) {
    llvm::StringRef line = rest.take_front(rest.find('\n') + 1);
    rest = rest.drop_front(line.size());
    constexpr int deepest = 4;
    if (int64_t step; isTable(path)) {
      if (!line.split(',').first.getAsInteger(10, step) && step > last)
        continue;
    } else if (!nestsDeeper(line, deepest)) {
      auto entry = llvm::json::parse(line);
      const llvm::json::Object *object = entry ? entry->getAsObject() : nullptr;
      if (!entry)
        llvm::consumeError(entry.takeError());
      if (object && object->getInteger("step").value_or(0) > last)
        continue;
    }
    kept += line;
  }
  return kept == text ? llvm::Error::success()
                      : writeFileAtomically(path, llvm::StringRef(kept));
}

static bool isScalar(const rt::Port &port) {
  return port.shape.empty() && isFloat(port.dtype);
}

static std::string nameOf(Metric metric) {
  return ("eval_" + toString(metric)).str();
}

llvm::Expected<TrainLog> TrainLog::create(const std::string &path,
                                          const std::string &events,
                                          std::optional<int64_t> resumed,
                                          const rt::Program &program,
                                          llvm::ArrayRef<Metric> metrics) {
  TrainLog log;
  log.path = path;
  if (!path.empty())
    if (llvm::Error error = log.open(resumed, program, metrics))
      return error;
  if (events.empty())
    return log;
  auto file = EventFile::create(events, resumed);
  if (!file)
    return file.takeError();
  log.events.emplace(std::move(*file));
  return log;
}

llvm::Error TrainLog::open(std::optional<int64_t> resumed,
                           const rt::Program &program,
                           llvm::ArrayRef<Metric> metrics) {
  uint64_t size = 0;
  bool isThere = llvm::sys::fs::is_regular_file(path) &&
                 !llvm::sys::fs::file_size(path, size) && size > 0;
  if (isThere && !resumed)
    return makeError(ExitCode::Usage,
                     "--log=" + path +
                         " is there already, and this run goes on with none "
                         "(--resume): remove it, or give another name");
  bool hasHeader = isThere;
  if (isTable(path)) {
    columns = {"step", "epoch"};
    for (const rt::Port &port : program.outputs)
      if (isScalar(port))
        columns.push_back(port.name);
    for (const char *name :
         {"skipped", "seconds", "samples_per_second", "peak_bytes"})
      columns.push_back(name);
    for (Metric metric : metrics)
      columns.push_back(nameOf(metric));
    if (!metrics.empty())
      columns.push_back("eval_samples");
    std::string first, header = llvm::join(columns, ",");
    std::ifstream before(path);
    if (hasHeader && std::getline(before, first) && first != header)
      return makeError(ExitCode::Usage, "'" + path + "' is no table of '" +
                                            header +
                                            "', to which this run would add");
  }
  if (resumed)
    if (llvm::Error error = cutLog(path, *resumed))
      return error;
  std::error_code fault;
  auto flags = llvm::sys::fs::OF_Text;
  if (resumed)
    flags |= llvm::sys::fs::OF_Append;
  os = std::make_unique<llvm::raw_fd_ostream>(path, fault, flags);
  if (fault)
    return makeError(ExitCode::InputOutput,
                     "cannot write '" + path + "': " + fault.message());
  if (!hasHeader && !columns.empty())
    *os << llvm::join(columns, ",") << '\n';
  return llvm::Error::success();
}

/// JSON has no infinity.
static llvm::json::Value number(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

llvm::Error TrainLog::write(llvm::ArrayRef<Entry> entries) {
  if (!os)
    return llvm::Error::success();
  if (columns.empty()) {
    llvm::json::OStream json(*os);
    json.object([&] {
      for (const auto &[name, value] : entries)
        json.attribute(name, value);
    });
  }
  for (const std::string &column : columns) {
    const auto *entry = llvm::find_if(
        entries, [&](const Entry &entry) { return entry.first == column; });
    if (&column != columns.data())
      *os << ',';
    if (entry == entries.end())
      continue;
    if (std::optional<llvm::StringRef> text = entry->second.getAsString())
      *os << *text;
    else
      *os << entry->second;
  }
  *os << '\n';
  return flush(*os, path);
}

/// The most this process had in memory. getrusage's figure would begin with
/// that of the program that started it.
static int64_t peakBytes() {
  int64_t kibibytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (llvm::StringRef rest = line; rest.consume_front("VmHWM:"))
      rest.ltrim().consumeInteger(10, kibibytes);
  return kibibytes * 1024;
}

llvm::Error TrainLog::writeStep(const StepFacts &facts,
                                const rt::Program &program,
                                const std::vector<HostTensor> &outputs) {
  if (!os && !events)
    return llvm::Error::success();
  llvm::SmallVector<Entry> entries{{"step", facts.step},
                                   {"epoch", facts.epoch}};
  llvm::SmallVector<std::pair<std::string, double>> scalars;
  for (auto [port, value] : llvm::zip_equal(program.outputs, outputs))
    if (isScalar(port)) {
      entries.emplace_back(port.name, number(value.getDouble(0)));
      scalars.emplace_back(port.name, value.getDouble(0));
    }
  scalars.emplace_back("samples_per_second", facts.samplesPerSecond);
  if (events)
    if (llvm::Error error = events->write(facts.step, scalars))
      return error;
  if (facts.isSkipped)
    entries.emplace_back("skipped", true);
  entries.emplace_back("seconds", facts.seconds);
  entries.emplace_back("samples_per_second", facts.samplesPerSecond);
  entries.emplace_back("peak_bytes", peakBytes());
  return write(entries);
}

llvm::Error TrainLog::writeMeasured(int64_t step, const Evaluator &evaluator,
                                    const Measured &measured) {
  llvm::SmallVector<Entry> entries{{"step", step}};
  llvm::SmallVector<std::pair<std::string, double>> scalars;
  for (Metric metric : evaluator.getMetrics()) {
    entries.emplace_back(nameOf(metric), number(measured.get(metric)));
    scalars.emplace_back(nameOf(metric), measured.get(metric));
  }
  if (events)
    if (llvm::Error error = events->write(step, scalars))
      return error;
  entries.emplace_back("eval_samples", measured.samples);
  return write(entries);
}

void Progress::showStep(const StepFacts &facts, int64_t steps, double loss,
                        int64_t skipped) {
  if (quiet)
    return;
  std::string text;
  llvm::raw_string_ostream line(text);
  if (replaces)
    line << "\r\033[K";
  line << "axrun: step " << facts.step << " of " << steps << ": loss "
       << llvm::format("%.6f", loss)
       << llvm::format(", %.1f ms", 1e3 * facts.seconds)
       << llvm::format(facts.samplesPerSecond < 100 ? ", %.3g samples/s"
                                                    : ", %.0f samples/s",
                       facts.samplesPerSecond)
       << llvm::format(", %.2f GFLOP/s",
                       static_cast<double>(flops) / facts.seconds / 1e9)
       << llvm::format(", %.0f MB", static_cast<double>(peakBytes()) / 1e6);
  if (skipped)
    line << ", " << skipped << " skipped";
  isOpen = replaces;
  if (!isOpen)
    line << '\n';
  // At once: other processes write there, too.
  os << text;
  os.flush();
}

void Progress::endLine() {
  if (isOpen)
    os << '\n';
  isOpen = false;
}

void Progress::show(const llvm::Twine &text) {
  if (!quiet)
    tell(text);
}

void Progress::tell(const llvm::Twine &text) {
  endLine();
  os << ("axrun: " + text + "\n").str();
}
