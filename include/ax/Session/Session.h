//===- Session.h - A plan, ready to run -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plan file → checked → commands and kernels → ranks as threads of this
// process, or, where there are several, the rank of this one. What axrun and
// the C API stand on.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SESSION_SESSION_H
#define AX_SESSION_SESSION_H

#include "ax/Runtime/Executor.h"
#include "ax/Session/PlanSource.h"
#include "ax/Support/Target.h"

#include "llvm/Support/JSON.h"

#include <functional>
#include <optional>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace ax {

struct SessionOptions {
  /// Program of the plan to run; empty: the first.
  std::string program;
  /// Taken instead of the first if the plan has it.
  std::string preferredProgram;
  /// Other weights, by the names and with the shapes of the plan's states: a
  /// .safetensors or .npz file, or a checkpoint; empty: those that the plan
  /// names.
  std::string weights;
  /// They are made up instead, and the model's files need not be there: to
  /// measure with.
  std::optional<uint64_t> randomWeights;
  /// Which of them some get that they lack (`--tied A=B`).
  std::map<std::string, std::string> tied;
  /// Globs over its names: what is not meant for the plan (`--leave-out`).
  std::vector<std::string> leaveOut;
  /// Checkpoint, or folder of them, that training goes on from.
  std::string resume;
  /// Where there is none yet, it begins instead.
  bool resumeIfAny = false;
  /// A program to be prepared, too, if the plan has it, as `eval` or `prefill`;
  /// both have the same states.
  std::string secondProgram;
  /// Folder that the plan's weight files are relative to; empty: as the plan
  /// says.
  std::string modelDir;
  /// Folder of compiled kernels; empty: `kernels` in `$AXOPT_CACHE` or
  /// `~/.cache/axopt`. Where it cannot be made, kernels are not kept.
  std::string cacheDir;
  /// What kernels are compiled for; what the devices say if not given. `start`
  /// refuses what they cannot run.
  std::optional<Target> target;
  /// What ranks compute and communicate with: names in rt::allBackends().
  std::string device = "cpu";
  std::string communicator = "local";
  /// As rt::BackendOptions::cards.
  std::vector<int32_t> cards;
  /// 0: as rt::findThreadsPerRank says.
  int32_t threadsPerRank = 0;
  /// Decides all that is random in the program; that of the run that is gone on
  /// with, or 0, if not given.
  std::optional<uint64_t> seed;
  /// The run ends when no rank has finished a command for so long, or has
  /// prepared one; 0: never.
  double timeoutSeconds = 60;
  bool trace = false;
  /// Folder for what ranks did last, at a failure and on SIGUSR2; empty: none.
  std::string flightRecorder;
  /// Ranks take subnormal numbers for 0, and give 0 for them.
  bool flushDenormals = false;
  /// Products may round factors of f32 as rt::DeviceOptions says.
  bool tf32 = false;
  /// Sums may be rounded as rt::DeviceOptions says.
  bool nondeterministic = false;
  /// Ranks wait for each command, so that an error comes with what made it.
  bool launchBlocking = false;
  /// As rt::ExecutorOptions::capture.
  rt::CaptureMode capture = rt::CaptureMode::Auto;
  /// What the device lacks is an error, and not done by the CPU.
  bool noHostFallback = false;
  /// Every operation is a kernel of its own; for finding faults.
  bool separateKernels = false;
  /// Steps after which what one rank of each stage does goes to standard error
  /// (codegen::lower).
  std::vector<std::string> dumpAfter;
  /// What these steps take goes there.
  bool tellTimes = false;
  /// Programs know how long a step was predicted to take, also those of text.
  bool predictsTimes = false;
  /// Plans that are text go through it; null: compiled ones only.
  PlanCompiler compiler = nullptr;
  /// Told what the run can do without; may be left empty.
  std::function<void(const std::string &)> warn;
  /// Told why loading takes long; may be left empty.
  std::function<void(const std::string &)> note;
  /// The processes that run the plan, all of which make the same calls with the
  /// same options; null: this one alone.
  std::shared_ptr<rt::World> world = nullptr;
};

/// The checkpoint from which a run goes on.
struct Resumed {
  std::string path;
  int64_t step = 0;
  llvm::json::Object progress;
  /// Paths of checkpoints that were passed over for it.
  std::vector<std::string> damaged;
};

class Session {
public:
  static llvm::Expected<std::unique_ptr<Session>>
  load(const std::string &planPath, const SessionOptions &options = {});
  /// `load` in two steps: the program is known after the first, and ranks run
  /// and have their weights after the second.
  static llvm::Expected<std::unique_ptr<Session>>
  compile(const std::string &planPath, const SessionOptions &options);
  llvm::Error start();
  ~Session();

  const rt::Program &getProgram() const;
  /// What its ranks compute and communicate with, as far as that is decided.
  const rt::BackendOptions &getBackends() const;
  const std::vector<rt::Port> &getInputs() const { return getProgram().inputs; }
  const std::vector<rt::Port> &getOutputs() const {
    return getProgram().outputs;
  }
  /// The lone one where there are no other processes.
  const std::shared_ptr<rt::World> &getWorld() const;
  /// The plan, and what it was made from.
  const std::vector<std::string> &getFiles() const;
  /// Returns what runs the plan's program, for who wants several requests in
  /// flight, traces and times.
  rt::Executor &getExecutor();
  /// Returns what runs the second program; null when none was asked for, or the
  /// plan has none of its name.
  rt::Executor *getSecond();
  /// Whether the plan has a program that trains, and no other weights are given
  /// than the model's own, from before it.
  bool isUntrained() const;
  /// Returns where the run goes on from; null when nothing is resumed.
  const Resumed *getResumed() const;
  /// Whether the run goes on with an earlier one, which may have saved nothing.
  bool goesOn() const;

  /// Returns the error with which a run ends, and where the flight record is.
  llvm::Error recordFailure(llvm::Error error);

  /// Does one step on global inputs, in the order of getInputs() and with their
  /// types and shapes, and returns the global outputs.
  llvm::Expected<std::vector<HostTensor>>
  run(const std::vector<HostTensor> &inputs);

private:
  struct Impl;
  /// `compile`, but for what states begin with that is not the model's.
  static llvm::Expected<std::unique_ptr<Session>>
  makePrograms(const std::string &planPath, const SessionOptions &options);
  llvm::Error giveStates(const SessionOptions &options);
  llvm::Error checkStart() const;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Outputs as the model has them: of those with room for more results than
/// there are only these, and none that only counts (areCounts: one value an
/// output). A number of results that is more than there is room for, which
/// plans can give by mistake, is an error (RunFailed).
std::vector<bool> areCounts(const std::vector<rt::Port> &outputs);
std::vector<rt::Port> portsOfResults(const std::vector<rt::Port> &outputs);
llvm::Expected<std::vector<HostTensor>>
cutToResults(const std::vector<rt::Port> &outputs,
             std::vector<HostTensor> values);

/// Floating-point operations of one step, all ranks together.
int64_t countFlops(const rt::Program &program);
/// Every stage's buffers and commands, one a line: for people.
void printListing(const rt::Program &program, llvm::raw_ostream &os);

} // namespace ax

#endif // AX_SESSION_SESSION_H
