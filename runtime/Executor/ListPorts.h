//===- ListPorts.h - Inputs and outputs of a command list -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the inputs and outputs of a list get to a rank's device and back. A
// device that works on the host's memory uses parts where they are; those that
// are not as kernels need them are copied, before their list and behind it.
//
// Elsewhere they go through pinned memory, beside what is computed. On the
// device each has two slots, which micro-batches use in turns: while one is
// computed, the next goes up and the last comes down.
//
//   upload     x0->A  x1->B  |  x2->A  |  x3->B  |
//   compute           F0(A)  |  F1(B)  |  F2(A)  |  F3(B)
//   download                 |  A->y0  |  B->y1  |  A->y2
//
// The host waits for none of it, as pinned memory is there for every part of a
// step, and is read and filled again when the step has ended. Only of inputs
// it is there twice: the host fills it for the next step, whose first parts go
// up, while this one is computed.
//
// Where a step is a graph, all of this is in it but for the first parts, which
// go up before each launch, or while the launch before runs. Whatever used
// their slot in another step has ended.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_LISTPORTS_H
#define AX_RUNTIME_LISTPORTS_H

#include "CommandRecorder.h"
#include "RankContext.h"
#include "RankPorts.h"
#include "RankStreams.h"
#include "Turn.h"

#include "ax/Runtime/MemoryNeeds.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>

namespace ax::rt {

class ListPorts {
public:
  /// Slots of a device that has memory of its own.
  static constexpr size_t numSlots = numPortSlots;

  /// Of a list that is done `perStep` times in a step. Streams are those of the
  /// rank, and live longer, as does who records what they do; null: nobody.
  ListPorts(const RankContext &context, const RankStreams &streams,
            int32_t perStep, CommandRecorder *recorder = nullptr)
      : context(context), streams(streams), perStep(perStep),
        recorder(recorder) {}

  /// Adds what the stage's buffer number `buffer` stands for.
  llvm::Error addInput(int32_t buffer, std::unique_ptr<BoundInput> port);
  llvm::Error addOutput(int32_t buffer, std::unique_ptr<BoundOutput> port);
  /// Returns how much of the device's memory these have.
  int64_t getBytes() const { return bytes; }

  /// Puts the inputs of a micro-batch that is not yet open on their way up;
  /// on the host's memory they stay where they are until it is.
  llvm::Error stage(const Turn &turn, int32_t microBatch);
  /// The host's part of that: of those behind the first of a step that is to be
  /// launched, of which all or none are filled before beginLaunch.
  void fill(const Turn &turn, int32_t microBatch);
  /// Tells where its parts are: what `compute` gets next finds the inputs, and
  /// may write the outputs.
  llvm::Error
  open(const Turn &turn, int32_t microBatch,
       llvm::function_ref<void(int32_t buffer, DeviceAddress address)> bind);
  /// `compute` has all that the micro-batch does with them.
  llvm::Error close(const Turn &turn, int32_t microBatch);
  /// Lets `compute` wait for what comes down, at the end of a step.
  llvm::Error awaitOutputs();
  /// Hands over the outputs of a step that has ended.
  void collect();

  /// How many steps have other addresses than each other, one after another.
  size_t getPeriod() const;
  /// Makes what captures need, on a device with memory of its own.
  llvm::Error prepareCapture();
  /// Around a step of which `compute` is captured, where it has come to
  /// `begun`.
  void beginCapture(const Event &begun);
  void endCapture() { captureBegun = nullptr; }
  /// For each micro-batch of the list before its step is launched: inputs are
  /// where the graph finds them, and outputs will be collected.
  llvm::Error beginLaunch(const Turn &turn, int32_t microBatch);

private:
  /// What both kinds have.
  struct Memory {
    int32_t buffer = 0;
    /// None where parts are used where they are.
    std::vector<std::unique_ptr<DeviceMemory>> slots;
    /// Null where the host copies to a slot, and from it.
    std::unique_ptr<PinnedMemory> pinned;
    /// How far apart parts are in pinned memory.
    int64_t stride = 0;
  };
  struct Input : Memory {
    std::unique_ptr<BoundInput> port;
  };
  struct Output : Memory {
    std::unique_ptr<BoundOutput> port;
  };
  /// The inputs are there; compute is done with them, and with outputs; what
  /// comes down is in pinned memory.
  struct SlotEvents {
    std::unique_ptr<Event> arrived, done, fetched;
  };
  struct Slot {
    /// Of steps that are put on streams, and of those that are captured.
    SlotEvents plain, captured;
    /// Which of the latter have been recorded in this capture.
    bool isDone = false, isFetched = false;
  };
  /// An output's part that is on its way down.
  struct Arrival {
    const Output *output = nullptr;
    int32_t microBatch = 0, place = 0;
  };

  llvm::Error addMemory(Memory &memory, int32_t buffer, const BoundPort &port,
                        int64_t pinnedParts);
  llvm::Error createEvents();
  static llvm::Error createEvents(Device &device, SlotEvents &events);
  /// The part of pinned memory.
  int64_t partOf(const Turn &turn) const;
  llvm::Error putUp(const Turn &turn, int32_t microBatch);
  llvm::Error bringDown(const Turn &turn, int32_t microBatch);
  /// Where the slot is the host's own memory.
  llvm::Error handBack(size_t slot, int32_t microBatch);
  /// `compute` waits for the inputs, which are on their way then.
  llvm::Error bringUp(const Turn &turn, int32_t microBatch);
  llvm::Error awaitSlot(size_t slot);
  bool isCapturing() const { return captureBegun; }
  SlotEvents &eventsOf(size_t slot) {
    return isCapturing() ? slots[slot].captured : slots[slot].plain;
  }
  size_t slotOf(const Turn &turn) const {
    return mapping() ? 0 : turn.slotOf(numSlots);
  }
  const HostMapping *mapping() const { return context.device.getHostMapping(); }

  const RankContext &context;
  const RankStreams &streams;
  int32_t perStep;
  CommandRecorder *recorder;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  /// None on the host's memory.
  std::vector<Slot> slots;
  std::vector<Arrival> arrivals;
  int64_t bytes = 0;
  /// The inputs of the micro-batch that is opened next are on their way.
  bool isStaged = false;
  /// Null where nothing is captured.
  const Event *captureBegun = nullptr;
  /// The step is launched with inputs that the host has still to fill in.
  bool isToFill = false;
  /// Recorded by each launch where the slot of the next one's first inputs has
  /// been used; and whether the last step was one.
  std::unique_ptr<Event> freed;
  bool isLaunched = false;
};

} // namespace ax::rt

#endif // AX_RUNTIME_LISTPORTS_H
