//===- RankExecutor.h - One rank's memory and commands ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKEXECUTOR_H
#define AX_RUNTIME_RANKEXECUTOR_H

#include "CommandRecorder.h"
#include "FaultLog.h"
#include "FlightTrack.h"
#include "HostOp.h"
#include "ListPorts.h"
#include "RankContext.h"
#include "RankProgress.h"
#include "RankStreams.h"
#include "StateStore.h"
#include "StepGraphs.h"
#include "ax/Runtime/ExchangeOrder.h"
#include "ax/Runtime/Executor.h"
#include "ax/Runtime/HostTransfer.h"

#include <map>

namespace ax::rt {

struct RankOptions {
  /// Commands are recorded.
  bool isTraced = false;
  /// The rank waits for each command.
  bool isBlocking = false;
  /// Gets what the rank exchanges; null: nobody does.
  FlightLog *log = nullptr;
  /// Of its stage, where its communicator is ordered; else null.
  const ExchangeOrder *order = nullptr;
  /// Steps become graphs, where they can.
  bool isCaptured = false;
  /// Told why they do not any more, where that is found while they run.
  std::function<void(const std::string &)> warn = nullptr;
};

/// Everything that one rank needs, prepared once; used by its thread only, but
/// for what is said to be otherwise. Of other ranks it knows what its
/// communicator reaches.
class RankExecutor {
public:
  /// `owner`: of the same rank; its mutable states are used. May be null.
  RankExecutor(const RankContext &context, RankPorts &ports, StateStore &states,
               const RankExecutor *owner, const RankOptions &options = {});

  /// Allocates, loads, packs, joins groups. The other ranks of the stage and
  /// those it exchanges values with do so at the same time.
  llvm::Error prepare();

  /// Puts a step, the whole schedule of the rank's stage, on the streams.
  llvm::Error start();
  /// Puts the first inputs of the next step on their way, which is known while
  /// one is under way.
  llvm::Error stageNext();
  /// Returns when the step has ended, with its outputs handed over.
  llvm::Error finish();

  /// Waits until what its streams have been given is done, or cannot be, but
  /// not longer than `until`: after a failure, and where the next step's inputs
  /// may be on their way. What that uses may then be freed, also what is of
  /// other ranks. For any thread, when the rank's has ended.
  void settle(std::chrono::steady_clock::time_point until);

  int32_t getRank() const { return context.rank; }
  /// Whether its thread is at what others do for outputs, between steps.
  void setHandingOver(bool isIt) {
    progress.setOnHost(isIt ? RankProgress::handingOver : RankProgress::idle);
  }
  /// What the rank's copy of a mutable state, which it has, holds of `box`,
  /// whose source is `host`.
  llvm::Error readOwnState(int32_t state, const StridedBox &box, void *host);
  /// Its copies of mutable states that are no weights are zero.
  llvm::Error resetCarried();
  /// The copy, with all that have to do with it; null when there is none.
  std::shared_ptr<DeviceMemory> shareOwnState(const std::string &name) const;
  const RankMemory &getMemory() const { return memory; }
  /// Kinds of library operations that the device lacks and the host does, with
  /// what the device said of the first.
  const std::map<std::string, std::string> &getHostOps() const {
    return hostOps;
  }
  /// Why the rank's steps are put on streams command by command; empty where
  /// they are graphs from the second on. For when it is prepared.
  std::string whyNotCaptured() const;
  RankTrace &getTrace() { return trace; }
  const RankTrace &getTrace() const { return trace; }

  /// Adds what it was prepared to exchange.
  void listExchanges(PreparedExchanges &to) const {
    if (flight)
      flight->list(to);
  }

