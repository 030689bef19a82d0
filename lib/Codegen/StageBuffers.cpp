//===- StageBuffers.cpp - Where values of a command list lie --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StageBuffers.h"

#include "CommandName.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Local/Local.h"
#include "ax/Support/Error.h"

using namespace mlir;

namespace ax::codegen {

int32_t StageBuffers::add(rt::Space space, int32_t index, int64_t bytes,
                          StringRef name, int64_t offset) {
  rt::Buffer buffer;
  buffer.space = space;
  buffer.index = index;
  buffer.bytes = bytes;
  buffer.offset = offset;
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

/// Returns its number among the kept values.
int32_t StageBuffers::addKept(Value value) {
  rt::Kept kept;
  auto fusion = value.getDefiningOp<FusionOp>();
  kept.name = fusion ? nameOf(fusion) : nameOf(value.getDefiningOp());
  kept.bytes = byteSizeOf(value);
  kept.isOnce = true;
  stage.kept.push_back(std::move(kept));
  return stage.kept.size() - 1;
}

int32_t StageBuffers::placeInKept(Value value, int32_t kept) {
  return place(value, add(rt::Space::Kept, kept, byteSizeOf(value),
                          stage.kept[kept].name));
}

llvm::Expected<int32_t> StageBuffers::of(Value value) {
  if (auto it = buffers.find(value); it != buffers.end())
    return it->second;
  if (auto constant = value.getDefiningOp<ConstantOp>()) {
    auto state = constantState(constant);
    if (!state)
      return state.takeError();
    return place(value, add(rt::Space::State, *state, byteSizeOf(value),
                            tables.program.states[*state].name));
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  PlaceAttr chosen = getPlace(result);
  if (chosen.getKind() == PlaceKind::Operand) {
    Value operand = op->getOperand(chosen.getNumber());
    return place(value, lookup(viewOf(operand).base));
  }
  if (chosen.getKind() == PlaceKind::Kept)
    return placeInKept(value, addKept(value));
  if (chosen.getKind() == PlaceKind::Copy) {
    auto [it, isNew] =
        tables.copies.try_emplace({&stage, chosen.getNumber()}, 0);
    if (isNew)
      it->second = addKept(value);
    return placeInKept(value, it->second);
  }
  assert(chosen.getKind() == PlaceKind::Arena && "results are placed first");
  return place(value, add(rt::Space::Arena, 0, byteSizeOf(value),
                          getNodeName(op), chosen.getNumber()));
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

} // namespace ax::codegen
