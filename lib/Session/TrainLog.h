//===- TrainLog.h - What is told of steps -----------------------*- C++ -*-===//
#ifndef AX_LIB_SESSION_TRAINLOG_H
#define AX_LIB_SESSION_TRAINLOG_H

#include "Evaluate.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace ax {

/// Lines of JSON, one a step.
class TrainLog {
public:
  /// Nothing is written without a path. A run that goes on after step `resumed`
  /// adds to what is there, but for what is told of later steps: it does these
  /// again.
  static llvm::Expected<TrainLog> create(const std::string &path,
                                         std::optional<int64_t> resumed);
  llvm::Error writeStep(int64_t step, const rt::Program &program,
                        const std::vector<HostTensor> &outputs, double seconds,
                        bool isSkipped);
  llvm::Error writeMeasured(int64_t step, const Evaluator &evaluator,
                            const Measured &measured);

private:
  llvm::Error finishLine();
  std::string path;
  std::unique_ptr<llvm::raw_fd_ostream> os;
};

/// A line on the terminal, which the next one replaces; a line each elsewhere.
class Progress {
public:
  Progress(llvm::raw_ostream &os, bool quiet, const rt::Program &program,
           int64_t steps);
  ~Progress() { endLine(); }
  void showStep(int64_t step, double loss, double seconds, int64_t skipped);
  /// A line that stays.
  void show(const llvm::Twine &text);

private:
  void endLine();
  llvm::raw_ostream &os;
  bool quiet, replaces, isOpen = false;
  int64_t steps, batch = 0, flops = 0;
};

} // namespace ax

#endif // AX_LIB_SESSION_TRAINLOG_H
