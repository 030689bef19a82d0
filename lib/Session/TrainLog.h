//===- TrainLog.h - What is told of steps -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_TRAINLOG_H
#define AX_LIB_SESSION_TRAINLOG_H

#include "Evaluate.h"
#include "EventFile.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ax {

/// What is told of a step beside the program's outputs.
struct StepFacts {
  int64_t step, epoch;
  double seconds, samplesPerSecond;
  bool isSkipped;
};

/// Lines of JSON, one a step, or of a table when the file's name ends in .csv;
/// and events for TensorBoard in a folder.
class TrainLog {
public:
  /// Opens a log, which writes nothing without a path, or a folder. A run that
  /// goes on after step `resumed` adds to what is there, but for what is told
  /// of later steps: it does these again. `metrics`: those that writeMeasured
  /// will be told of.
  static llvm::Expected<TrainLog> create(const std::string &path,
                                         const std::string &events,
                                         std::optional<int64_t> resumed,
                                         const rt::Program &program,
                                         llvm::ArrayRef<Metric> metrics);
  llvm::Error writeStep(const StepFacts &facts, const rt::Program &program,
                        const std::vector<HostTensor> &outputs);
  llvm::Error writeMeasured(int64_t step, const Evaluator &evaluator,
                            const Measured &measured);

private:
  using Entry = std::pair<std::string, llvm::json::Value>;
  llvm::Error open(std::optional<int64_t> resumed, const rt::Program &program,
                   llvm::ArrayRef<Metric> metrics);
  llvm::Error write(llvm::ArrayRef<Entry> entries);
  std::string path;
  /// The columns, where the log is a table.
  std::vector<std::string> columns;
  std::unique_ptr<llvm::raw_fd_ostream> os;
  std::optional<EventFile> events;
};

/// A line on the terminal, which the next one replaces; a line each elsewhere.
class Progress {
public:
  Progress(llvm::raw_ostream &os, bool quiet, const rt::Program &program)
      : os(os), quiet(quiet), replaces(os.is_displayed()),
        flops(countFlops(program)) {}
  ~Progress() { endLine(); }
  void showStep(const StepFacts &facts, int64_t steps, double loss,
                int64_t skipped);
  /// A line that stays.
  void show(const llvm::Twine &text);
  /// What was asked for: also when there is to be quiet.
  void tell(const llvm::Twine &text);

private:
  void endLine();
  llvm::raw_ostream &os;
  bool quiet, replaces, isOpen = false;
  int64_t flops;
};

} // namespace ax

#endif // AX_LIB_SESSION_TRAINLOG_H
