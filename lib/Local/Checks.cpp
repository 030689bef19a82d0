//===- Checks.cpp - Checks of indices, and what they find -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Local/Local.h"

using namespace mlir;
using namespace ax;

/// There is a size for each of `indices`, in turns along the last dimension.
static LogicalResult verifySizes(Operation *op, Type indices,
                                 ArrayRef<int64_t> sizes) {
  auto type = dyn_cast<RankedTensorType>(indices);
  if (!type || !type.getElementType().isSignlessInteger())
    return op->emitOpError("checks no indices, but ") << indices;
  bool isEven = sizes.size() == 1 ||
                (!sizes.empty() && type.getRank() > 0 &&
                 type.getShape().back() == static_cast<int64_t>(sizes.size()));
  if (!isEven)
    return op->emitOpError("has ")
           << sizes.size() << " sizes for indices of type " << indices;
  return success();
}

LogicalResult CheckIndicesOp::verify() {
  return verifySizes(*this, getIndices().getType(), getSizes());
}

LogicalResult ReportFaultOp::verify() {
  auto type = cast<RankedTensorType>(getWord().getType());
  if (type.getShape() != ArrayRef<int64_t>{2} ||
      !type.getElementType().isInteger(64))
    return emitOpError("needs a place and an index, and has ") << type;
  return verifySizes(*this, getIndices(), getSizes());
}
