//===- TrainLog.cpp - What is told of steps -------------------------------===//
#include "TrainLog.h"

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
    if (!nestsDeeper(line, deepest)) {
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

llvm::Expected<TrainLog> TrainLog::create(const std::string &path,
                                          std::optional<int64_t> resumed) {
  TrainLog log;
  log.path = path;
  if (path.empty())
    return log;
  if (resumed)
    if (llvm::Error error = cutLog(path, *resumed))
      return error;
  std::error_code fault;
  auto flags = llvm::sys::fs::OF_Text;
  if (resumed)
    flags |= llvm::sys::fs::OF_Append;
  log.os = std::make_unique<llvm::raw_fd_ostream>(path, fault, flags);
  if (fault)
    return makeError(ExitCode::InputOutput,
                     "cannot write '" + path + "': " + fault.message());
  return log;
}

/// JSON has no infinity.
static llvm::json::Value number(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

llvm::Error TrainLog::finishLine() {
  *os << '\n';
  os->flush();
  if (!os->has_error())
    return llvm::Error::success();
  std::string fault = os->error().message();
  os->clear_error();
  return makeError(ExitCode::InputOutput,
                   "cannot write '" + path + "': " + fault);
}

llvm::Error TrainLog::writeStep(int64_t step, const rt::Program &program,
                                const std::vector<HostTensor> &outputs,
                                double seconds, bool isSkipped) {
  if (!os)
    return llvm::Error::success();
  llvm::json::OStream json(*os);
  json.object([&] {
    json.attribute("step", step);
    for (auto [port, value] : llvm::zip_equal(program.outputs, outputs))
      if (port.shape.empty() && isFloat(port.dtype))
        json.attribute(port.name, number(value.getDouble(0)));
    if (isSkipped)
      json.attribute("skipped", true);
    json.attribute("seconds", seconds);
  });
  return finishLine();
}

llvm::Error TrainLog::writeMeasured(int64_t step, const Evaluator &evaluator,
                                    const Measured &measured) {
  if (!os)
    return llvm::Error::success();
  llvm::json::OStream json(*os);
  json.object([&] {
    json.attribute("step", step);
    for (Metric metric : evaluator.getMetrics())
      json.attribute(("eval_" + toString(metric)).str(),
                     number(measured.get(metric)));
    json.attribute("eval_samples", measured.samples);
  });
  return finishLine();
}

Progress::Progress(llvm::raw_ostream &os, bool quiet,
                   const rt::Program &program, int64_t steps)
    : os(os), quiet(quiet), replaces(os.is_displayed()), steps(steps),
      flops(countFlops(program)) {
  if (!program.inputs.empty())
    batch = program.inputs.front().shape.front();
}

/// The most this process had in memory. getrusage's figure would begin with
/// that of the program that started it.
static double peakMegabytes() {
  int64_t kibibytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (llvm::StringRef rest = line; rest.consume_front("VmHWM:"))
      rest.ltrim().consumeInteger(10, kibibytes);
  return static_cast<double>(kibibytes) * 1024 / 1e6;
}

void Progress::showStep(int64_t step, double loss, double seconds,
                        int64_t skipped) {
  if (quiet)
    return;
  if (replaces)
    os << "\r\033[K";
  os << "axrun: step " << step << " of " << steps << ": loss "
     << llvm::format("%.6f", loss) << llvm::format(", %.1f ms", 1e3 * seconds)
     << llvm::format(", %.0f samples/s", static_cast<double>(batch) / seconds)
     << llvm::format(", %.2f GFLOP/s",
                     static_cast<double>(flops) / seconds / 1e9)
     << llvm::format(", %.0f MB", peakMegabytes());
  if (skipped)
    os << ", " << skipped << " skipped";
  isOpen = true;
  if (!replaces)
    endLine();
  os.flush();
}

void Progress::endLine() {
  if (isOpen)
    os << '\n';
  isOpen = false;
}

void Progress::show(const llvm::Twine &text) {
  if (quiet)
    return;
  endLine();
  os << "axrun: " << text << '\n';
}
