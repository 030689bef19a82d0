//===- StageBuffers.cpp - Where values of a command list lie --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StageBuffers.h"

#include "CommandName.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Local/Local.h"
#include "ax/Support/Error.h"

using namespace mlir;

namespace ax::codegen {

int64_t byteSizeOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() *
         byteSize(*interpreter::toDType(type.getElementType()));
}

int32_t StageBuffers::add(rt::Space space, int32_t index, int64_t bytes,
                          StringRef name) {
  rt::Buffer buffer;
  buffer.space = space;
  buffer.index = index;
  buffer.bytes = bytes;
  buffer.name = name.str();
  stage.buffers.push_back(std::move(buffer));
  return stage.buffers.size() - 1;
}

llvm::Expected<int32_t> StageBuffers::constantState(ConstantOp constant) {
  auto [it, isNew] = tables.constants.try_emplace(constant.getValue(), 0);
  if (isNew) {
    auto value = interpreter::toHostTensor(constant.getValue());
    if (!value)
      return value.takeError();
    rt::State state;
    state.name = "constant" + std::to_string(tables.constants.size() - 1);
    state.dtype = value->getType();
    state.shape = value->getShape();
    state.layout = sharding::Layout::replicated(state.shape);
    state.value = std::move(*value);
    it->second = tables.program.states.size();
    tables.program.states.push_back(std::move(state));
  }
  return it->second;
}

llvm::Expected<int32_t> StageBuffers::of(Value value) {
  if (auto it = buffers.find(value); it != buffers.end())
    return touch(it->second);
  int32_t buffer;
  if (auto constant = value.getDefiningOp<ConstantOp>()) {
    auto state = constantState(constant);
    if (!state)
      return state.takeError();
    buffer = add(rt::Space::State, *state, byteSizeOf(value),
                 tables.program.states[*state].name);
  } else {
    buffer = add(rt::Space::Arena, 0, byteSizeOf(value),
                 getNodeName(value.getDefiningOp()));
    lifetimes[buffer] = {byteSizeOf(value), now(), now(), 0};
  }
  buffers[value] = buffer;
  return buffer;
}

int32_t StageBuffers::touch(int32_t buffer) {
  if (auto *it = lifetimes.find(buffer); it != lifetimes.end())
    it->second.last = now();
  return buffer;
}

llvm::Expected<rt::BufferRef> StageBuffers::ref(Value value,
                                                int64_t byteOffset) {
  auto buffer = of(value);
  if (!buffer)
    return buffer.takeError();
  return rt::BufferRef{*buffer, byteOffset};
}

llvm::Expected<rt::BufferRef> StageBuffers::denseRef(Value value) {
  StridedView view = viewOf(value);
  if (!view.isDense()) // A view that no kernel can take in.
    return makeError(ExitCode::Unsupported,
                     value.getDefiningOp()->getName().getStringRef() +
                         " of node '" + nameOf(value.getDefiningOp()) +
                         "' has no kernel");
  int64_t elementBytes =
      byteSize(*interpreter::toDType(tensorType(value).getElementType()));
  return ref(view.base, view.offset * elementBytes);
}

void StageBuffers::finish() {
  std::vector<cost::Lifetime> pieces;
  for (auto &[buffer, lifetime] : lifetimes)
    pieces.push_back(lifetime);
  stage.arenaBytes = std::max(stage.arenaBytes, cost::planArena(pieces));
  for (auto [piece, entry] : llvm::zip_equal(pieces, lifetimes))
    stage.buffers[entry.first].offset = piece.offset;
}

bool StageBuffers::canReplace(Value operand, Value result) const {
  StridedView view = viewOf(operand);
  auto it = buffers.find(view.base);
  if (buffers.contains(result) || view.offset != 0 ||
      byteSizeOf(view.base) != byteSizeOf(result) || it == buffers.end() ||
      !lifetimes.contains(it->second))
    return false;
  SmallVector<Value> seen{view.base};
  Operation *maker = result.getDefiningOp();
  while (!seen.empty())
    for (Operation *user : seen.pop_back_val().getUsers()) {
      auto await = dyn_cast<AwaitOp>(user);
      if (await && await.getStarted() == result)
        continue;
      if (isViewOp(user))
        seen.push_back(user->getResult(0));
      else if (!user->isBeforeInBlock(maker) && user != maker)
        return false;
    }
  return true;
}

} // namespace ax::codegen
