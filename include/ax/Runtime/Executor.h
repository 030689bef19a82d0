//===- Executor.h - Runs a command program on many ranks --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread per rank, each with a device, a communicator and an arena. Ranks
// work through the requests in the order in which they were submitted; those of
// an early pipeline stage go on with the next request while late ones finish
// the last. In the steady state nothing is allocated.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_EXECUTOR_H
#define AX_RUNTIME_EXECUTOR_H

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/Program.h"

#include <chrono>
#include <memory>
#include <optional>

namespace ax::rt {

class Executor;
/// What the ranks of an executor have in its mutable states, by name and part.
class StoredStates;

struct ExecutorOptions {
  /// State files are relative to this folder.
  std::string dataFolder;
  /// The run ends when no rank has finished a command for so long, or has
  /// prepared one; 0: never.
  std::chrono::milliseconds timeout{0};
  /// Requests that can be submitted before the first has been waited for.
  int32_t maxInFlight = 4;
  /// Record every command; see writeTrace.
  bool trace = false;
  /// Mutable states are those of this executor, rank by rank and by name; it
  /// must live longer. Only one of the two may have requests in flight.
  const Executor *owner = nullptr;
  /// The values of prepared states.
  std::shared_ptr<StoredStates> prepared;
};

/// The data of one run. May be used again after it was waited for.
class Request {
public:
  virtual ~Request();
  /// Set every one before submitting: the program's inputs, of their global
  /// shapes and types, in order.
  std::vector<HostTensor> inputs;
  /// Valid after wait.
  std::vector<HostTensor> outputs;
  /// From the first rank's start to the last one's end.
  std::chrono::nanoseconds duration{0};
};

/// What a rank keeps in memory.
struct RankMemory {
  int64_t arenaBytes = 0;
  /// Received values, parts of inputs and outputs, library scratch memory.
  int64_t bufferBytes = 0;
  /// State in its plain form; parts that ranks share are counted for each.
  int64_t stateBytes = 0;
};

/// Where the time of the traced requests went.
struct CommandTime {
  int32_t stage = 0;
  std::string name;
  std::string what;
  std::vector<std::string> nodes;
  /// Other ranks take part: a collective, its wait, a transfer.
  bool isExchange = false;
  /// Of one execution on one rank.
  int64_t flops = 0;
  int64_t bytes = 0;
  /// Ranks that do it, and how often all of them together did.
  int64_t ranks = 0;
  int64_t executions = 0;
  /// Of all ranks and executions together.
  std::chrono::nanoseconds total{0};
  /// That part of `total` in which a rank only waited for others: what the last
  /// one to come to a collective did not need; all of a receive.
  std::chrono::nanoseconds waiting{0};
};

/// One part of a state, and the first of the ranks that hold it. Where it lies
/// in the global tensor is in elements; in itself it is dense.
struct HeldPart {
  int32_t rank = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

class Executor {
public:
  /// Loads state, packs weights and starts the ranks as threads of this
  /// process; `ranks` has what each of the program's works with. BadPlan,
  /// InputOutput, BadInput or RunFailed errors.
  static llvm::Expected<std::unique_ptr<Executor>>
  create(std::shared_ptr<const Program> program, RankBackends ranks,
         const ExecutorOptions &options = {});
  virtual ~Executor();

  virtual const Program &getProgram() const = 0;

  /// A request whose outputs are allocated and whose inputs are not set.
  virtual llvm::Expected<std::unique_ptr<Request>> createRequest() = 0;
  /// Hands the request to the ranks; waits while too many are in flight. It
  /// must stay alive and unchanged until it was waited for. A BadInput error
  /// lists what is wrong with the inputs.
  virtual llvm::Error submit(Request &request) = 0;
  /// After an error the executor runs nothing any more.
  virtual llvm::Error wait(Request &request) = 0;
  virtual bool hasFailed() const = 0;

  /// The global tensor of Program::states[state], which is not prepared, as it
  /// is now. Call it while nothing is in flight.
  virtual llvm::Expected<HostTensor> readState(int32_t state) const = 0;
  /// All parts of a mutable state, and one of them as it is now. Likewise.
  virtual std::vector<HeldPart> getParts(int32_t state) const = 0;
  virtual llvm::Expected<HostTensor> readPart(int32_t state,
                                              const HeldPart &part) const = 0;

  /// The mutable states as they are now, which then are nobody's to change.
  /// Likewise; the executor need not live on.
  virtual std::shared_ptr<StoredStates> getStored() const = 0;

  /// Submits one request and waits for it.
  llvm::Expected<std::vector<HostTensor>>
  run(const std::vector<HostTensor> &inputs);

  /// By rank.
  virtual std::vector<RankMemory> getMemory() const = 0;
  /// Forgets what was traced so far.
  virtual void clearTrace() = 0;
  /// In the order of stages and commands; empty without `trace`. Call it while
  /// nothing is in flight.
  virtual std::vector<CommandTime> getCommandTimes() const = 0;
  /// The part of the ranks' time, from the first traced command to the last, in
  /// which they did none, or waited for values of other stages. Nothing without
  /// `trace` and where there is one stage.
  virtual std::optional<double> getBubble() const = 0;
  /// Chrome's trace format, one track per rank. Call it while nothing is in
  /// flight.
  virtual llvm::Error writeTrace(const std::string &path) const = 0;
};

/// Median and tails of repeated measurements.
struct TimeSummary {
  std::chrono::nanoseconds median{0}, p90{0}, p99{0}, least{0}, mean{0};
};
TimeSummary summarise(std::vector<std::chrono::nanoseconds> times);

} // namespace ax::rt

#endif // AX_RUNTIME_EXECUTOR_H
