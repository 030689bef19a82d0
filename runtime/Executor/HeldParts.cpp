//===- HeldParts.cpp - Which rank has which part --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HeldParts.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace ax::rt {

const StageProgram &stageOf(const Program &program, int32_t rank) {
  return *llvm::find_if(program.stages, [&](const StageProgram &stage) {
    return llvm::is_contained(stage.ranks, rank);
  });
}

bool isUsed(const StageProgram &stage, Space space, int32_t index) {
  auto isIt = [&](const BufferRef &ref) {
    const Buffer &buffer = stage.buffers[static_cast<size_t>(ref.buffer)];
    return buffer.space == space && buffer.index == index;
  };
  for (const CommandList &list : stage.lists)
    for (const Command &command : list.commands)
      if (llvm::any_of(buffersOf(command), isIt))
        return true;
  return false;
}

Part partOf(const Program &program, const State &state, int32_t rank) {
  return makePart(state.layout, state.dtype, program.mesh,
                  program.mesh.coordinates(rank));
}

std::vector<Part> partsOf(const Program &program, const Port &port,
                          int32_t rank) {
  std::vector<Part> parts;
  for (int64_t m = 0; m < program.mesh.numTimeSlices(); ++m)
    parts.push_back(makePart(port.layout, port.dtype, program.mesh,
                             program.mesh.coordinates(rank, m)));
  return parts;
}

std::vector<bool> findOwned(const Program &program, const Port &port,
                            int32_t rank) {
  std::vector<Part> parts = partsOf(program, port, rank);
  std::vector<bool> isOwner(parts.size(), true);
  for (int32_t other : stageOf(program, rank).ranks) {
    if (other == rank || !llvm::is_contained(isOwner, true))
      break;
    std::vector<Part> others = partsOf(program, port, other);
    for (size_t m = 0; m < parts.size(); ++m)
      if (others[m].number == parts[m].number)
        isOwner[m] = false;
  }
  return isOwner;
}

std::vector<HeldPart> findHeldParts(const Program &program, int32_t number) {
  const State &state = program.states[static_cast<size_t>(number)];
  std::set<int32_t> holders;
  for (const StageProgram &stage : program.stages)
    if (isUsed(stage, Space::State, number))
      holders.insert(stage.ranks.begin(), stage.ranks.end());
  int64_t elementBytes = byteSize(state.dtype);
  std::vector<HeldPart> result;
  std::set<int64_t> seen;
  for (int32_t rank : holders) {
    Part part = partOf(program, state, rank);
    // Some are nothing but padding.
    if (!seen.insert(part.number).second || part.box.isEmpty())
      continue;
    HeldPart &held = result.emplace_back();
    held.rank = rank;
    held.offset = part.box.sourceOffset / elementBytes;
    for (const StridedBox::Dim &dim : part.box.getDims()) {
      held.sizes.push_back(dim.size);
      held.strides.push_back(dim.sourceStride / elementBytes);
    }
    held.sizes.push_back(part.box.getRunBytes() / elementBytes);
    held.strides.push_back(1);
  }
  return result;
}

std::vector<RowRange> findNeededRows(const Program &program, int32_t input,
                                     llvm::ArrayRef<int32_t> ranks) {
  const Port &port = program.inputs[static_cast<size_t>(input)];
  // A scalar is one row.
  int64_t rowBytes = byteSize(port.dtype);
  for (size_t d = 1; d < port.shape.size(); ++d)
    rowBytes *= port.shape[d];
  std::vector<RowRange> found;
  for (int32_t rank : ranks) {
    if (!isUsed(stageOf(program, rank), Space::Input, input))
      continue;
    for (const Part &part : partsOf(program, port, rank))
      part.box.forEachRun([&](int64_t from, int64_t, int64_t bytes) {
        RowRange rows{from / rowBytes, (from + bytes - 1) / rowBytes + 1};
        if (found.empty() || found.back() != rows)
          found.push_back(rows);
      });
  }
  llvm::sort(found);
  std::vector<RowRange> result;
  for (const RowRange &rows : found) {
    if (result.empty() || rows.first > result.back().second)
      result.push_back(rows);
    else
      result.back().second = std::max(result.back().second, rows.second);
  }
  return result;
}

std::function<bool(llvm::StringRef, const ElementBox &)>
findNeededElements(const Program &program, std::vector<int32_t> ranks) {
  return [&program, ranks = std::move(ranks)](llvm::StringRef name,
                                              const ElementBox &elements) {
    for (size_t i = 0; i < program.states.size(); ++i) {
      const State &state = program.states[i];
      if (state.name != name)
        continue;
      for (int32_t rank : ranks)
        if (isUsed(stageOf(program, rank), Space::State,
                   static_cast<int32_t>(i)) &&
            hasSome(partOf(program, state, rank), byteSize(state.dtype),
                    elements))
          return true;
    }
    return false;
  };
}

} // namespace ax::rt
