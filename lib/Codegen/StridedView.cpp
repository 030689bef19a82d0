//===- StridedView.cpp - Values that others are seen as -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StridedView.h"

#include "ax/Interpreter/Elements.h"

using namespace mlir;

namespace ax::codegen {

bool isViewOp(Operation *op) { return isView(op); }

int64_t byteSizeOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() *
         byteSize(*interpreter::toDType(type.getElementType()));
}

/// The result of the view op `op`, given its operand; nothing when strides
/// cannot express it.
static std::optional<StridedView> through(Operation *op, StridedView in) {
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  StridedView out{in.base, in.offset, SmallVector<int64_t>(shape), {}};
  if (isa<ReshapeOp>(op)) {
    auto strides = reshapeStrides(in.sizes, in.strides, shape);
    if (!strides)
      return std::nullopt;
    out.strides = *strides;
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (int64_t from : transpose.getPermutation())
      out.strides.push_back(in.strides[from]);
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    for (auto [i, start] : llvm::enumerate(slice.getStarts())) {
      int64_t step = slice.getSteps()[i];
      if (step < 0 && shape[i] > 1)
        return std::nullopt;
      out.offset += start * in.strides[i];
      out.strides.push_back(in.strides[i] * (shape[i] > 1 ? step : 1));
    }
  } else {
    size_t added = shape.size() - in.sizes.size();
    out.strides.assign(shape.size(), 0);
    for (auto [i, size] : llvm::enumerate(in.sizes))
      if (size == shape[added + i])
        out.strides[added + i] = in.strides[i];
  }
  return out;
}

StridedView viewOf(Value value, const MemoryValues &inMemory) {
  Operation *op = value.getDefiningOp();
  if (!isViewOp(op) || inMemory.contains(value))
    return StridedView::whole(value);
  if (auto view = through(op, viewOf(op->getOperand(0), inMemory)))
    return *view;
  return StridedView::whole(value);
}

SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  SmallVector<Value> open{value};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isViewOp(user))
        open.push_back(user->getResult(0));
      else
        readers.push_back(user);
    }
  return readers;
}

} // namespace ax::codegen
