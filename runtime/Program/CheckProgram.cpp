//===- CheckProgram.cpp - Faults of a command program ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs come from a plan that a user may have edited, and through a cache on
// disk; the executor trusts them with raw addresses. So everything it relies on
// is checked once, before the first run.
//
//===----------------------------------------------------------------------===//

#include "ax/Runtime/Program.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <map>
#include <set>

namespace ax::rt {

namespace {

/// More are a slip of the pen.
constexpr int32_t mostKeptSlots = 1 << 20;
/// As in a plan's ax.mesh.
constexpr int64_t mostRanksAndSlices = int64_t(1) << 24;

/// Collects the first fault.
class Checker {
public:
  explicit Checker(const Program &program) : program(program) {}

  llvm::Error run() {
    if (llvm::Error error = checkMesh())
      return error;
    checkRanks();
    for (const Port &port : program.inputs)
      checkLayout("input", port.name, port.shape, port.layout, port.dtype);
    for (const Port &port : program.outputs) {
      checkLayout("output", port.name, port.shape, port.layout, port.dtype);
      checkCounts(port);
    }
    for (const State &state : program.states)
      checkLayout("state", state.name, state.shape, state.layout, state.dtype);
    for (size_t s = 0; s < program.stages.size() && fault.empty(); ++s)
      checkStage(static_cast<int32_t>(s));
    if (fault.empty())
      checkTransfers();
    return takeFault();
  }

  void operator()(const KernelCommand &c) {
    if (!require(isIndex(c.kernel, program.kernels), "no such kernel"))
      return;
    const Kernel &kernel = program.kernels[static_cast<size_t>(c.kernel)];
    require(!kernel.image.empty(), "the kernel has no code");
    require(c.iterations >= 0, "negative iterations");
    require(kernel.numBuffers == static_cast<int32_t>(c.buffers.size()),
            "the kernel has another number of buffers");
    for (const BufferRef &ref : c.buffers)
      checkRef(ref, 0);
  }
  void operator()(const LibraryCommand &c) {
    if (!require(static_cast<int>(c.arguments.size()) == numArguments(c.desc),
                 "wrong number of arguments"))
      return;
    int packed = packedArgument(c.desc);
    for (size_t i = 0; i < c.arguments.size(); ++i) {
      TensorDesc desc = argumentDesc(c.desc, static_cast<int>(i));
      if (!require(desc.sizes.size() == desc.strides.size(),
                   "sizes and strides do not match"))
        return;
      checkRef(c.arguments[i], desc.spanBytes());
      if (static_cast<int>(i) == packed && fault.empty())
        require(
            stage->buffers[static_cast<size_t>(c.arguments[i].buffer)].space ==
                Space::State,
            "a constant operand that is not state");
    }
  }
  void operator()(const CollectiveCommand &c);
  void operator()(const WaitCommand &c) {
    require(pending.erase(c.request) == 1, "nothing to wait for");
  }
  void operator()(const CopyCommand &c) {
    if (!require(c.sourceStrides.size() == c.sizes.size() &&
                     c.destinationStrides.size() == c.sizes.size() &&
                     c.elementBytes > 0,
                 "sizes and strides do not match"))
      return;
    checkRef(c.source, span(c.sizes, c.sourceStrides) * c.elementBytes);
    checkRef(c.destination,
             span(c.sizes, c.destinationStrides) * c.elementBytes);
  }
  void operator()(const SendCommand &c) {
    if (!require(isIndex(c.transfer, program.transfers), "no such transfer"))
      return;
    const Transfer &t = program.transfers[static_cast<size_t>(c.transfer)];
    require(t.fromStage == stageIndex, "sent from a foreign stage");
    checkRef(c.source, t.bytes);
    require(sent.emplace(c.transfer, list).second, "sent twice");
  }
  void operator()(const RecvCommand &c) {
    if (!require(isIndex(c.transfer, program.transfers), "no such transfer"))
      return;
    const Transfer &t = program.transfers[static_cast<size_t>(c.transfer)];
    require(t.toStage == stageIndex, "received by a foreign stage");
    require(received.emplace(c.transfer, list).second, "received twice");
  }

private:
  template <typename T>
  static bool isIndex(int32_t index, const std::vector<T> &list) {
    return index >= 0 && static_cast<size_t>(index) < list.size();
  }
  bool require(bool condition, const std::string &what) {
    if (!condition && fault.empty())
      fault = where + what;
    return condition && fault.empty();
  }
  static int64_t span(const std::vector<int64_t> &sizes,
                      const std::vector<int64_t> &strides) {
    int64_t last = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] <= 0)
        return 0;
      last += (sizes[i] - 1) * strides[i];
    }
    return last + 1;
  }
  llvm::Error takeFault() {
    if (fault.empty())
      return llvm::Error::success();
    return makeError(ExitCode::BadPlan,
                     "program '" + program.name + "': " + fault);
  }
  /// What all else counts by.
  llvm::Error checkMesh() {
    where = "mesh: ";
    int64_t total = 1;
    for (const sharding::Axis &axis : program.mesh.getAxes())
      if (require(axis.size >= 1 && axis.size <= mostRanksAndSlices / total,
                  "more ranks and slices than there can be, or none"))
        total *= axis.size;
    return takeFault();
  }
  /// Which dimensions of an output count samples and results.
  void checkCounts(const Port &output) {
    auto isDim = [&](int64_t dim) {
      return dim >= 0 && dim < static_cast<int64_t>(output.shape.size());
    };
    require(!output.samples || isDim(*output.samples),
            "samples along a dimension that it has not");
    require(!output.count || (isDim(output.count->dim) &&
                              output.count->output < program.outputs.size()),
            "results along a dimension, or counted by an output, that is not "
            "there");
  }
  void checkRanks();
  void checkLayout(const char *kind, const std::string &name,
                   const Shape &shape, const sharding::Layout &layout,
                   DType dtype) {
    where = std::string(kind) + " '" + name + "': ";
    if (std::optional<std::string> why =
            sharding::findFault(layout, shape, program.mesh))
      require(false, *why);
    else if (require(layout.partial.empty(), "it is partial"))
      require(bytesOf(dtype, shape) >= 0 &&
                  bytesOf(dtype, layout.localShape()) >= 0,
              "its size is impossible");
  }
  void checkStage(int32_t index);
  void checkSchedule();
  void checkBuffers();
  void checkGroups();
  void checkTransfers();
  void checkRef(const BufferRef &ref, int64_t bytes);
  int64_t bytesOf(DType dtype, const std::vector<int64_t> &shape) const {
    std::optional<int64_t> count = checkedNumElements(shape, byteSize(dtype));
    return count ? *count * byteSize(dtype) : -1;
  }

  const Program &program;
  const StageProgram *stage = nullptr;
  int32_t stageIndex = 0;
  std::string where;
  std::string fault;
  std::set<int32_t> pending;
  /// Transfer -> the list that does it.
  std::map<int32_t, int32_t> sent, received;
  int32_t list = 0;
};

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