  // Any thread may ask these.
  /// Changes as long as the rank gets on.
  uint64_t getNumBegun() const { return progress.getCount(); }
  /// It has nothing to do.
  bool isIdle() const { return progress.getCommand() == RankProgress::idle; }
  /// It does what cannot end without other ranks.
  bool isWaiting() const;
  /// What it does now: `rank 2, stage 'forward1', 'h.0.mlp' (all_reduce ...)`.
  std::string describe() const {
    return describeCommand(progress.getCommand());
  }
  /// The same in few words, of its own: `in all_reduce 'h.0.mlp' of stage
  /// 'forward1', number 41 of group col`; of what is no exchange, behind which.
  std::string describeShortly() const;
  /// Which exchanges it last began and finished; empty where there are none.
  std::string describeLast() const {
    return flight ? flight->describeLast() : std::string();
  }

  /// The first index out of range that a run found since this was called.
  std::optional<FirstFault> takeFault() { return faults.take(); }

private:
  /// A transfer from another stage, with one receive for each slot.
  struct Incoming {
    int32_t transfer = 0;
    /// The list that receives it.
    int32_t list = 0;
    std::vector<std::unique_ptr<DeviceMemory>> slots;
    std::vector<std::unique_ptr<StreamOperation>> receives;
    std::vector<int32_t> buffers;
    /// The one whose turn it is, of the action that is done.
    size_t slot = 0;
  };
  /// Where a buffer's kept value is, slot after slot.
  struct KeptBuffer {
    int32_t buffer = 0;
    int32_t kept = 0;
  };
  /// A command with what was prepared for it.
  struct Step {
    const Command *command = nullptr;
    int32_t list = 0;
    std::vector<BufferRef> references;
    std::vector<DeviceAddress> addresses;
    std::unique_ptr<DeviceKernel> kernel;
    /// One row for each micro-batch.
    std::vector<int64_t> scalars;
    std::unique_ptr<LibraryOp> op;
    /// In place of `op`, where the device lacks it.
    std::unique_ptr<HostOp> hostOp;
    std::unique_ptr<StreamOperation> operation;
    /// Where commands are traced, and the operation has a stream of its own, or
    /// those have that receive for the step.
    std::unique_ptr<OperationRecorder> recorder;
    /// The step that started what is waited for; or, of what is received, its
    /// index in `incoming`; or the number among FaultCommands.
    size_t target = 0;
  };

  /// A message that goes out for an entry of the schedule.
  struct Message {
    size_t entry = 0, step = 0;
  };

  std::string describeCommand(int32_t command) const;
  /// What a step begins with, but for what is done in the first one alone; -1
  /// where nothing is. For any thread.
  int32_t findFirstStep() const;

  llvm::Error prepareAll();
  llvm::Error preparePorts();
  llvm::Error prepareGroups();
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareCollective(const CollectiveCommand &command,
                    const std::string &name) const;
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareMessage(size_t transfer, bool isSend) const;
  llvm::Error prepareTransfers();
  llvm::Error prepareKept();
  llvm::Error prepareSteps();
  llvm::Error prepareStep(Step &step, size_t index);
  llvm::Error prepareLibrary(Step &step, const LibraryCommand &command);
  /// Has what the operation does recorded where it does it.
  void observe(Step &step, size_t index, StreamOperation &operation);
  /// On the device, or where it lacks the operation on the host.
  llvm::Error prepareOp(Step &step, const LibraryDesc &desc,
                        const ConstantOperand &constant);
  llvm::Error prepareState();
  llvm::Expected<std::shared_ptr<DeviceMemory>> makeOwnState(int32_t state);

  /// What a step's error becomes.
  llvm::Error fail(llvm::Error error) const;
  /// Puts the step on the streams command by command.
  llvm::Error startPlain();
  // StepGraphs.cpp
  llvm::Error prepareGraphs();
  llvm::Error startCaptured();
  llvm::Error capture(StepGraph &graph);
  llvm::Error launch(StepGraph &graph);
  llvm::Error runActions();
  llvm::Error runAction(const Action &action, const Turn &turn);
  llvm::Error bindBuffers(const Action &action, const Turn &turn);
  /// The turn of an action of the schedule in step `number`.
  Turn turnOf(size_t action, uint64_t number) const {
    Turn turn = turns[action];
    turn.step = number;
    return turn;
  }
  llvm::Error runStep(int32_t index, int32_t microBatch);
  /// Around what puts a step on the streams.
  llvm::Error beginStep(size_t number, int32_t microBatch);
  llvm::Error endStep(size_t number);
  /// Has `put` put something of the step on that stream, and records it there
  /// where commands are traced.
  llvm::Error putBeside(SideStream &side, Step &step, int32_t microBatch,
                        llvm::function_ref<llvm::Error()> put);

