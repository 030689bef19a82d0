//===- Executor.h - Runs a command program on many ranks --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread per rank, each with a device, a communicator and an arena. Ranks
// work through the requests in the order in which they were submitted; those of
// an early pipeline stage go on with the next request while late ones finish
// the last. In the steady state nothing is allocated.
//
// All ranks are threads of this process, or, where a World says so, each
// process has an executor that runs its own, and all of them are given the same
// requests in the same order. What one process fails with ends the executors of
// all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_EXECUTOR_H
#define AX_RUNTIME_EXECUTOR_H

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/FlightRecorder.h"
#include "ax/Runtime/Program.h"
#include "ax/Runtime/World.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace ax::rt {

class Executor;
/// What the ranks of an executor have in its mutable states, by name and part.
class StoredStates;

/// Whether what a step puts on streams is captured, and launched as a graph
/// from the second on.
enum class CaptureMode {
  Off,
  /// Where it can be.
  Auto,
  /// Likewise, and where it cannot be the executor says why.
  On
};

struct ExecutorOptions {
  /// The folder that files of states are relative to.
  std::string dataFolder;
  /// The run ends when no rank has finished a command for so long, or has
  /// prepared one. After 0 it never does.
  std::chrono::milliseconds timeout{0};
  /// How many requests can be submitted before the first has been waited for.
  int32_t maxInFlight = 4;
  /// Every command is recorded; see writeTrace.
  bool trace = false;
  /// Ranks wait for each command, so that its errors come with it.
  bool blocking = false;
  CaptureMode capture = CaptureMode::Auto;
  /// Told what a device lacks and the host does, and of steps that are not
  /// captured, also on ranks' threads, one at a time; may be left empty.
  std::function<void(const std::string &)> warn;
  /// Whose mutable states this one uses, rank by rank and by name; null where
  /// it has its own. The owner must live longer, and only one of the two may
  /// have requests in flight.
  const Executor *owner = nullptr;
  /// The values of prepared states.
  std::shared_ptr<StoredStates> prepared;
  /// Others take them, too: they stay when this one has what it needs.
  bool othersTakePrepared = false;
  /// The processes that run the program, each its own ranks; null: this one
  /// runs all.
  std::shared_ptr<World> world = nullptr;
  /// Told what ranks exchange; written when the executor fails, whose error
  /// says so. Null: nobody is told.
  std::shared_ptr<FlightRecorder> recorder = nullptr;
};

/// The data of one run, which may be used again after it was waited for.
class Request {
public:
  virtual ~Request();
  /// The program's inputs in their order, with their global shapes and types.
  /// All of them have to be set before the request is submitted; but where
  /// there are several processes, only what Executor::getNeededRows says: of
  /// others the elements may be anything, and an input with no such rows may
  /// be left as it is.
  std::vector<HostTensor> inputs;
  /// The program's outputs, which are there after `wait`; see
  /// Executor::hasOutput.
  std::vector<HostTensor> outputs;
  /// The time from the first rank's start to the last one's end.
  std::chrono::nanoseconds duration{0};
};

/// What a rank keeps in memory.
struct RankMemory {
  int64_t arenaBytes = 0;
  /// What received values, parts of inputs and outputs, and scratch memory of
  /// libraries take.
  int64_t bufferBytes = 0;
  /// What states take in their plain form. A part that ranks share counts for
  /// each of them.
  int64_t stateBytes = 0;
};

/// How much of the time of the traced requests one command took.
struct CommandTime {
  int32_t stage = 0;
  std::string name;
  std::string what;
  /// What `what` begins with: `matmul`, `kernel`, `all_reduce`. That of a wait
  /// is the collective's.
  std::string kind;
  std::vector<std::string> nodes;
  /// Whether other ranks take part in it: it is a collective, its wait, or a
  /// transfer.
  bool isExchange = false;
  /// What one execution on one rank does and moves.
  int64_t flops = 0;
  int64_t bytes = 0;
  /// By the rate of which type the operations are judged (rateType).
  std::optional<DType> factors;
  /// How many of the ranks that were asked do it, and how often all of them
  /// together did.
  int64_t ranks = 0;
  int64_t executions = 0;
  /// What it took on all ranks together, on the streams that do it: an exchange
  /// may go on while its rank computes.
  std::chrono::nanoseconds total{0};
  /// How long the ranks' computing was at it, or waited for it: of computations
  /// `total`. Of a collective that is begun and awaited, a device which does it
  /// beside its computing has both times here, and none at the wait.
  std::chrono::nanoseconds held{0};
  /// The part of `total` in which ranks only waited for others. Of a collective
  /// it is what the last rank to come did not need, where all ranks are of this
  /// process; of a receive all.
  std::chrono::nanoseconds waiting{0};
};