void Checker::checkStage(int32_t index) {
  stageIndex = index;
  stage = &program.stages[static_cast<size_t>(index)];
  where = "stage '" + stage->name + "': ";
  checkBuffers();
  checkGroups();
  for (list = 0; static_cast<size_t>(list) < stage->lists.size(); ++list) {
    for (const Command &command :
         stage->lists[static_cast<size_t>(list)].commands) {
      where = "stage '" + stage->name + "', '" + command.name + "': ";
      std::visit(*this, command.body);
      if (!fault.empty())
        return;
    }
    where = "stage '" + stage->name + "': ";
    require(pending.empty(), "a collective is never waited for");
  }
  checkSchedule();
}

/// The micro-batches of one list, in the order of the schedule.
std::vector<int32_t> orderOf(const StageProgram &stage, int32_t list) {
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
  for (const Kept &value : stage->kept) {
    where = "stage '" + stage->name + "', kept value '" + value.name + "': ";
    require(value.bytes >= 0 && value.slots >= 1 &&
                value.slots <= mostKeptSlots,
            "it has no room");
  }
  for (const Buffer &buffer : stage->buffers) {
    where = "stage '" + stage->name + "', buffer '" + buffer.name + "': ";
    int64_t capacity = -1;
    switch (buffer.space) {
    case Space::Arena:
      require(buffer.offset >= 0 && buffer.offset % 64 == 0,
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

void Checker::checkRef(const BufferRef &ref, int64_t bytes) {
  if (!require(isIndex(ref.buffer, stage->buffers), "no such buffer"))
    return;
  const Buffer &buffer = stage->buffers[static_cast<size_t>(ref.buffer)];
  require(ref.byteOffset >= 0 && bytes >= 0 && ref.byteOffset <= buffer.bytes &&
              bytes <= buffer.bytes - ref.byteOffset,
          std::to_string(bytes) + " bytes at " +
              std::to_string(ref.byteOffset) + " are not inside buffer '" +
              buffer.name + "' of " + std::to_string(buffer.bytes));
}

void Checker::operator()(const CollectiveCommand &c) {
  if (!require(isIndex(c.groupSet, stage->groups), "no such group set"))
    return;
  auto members = static_cast<int64_t>(
      stage->groups[static_cast<size_t>(c.groupSet)].groups.front().size());
  if (std::string why = findFault({c.parts.begin(), c.parts.end()}, members);
      !require(why.empty(), why))
    return;
  for (const CollectivePart &part : c.parts) {
    checkRef(part.source, sourceBytes(part));
    checkRef(part.destination, destinationBytes(part));
  }
  if (c.request >= 0)
    require(pending.insert(c.request).second, "its request is in use");
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

} // namespace

llvm::Error checkProgram(const Program &program) {
  return Checker(program).run();
}

} // namespace ax::rt
