//===- Session.h - A plan, ready to run -------------------------*- C++ -*-===//
//
// Plan file → checked → commands and kernels → ranks as threads of this
// process. What axrun and the C API stand on.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SESSION_SESSION_H
#define AX_SESSION_SESSION_H

#include "ax/Runtime/Program.h"

#include <memory>
#include <string>
#include <vector>

namespace ax {

struct SessionOptions {
  /// Program of the plan to run; empty: the first.
  std::string program;
  /// Other weights of the same names and shapes: a safetensors, npz or ONNX
  /// external-data file; empty: those that the plan names.
  std::string weights;
  /// Folder that the plan's weight files are relative to; empty: as the plan
  /// says.
  std::string modelDir;
  /// Folder of compiled kernels; empty: `$AXOPT_CACHE` or `~/.cache/axopt`.
  std::string cacheDir;
  int32_t threadsPerRank = 1;
  /// A rank that makes no progress for so long ends the run; 0: never.
  double timeoutSeconds = 60;
  bool trace = false;
  /// Every operation is a kernel of its own; for finding faults.
  bool separateKernels = false;
};

class Session {
public:
  static llvm::Expected<std::unique_ptr<Session>>
  load(const std::string &planPath, const SessionOptions &options = {});
  ~Session();

  const std::vector<rt::Port> &getInputs() const;
  const std::vector<rt::Port> &getOutputs() const;
  /// Commands of all stages.
  const rt::Program &getProgram() const;

  /// One step: global inputs in the order of getInputs(), with their types and
  /// shapes; global outputs.
  llvm::Expected<std::vector<HostTensor>>
  run(const std::vector<HostTensor> &inputs);

  /// Floating-point operations of one step, all ranks together.
  int64_t countFlops() const;
  /// What ranks did since the trace was last taken, as Chrome's trace format.
  std::string takeTrace();

private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace ax

#endif // AX_SESSION_SESSION_H
