//===- MemoryNeeds.cpp - What a rank allocates ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/MemoryNeeds.h"

#include "ax/Support/ByteText.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <set>

namespace ax::rt {

static constexpr std::pair<const char *, int64_t MemoryNeeds::*> kinds[] = {
    {"weights", &MemoryNeeds::weights},
    {"optimizer", &MemoryNeeds::optimizer},
    {"carried states", &MemoryNeeds::carried},
    {"constants", &MemoryNeeds::constants},
    {"values", &MemoryNeeds::values},
    {"kept values", &MemoryNeeds::kept},
    {"received values", &MemoryNeeds::slots},
    {"inputs and outputs", &MemoryNeeds::ports},
    {"scratch", &MemoryNeeds::scratch},
    {"copies of exchanges", &MemoryNeeds::staging}};

int64_t MemoryNeeds::total() const {
  int64_t sum = 0;
  for (auto [name, kind] : kinds)
    sum += this->*kind;
  return sum;
}

MemoryNeeds &MemoryNeeds::operator+=(const MemoryNeeds &other) {
  for (auto [name, kind] : kinds)
    this->*kind += other.*kind;
  return *this;
}

std::string MemoryNeeds::toText() const {
  std::string text;
  for (auto [name, kind] : kinds)
    if (this->*kind)
      text += (text.empty() ? "" : ", ") + std::string(name) + ' ' +
              bytesText(this->*kind);
  return text;
}

/// What the gradient of attention of 16-bit floats keeps for a while on a GPU:
/// that of the scores, or sums of that of the queries where these have any
/// order; and a number for each query; where it is not given attention's sums,
/// these and what attention gives once more.
static int64_t scratchOf(const AttentionGradientDesc &desc,
                         bool nondeterministic) {
  const AttentionDesc &of = desc.forward;
  int64_t rows = of.q.sizes[0] * of.q.sizes[1] * of.q.sizes[2];
  if (byteSize(of.q.dtype) != sizeof(uint16_t))
    return 0;
  constexpr int64_t perQuery = sizeof(float);
  int64_t sums = nondeterministic ? desc.dq.numElements() * perQuery
                                  : rows * of.k.sizes[2] *
                                        static_cast<int64_t>(sizeof(uint16_t));
  int64_t again = of.givesLogSums ? 0 : rows * perQuery + of.out.spanBytes();
  return sums + rows * perQuery + again;
}

/// Where nobody reads the sums of attention's softmax, they are scratch.
static int64_t scratchOf(const AttentionDesc &desc) {
  if (byteSize(desc.q.dtype) != sizeof(uint16_t) || desc.givesLogSums)
    return 0;
  return desc.q.sizes[0] * desc.q.sizes[1] * desc.q.sizes[2] *
         static_cast<int64_t>(sizeof(float));
}

MemoryNeeds findNeeds(const Program &program, const StageProgram &stage,
                      llvm::function_ref<bool(int32_t)> counts,
                      bool nondeterministic) {
  MemoryNeeds needs;
  std::set<std::pair<Space, int32_t>> seen;
  for (const Buffer &buffer : stage.buffers) {
    if (!seen.insert({buffer.space, buffer.index}).second)
      continue;
    auto index = static_cast<size_t>(buffer.index);
    if (buffer.space == Space::State) {
      const State &state = program.states[index];
      bool isWeight = !state.file.empty() || state.isPrepared;
      if (counts(buffer.index))
        (isWeight                    ? needs.weights
         : !state.isMutable          ? needs.constants
         : program.optimizer.empty() ? needs.carried
                                     : needs.optimizer) += buffer.bytes;
    } else if (buffer.space == Space::Received) {
      const Transfer &transfer = program.transfers[index];
      needs.slots += transfer.bytes * transfer.slots;
    } else if (buffer.space == Space::Input || buffer.space == Space::Output) {
      needs.ports += buffer.bytes;
    }
  }
  needs.values = stage.arenaBytes;
  for (const Kept &value : stage.kept)
    (value.isOnce ? needs.weights : needs.kept) +=
        static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(value.bytes),
                                           bufferAlignment)) *
        value.slots;
  for (const Command *command : stage.allCommands())
    if (const auto *body = std::get_if<KernelCommand>(&command->body)) {
      const Kernel &kernel = program.kernels[static_cast<size_t>(body->kernel)];
      needs.scratch = std::max(needs.scratch,
                               kernel.scratchBytes * kernel.launch.numGroups());
    } else if (const auto *call = std::get_if<LibraryCommand>(&command->body)) {
      if (const auto *gradient =
              std::get_if<AttentionGradientDesc>(&call->desc))
        needs.scratch =
            std::max(needs.scratch, scratchOf(*gradient, nondeterministic));
      else if (const auto *forwards = std::get_if<AttentionDesc>(&call->desc))
        needs.scratch = std::max(needs.scratch, scratchOf(*forwards));
    }
  return needs;
}

} // namespace ax::rt
