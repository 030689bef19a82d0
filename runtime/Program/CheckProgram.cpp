//===- CheckProgram.cpp - Faults of a command program ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs come from a plan that a user may have edited, and through a cache on
// disk; the executor trusts them with raw addresses. So everything it relies on
// is checked once, before the first run.
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

namespace {

/// More are a slip of the pen.
constexpr int32_t mostKeptSlots = 1 << 20;
/// A thread's scratch memory has at most so many bytes; more cannot be had.
constexpr int64_t mostScratchBytes = int64_t(1) << 40;
/// The same bound as of a plan's ax.mesh.
constexpr int64_t mostRanksAndSlices = int64_t(1) << 24;

/// Whether all slots together can be addressed.
bool hasRoom(const Kept &value) {
  int64_t bytes = 0;
  return !__builtin_mul_overflow(value.bytes + bufferAlignment, value.slots,
                                 &bytes);
}

} // namespace

llvm::Error Checker::checkMesh() {
  where = "mesh: ";
  int64_t total = 1;
  for (const sharding::Axis &axis : program.mesh.getAxes())
    if (require(axis.size >= 1 && axis.size <= mostRanksAndSlices / total,
                "more ranks and slices than there can be, or none"))
      total *= axis.size;
  return takeFault();
}

void Checker::checkRanks() {
  auto numRanks = static_cast<size_t>(program.mesh.numRanks());
  std::vector<bool> seen(numRanks, false);
  size_t count = 0;
  for (const StageProgram &s : program.stages) {
    where = "stage '" + s.name + "': ";
    require(!s.ranks.empty() &&
                s.ranks.size() == program.stages.front().ranks.size(),
            "stages have different numbers of ranks");
    for (int32_t rank : s.ranks) {
      if (!require(rank >= 0 && static_cast<size_t>(rank) < numRanks &&
                       !seen[static_cast<size_t>(rank)],
                   "rank " + std::to_string(rank) + " is impossible"))
        return;
      seen[static_cast<size_t>(rank)] = true;
      ++count;
    }
  }
  where.clear();
  require(count == numRanks, "a rank of the mesh is in no stage");
}

/// What is beyond is an error of the driver's.
static bool isLaunch(const LaunchShape &shape) {
  constexpr int64_t mostThreads = 1024;
  return shape.blocks >= 1 &&
         shape.blocks <= std::numeric_limits<int32_t>::max() &&
         shape.threadsPerBlock >= 1 && shape.threadsPerBlock <= mostThreads &&
         shape.groupThreads >= 1 &&
         shape.threadsPerBlock % shape.groupThreads == 0;
}

void Checker::checkKernels() {
  for (const Kernel &kernel : program.kernels) {
    where = "kernel '" + kernel.name + "': ";
    require(kernel.iterations >= 0, "negative iterations");
    require(kernel.scratchBytes >= 0 && kernel.scratchBytes <= mostScratchBytes,
            "it has no room");
    if (kernel.format == kernelFormat::ptx &&
        require(isLaunch(kernel.launch), "no launch that GPUs do"))
      require(kernel.scratchBytes <=
                  mostScratchBytes / kernel.launch.numGroups(),
              "its threads have no room");
    for (const KernelArgument &argument : kernel.arguments)
      require(argument.bytes >= 0 && argument.alignment >= 1 &&
                  bufferAlignment % argument.alignment == 0,
              "an impossible argument");
  }
}

void Checker::checkStage(int32_t index) {
  stageIndex = index;
  listOf.clear();
  stage = &program.stages[static_cast<size_t>(index)];
  where = "stage '" + stage->name + "': ";
  checkBuffers();
  checkGroups();
  for (list = 0; static_cast<size_t>(list) < stage->lists.size(); ++list) {
    for (const Command &command :
         stage->lists[static_cast<size_t>(list)].commands) {
      where = "stage '" + stage->name + "', '" + command.name + "': ";
      std::visit(*this, command.body);
      checkMicroBatches(command);
      if (!fault.empty())
        return;
    }
    where = "stage '" + stage->name + "': ";
    require(pending.empty(), "a collective is never waited for");
  }
  checkSchedule();
}

/// Others would not meet, or leave undone what is waited for.
void Checker::checkMicroBatches(const Command &command) {
  const auto *library = std::get_if<LibraryCommand>(&command.body);
  if (command.microBatches == MicroBatches::Once)
    // A check tells of each step.
    require(library ? !std::holds_alternative<IndexCheckDesc>(library->desc)
                    : std::holds_alternative<KernelCommand>(command.body),
            "only what computes may be done once");
  else if (command.microBatches != MicroBatches::All)
    require(library && std::holds_alternative<MatmulDesc>(library->desc) &&
                !stage->lists[static_cast<size_t>(list)].isOnceAStep,
            "only a product that is done for each micro-batch may be left out "
            "of some");
}

/// The micro-batches of one list, in the order of the schedule.
static std::vector<int32_t> orderOf(const StageProgram &stage, int32_t list) {
  std::vector<int32_t> order;
  for (const Action &action : stage.schedule)
    if (action.list == list)
      order.push_back(action.microBatch);
  return order;
}

