//===- HeldParts.cpp - Which rank has which part --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HeldParts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace ax::rt {

const StageProgram &stageOf(const Program &program, int32_t rank) {
  return *llvm::find_if(program.stages, [&](const StageProgram &stage) {
    return llvm::is_contained(stage.ranks, rank);
  });
}

UsedValues::UsedValues(const Program &program) : first(program.stages.data()) {
  for (const StageProgram &stage : program.stages) {
    std::set<std::pair<Space, int32_t>> &used = byStage.emplace_back();
    for (const CommandList &list : stage.lists)
      for (const Command &command : list.commands)
        for (const BufferRef &ref : buffersOf(command)) {
          const Buffer &buffer = stage.buffers[static_cast<size_t>(ref.buffer)];
          if (llvm::is_contained({Space::State, Space::Input, Space::Output},
                                 buffer.space))
            used.insert({buffer.space, buffer.index});
        }
  }
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

std::vector<bool> OutputOwners::find(int32_t output, int32_t rank) {
  const Port &port = program.outputs[static_cast<size_t>(output)];
  const StageProgram &stage = stageOf(program, rank);
  auto position =
      static_cast<size_t>(llvm::find(stage.ranks, rank) - stage.ranks.begin());
  auto &[seen, owned] = known[{output, &stage}];
  seen.resize(static_cast<size_t>(program.mesh.numTimeSlices()));
  while (owned.size() <= position) {
    int32_t member = stage.ranks[owned.size()];
    std::vector<bool> &isOwner = owned.emplace_back();
    for (auto [part, before] :
         llvm::zip_equal(partsOf(program, port, member), seen))
      isOwner.push_back(before.insert(part.number).second);
  }
  return owned[position];
}

std::vector<HeldPart> findHeldParts(const Program &program,
                                    const UsedValues &used, int32_t number) {
  const State &state = program.states[static_cast<size_t>(number)];
  std::set<int32_t> holders;
  for (const StageProgram &stage : program.stages)
    if (used.isUsed(stage, Space::State, number))
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

std::vector<RowRange> findNeededRows(const Program &program,
                                     const UsedValues &used, int32_t input,
                                     llvm::ArrayRef<int32_t> ranks) {
  const Port &port = program.inputs[static_cast<size_t>(input)];
  // A scalar is one row.
  int64_t rowBytes = byteSize(port.dtype);
  for (size_t d = 1; d < port.shape.size(); ++d)
    rowBytes *= port.shape[d];
  std::vector<RowRange> found;
  for (int32_t rank : ranks) {
    if (!used.isUsed(stageOf(program, rank), Space::Input, input))
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
  llvm::StringMap<int32_t> numbers;
  for (size_t i = 0; i < program.states.size(); ++i)
    numbers[program.states[i].name] = static_cast<int32_t>(i);
  return [&program, ranks = std::move(ranks), numbers = std::move(numbers),
          used = UsedValues(program)](llvm::StringRef name,
                                      const ElementBox &elements) {
    auto found = numbers.find(name);
    if (found == numbers.end())
      return false;
    const State &state = program.states[static_cast<size_t>(found->second)];
    PiecedTensor tensor{state.dtype, state.shape, {}};
    tensor.wanted = state.dealt;
    return llvm::any_of(ranks, [&](int32_t rank) {
      return used.isUsed(stageOf(program, rank), Space::State, found->second) &&
             hasSome(tensor, partOf(program, state, rank), elements);
    });
  };
}

} // namespace ax::rt