  // Where the communicator is ordered.
  bool isOrdered() const { return !messageGroups.empty(); }
  void orderMessages(const ExchangeOrder &order);
  /// What goes out between an entry of the schedule and the one before.
  llvm::Error exchangeBefore(size_t entry);
  llvm::Error exchange(const std::vector<Message> &messages);
  llvm::Error startMessage(const Message &message);
  static bool isSend(const Step &step) {
    return std::holds_alternative<SendCommand>(step.command->body);
  }

  /// Puts the step's command on the streams.
  llvm::Error issue(Step &step, int32_t microBatch);
  /// Keeps the first of index faults; other errors stay.
  llvm::Error keepFault(llvm::Error error, int32_t command, int32_t microBatch);
  /// Of what kernels have found in a run whose work is done.
  void lookForFaults();

  /// Returns an address; none for what was packed.
  DeviceAddress resolve(const BufferRef &ref) const {
    DeviceAddress base = bases[static_cast<size_t>(ref.buffer)];
    return base ? base + ref.byteOffset : base;
  }

  RankContext context;
  const Program &program;
  const StageProgram *stage;
  RankPorts &ports;
  StateStore &states;
  const RankExecutor *owner;

  RankStreams streams;
  std::optional<HostTransfer> transfer;
  /// Address of each buffer of the stage; those of ports and received values
  /// change from action to action.
  std::vector<DeviceAddress> bases;
  std::unique_ptr<DeviceMemory> arena, workspace;
  /// Of each list.
  std::vector<ListPorts> listPorts;
  std::vector<Incoming> incoming;
  std::vector<KeptBuffer> keptBuffers;
  /// The memory of each StageProgram::kept.
  std::vector<std::unique_ptr<DeviceMemory>> kept;
  std::vector<std::shared_ptr<Group>> groups;
  /// The steps of all lists, and where each list's begin; one more at the end.
  std::vector<Step> steps;
  std::vector<size_t> firstStep;
  /// Messages that go out before each entry of the schedule, and behind the
  /// last one, where the communicator is ordered; else empty.
  std::vector<std::vector<std::vector<Message>>> messageGroups;
  /// Whether each list sends something.
  std::vector<bool> isSending;
  /// Of each action of the schedule, in the first step; and which is the first
  /// of each list that has any.
  std::vector<Turn> turns;
  std::map<int32_t, size_t> firstAction;
  /// Steps that have ended.
  uint64_t numEnded = 0;
  /// The steps of FaultCommands, in order.
  std::vector<size_t> faultSteps;
  /// State buffers that something reads in their plain form.
  std::vector<bool> needsState;
  /// How often each state is read, but for what has been packed.
  std::vector<int32_t> numReads;
  std::vector<std::shared_ptr<const StatePart>> sharedState;
  /// Those that only commands read which are done once; until they are.
  std::vector<std::shared_ptr<const StatePart>> firstState;
  std::map<int32_t, std::shared_ptr<DeviceMemory>> ownState;
  std::map<std::string, std::string> hostOps;
  bool isBlocking, isCaptured;
  std::function<void(const std::string &)> warn;
  RankMemory memory;
  FaultLog faults;
  /// Where commands are traced.
  std::optional<CommandRecorder> recorder;
  RankTrace trace;
  RankProgress progress;
  /// Of steps that are captured; goes before all that they use.
  std::optional<StepGraphs> graphs;
  /// Where exchanges are told of. Goes first, as its log asks where the rank
  /// is.
  std::optional<FlightTrack> flight;
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKEXECUTOR_H