void Checker::checkSchedule() {
  for (const Action &action : stage->schedule)
    require(isIndex(action.list, stage->lists),
            "it schedules what it does not have");
  for (int32_t l = 0; static_cast<size_t>(l) < stage->lists.size(); ++l) {
    int64_t slices = stage->lists[static_cast<size_t>(l)].isOnceAStep
                         ? 1
                         : program.mesh.numTimeSlices();
    std::vector<bool> done(static_cast<size_t>(slices), false);
    std::vector<int32_t> order = orderOf(*stage, l);
    for (int32_t microBatch : order) {
      if (!require(microBatch >= 0 && microBatch < slices &&
                       !done[static_cast<size_t>(microBatch)],
                   "micro-batch " + std::to_string(microBatch) +
                       " is scheduled twice or does not exist"))
        return;
      done[static_cast<size_t>(microBatch)] = true;
    }
    require(order.size() == static_cast<size_t>(slices),
            "a micro-batch is not scheduled");
  }
}

void Checker::checkBuffers() {
  require(stage->arenaBytes >= 0, "its arena has no room");
  for (const Kept &value : stage->kept) {
    where = "stage '" + stage->name + "', kept value '" + value.name + "': ";
    require(value.bytes >= 0 && value.slots >= 1 &&
                value.slots <= mostKeptSlots && hasRoom(value),
            "it has no room");
    require(!value.isOnce || value.slots == 1,
            "it is of no micro-batch and has several slots");
  }
  for (const Buffer &buffer : stage->buffers) {
    where = "stage '" + stage->name + "', buffer '" + buffer.name + "': ";
    int64_t capacity = -1;
    switch (buffer.space) {
    case Space::Arena:
      require(buffer.offset >= 0 && buffer.offset % bufferAlignment == 0,
              "its offset is not a multiple of 64");
      capacity = stage->arenaBytes - buffer.offset;
      break;
    case Space::State:
      if (require(isIndex(buffer.index, program.states), "no such state")) {
        const State &s = program.states[static_cast<size_t>(buffer.index)];
        capacity = bytesOf(s.dtype, s.layout.localShape());
      }
      break;
    case Space::Input:
    case Space::Output: {
      const std::vector<Port> &ports =
          buffer.space == Space::Input ? program.inputs : program.outputs;
      if (require(isIndex(buffer.index, ports), "no such input or output")) {
        const Port &port = ports[static_cast<size_t>(buffer.index)];
        capacity = bytesOf(port.dtype, port.layout.localShape());
      }
      break;
    }
    case Space::Received:
      if (require(isIndex(buffer.index, program.transfers),
                  "no such transfer")) {
        const Transfer &t =
            program.transfers[static_cast<size_t>(buffer.index)];
        require(t.toStage == stageIndex, "a transfer to another stage");
        capacity = t.bytes;
      }
      break;
    case Space::Kept:
      if (require(isIndex(buffer.index, stage->kept), "no such kept value"))
        capacity = stage->kept[static_cast<size_t>(buffer.index)].bytes;
      break;
    }
    require(buffer.bytes >= 0 && buffer.bytes <= capacity,
            "its " + std::to_string(buffer.bytes) + " bytes do not fit");
  }
}

void Checker::checkGroups() {
  for (const GroupSet &set : stage->groups) {
    where = "stage '" + stage->name + "', group " + set.name + ": ";
    std::set<int32_t> members;
    for (const std::vector<int32_t> &group : set.groups) {
      require(group.size() == set.groups.front().size(),
              "groups have different sizes");
      for (int32_t rank : group)
        require(std::binary_search(stage->ranks.begin(), stage->ranks.end(),
                                   rank) &&
                    members.insert(rank).second,
                "rank " + std::to_string(rank) + " is foreign or repeated");
    }
    require(members.size() == stage->ranks.size(), "a rank is in no group");
  }
}

void Checker::checkTransfers() {
  for (size_t t = 0; t < program.transfers.size(); ++t) {
    const Transfer &transfer = program.transfers[t];
    where = "transfer '" + transfer.name + "': ";
    require(isIndex(transfer.fromStage, program.stages) &&
                isIndex(transfer.toStage, program.stages) &&
                transfer.fromStage != transfer.toStage,
            "it must go to another stage");
    require(transfer.slots >= 1 && transfer.bytes >= 0, "it has no room");
    require(transfer.slots <= mostReceivesAhead, "it has too many slots");
    require(sent.count(static_cast<int32_t>(t)), "it is never sent");
    require(received.count(static_cast<int32_t>(t)), "it is never received");
    if (!fault.empty())
      return;
    // Slots are reused round robin, in the order of the schedule.
    require(orderOf(program.stages[static_cast<size_t>(transfer.fromStage)],
                    sent[static_cast<int32_t>(t)]) ==
                orderOf(program.stages[static_cast<size_t>(transfer.toStage)],
                        received[static_cast<int32_t>(t)]),
            "its micro-batches are sent in another order than received");
  }
}

llvm::Error checkProgram(const Program &program) {
  return Checker(program).run();
}

} // namespace ax::rt
