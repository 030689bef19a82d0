//===- Checks.cpp - Indices into other tensors ----------------------------===//
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

LogicalResult LookUpOp::verify() {
  auto table = cast<RankedTensorType>(getTable().getType());
  auto bytes = cast<RankedTensorType>(getBytes().getType());
  if (!bytes.getElementType().isInteger(8))
    return emitOpError("looks up integers of eight bits, and not ") << bytes;
  if (table.getShape() != ArrayRef<int64_t>{256} ||
      !table.getElementType().isInteger(8))
    return emitOpError("needs a table of 256 integers of eight bits, and has ")
           << table;
  if (getType() != bytes.clone(table.getElementType()))
    return emitOpError("gives ")
           << bytes.clone(table.getElementType()) << ", and not " << getType();
  return success();
}

LogicalResult ReportFaultOp::verify() {
  auto type = cast<RankedTensorType>(getWord().getType());
  if (type.getShape() != ArrayRef<int64_t>{2} ||
      !type.getElementType().isInteger(64))
    return emitOpError("needs a place and an index, and has ") << type;
  return verifySizes(*this, getIndices(), getSizes());
}