/// One part of a state, and the first of the ranks that hold it. Offset and
/// strides say, in elements, where it lies in the global tensor; the part
/// itself is dense.
struct HeldPart {
  int32_t rank = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

/// Rows of a tensor, along its first dimension: from `first` to below `second`.
/// A scalar is one row.
using RowRange = std::pair<int64_t, int64_t>;

class Executor {
public:
  /// Loads states, packs weights and starts this process's ranks as threads of
  /// it; `ranks` has what each of them works with, in the order of
  /// World::getRanks. Of several processes each makes the call, and all have an
  /// executor or none. Fails with Usage, BadPlan, InputOutput, BadInput or
  /// RunFailed.
  static llvm::Expected<std::unique_ptr<Executor>>
  create(std::shared_ptr<const Program> program, RankBackends ranks,
         const ExecutorOptions &options = {});
  virtual ~Executor();

  virtual const Program &getProgram() const = 0;
  /// The lone one where none was given.
  virtual World &getWorld() const = 0;
  /// This process's, ascending.
  virtual llvm::ArrayRef<int32_t> getRanks() const = 0;

  /// Returns the rows of Program::inputs[input] that this process's ranks read:
  /// ascending, and none twice.
  virtual std::vector<RowRange> getNeededRows(int32_t input) const = 0;
  /// Whether this process gets Program::outputs[output]. Process 0 gets all;
  /// others get scalars, and what has a role. Those that it does not get stay
  /// empty.
  virtual bool hasOutput(int32_t output) const = 0;

  /// Returns a request whose outputs are allocated and whose inputs are not
  /// set.
  virtual llvm::Expected<std::unique_ptr<Request>> createRequest() = 0;
  /// Hands the request to the ranks, and waits while too many are in flight.
  /// The request must stay alive and unchanged until it was waited for. A
  /// BadInput error lists what is wrong with the inputs; where there are
  /// several processes, it ends the executors of all.
  virtual llvm::Error submit(Request &request) = 0;
  /// Does of `submit` all but let ranks begin: while the request before runs,
  /// the inputs of this one go up to devices that have memory of their own, and
  /// `submit` then only starts it. Until then it changes no state, and the
  /// executor may be destroyed. Requests are submitted in the order in which
  /// they were announced, and less than maxInFlight are announced and not
  /// submitted.
  virtual llvm::Error announce(Request &request) = 0;
  /// Returns when the request is done. After an error the executor runs nothing
  /// any more.
  virtual llvm::Error wait(Request &request) = 0;
  virtual bool hasFailed() const = 0;

  /// Returns the global tensor of Program::states[state], which is not
  /// prepared, as it is now, in the model's order (State::dealt). This and what
  /// follows is for when nothing is in flight. An Unsupported error where other
  /// processes have parts of it, which it may only if it is mutable.
  virtual llvm::Expected<HostTensor> readState(int32_t state) const = 0;
  /// Return all parts of a mutable state, those of all processes, and one of
  /// them, of a rank of this process, as it is now, in the order that ranks
  /// have.
  virtual std::vector<HeldPart> getParts(int32_t state) const = 0;
  virtual llvm::Expected<HostTensor> readPart(int32_t state,
                                              const HeldPart &part) const = 0;

  /// Returns this process's parts of the mutable states as they are now. Nobody
  /// changes them from then on, and the executor need not live on.
  virtual std::shared_ptr<StoredStates> getStored() const = 0;

  /// What steps carry to each other, the mutable states that are no weights, is
  /// zero again on this process's ranks, as in the beginning.
  virtual llvm::Error resetCarried() = 0;

  /// Submits one request, waits for it, and returns its outputs, as `wait`
  /// does.
  llvm::Expected<std::vector<HostTensor>>
  run(const std::vector<HostTensor> &inputs);

  /// All processes do so, with nothing in flight: until clearTrace, what
  /// follows tells at process 0 of the ranks of all, as they are now.
  virtual llvm::Error gatherReports() = 0;
  /// Returns what each of this process's ranks keeps, in their order; and so
  /// does what follows tell of these ranks.
  virtual std::vector<RankMemory> getMemory() const = 0;
  /// Forgets what was traced so far.
  virtual void clearTrace() = 0;
  /// Returns what the traced commands took, in the order of stages and
  /// commands; nothing without `trace`.
  virtual std::vector<CommandTime> getCommandTimes() const = 0;
  /// Returns the part of the ranks' time, from the first traced command to the
  /// last, in which they did none or waited for values of other stages; nothing
  /// without `trace`, and where there is one stage.
  virtual std::optional<double> getBubble() const = 0;
  /// Writes what was traced in Chrome's trace format, one track for each rank.
  virtual llvm::Error writeTrace(const std::string &path) const = 0;
};

/// Returns which elements of the program's states any of the ranks have, asked
/// by a state's name (CheckpointReading::needs). The program has to live as
/// long.
std::function<bool(llvm::StringRef state, const ElementBox &elements)>
findNeededElements(const Program &program, std::vector<int32_t> ranks);

/// The median and the tails of repeated measurements.
struct TimeSummary {
  std::chrono::nanoseconds median{0}, p90{0}, p99{0}, least{0}, mean{0};
};
TimeSummary summarise(std::vector<std::chrono::nanoseconds> times);

} // namespace ax::rt

#endif // AX_RUNTIME_EXECUTOR_H
