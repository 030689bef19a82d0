//===- Groups.cpp - Products of rows with their groups' matrices ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Local/Local.h"

using namespace mlir;
using namespace ax;

/// x [rows, k], y [rows, n] and w of [groups, k, n], or [groups, n, k], have
/// one element type, but that the last of them, the result, may be wider.
template <typename Op>
static LogicalResult verifyGroups(Op op, Value xValue, Value wValue,
                                  Value yValue) {
  auto x = tensorType(xValue), w = tensorType(wValue), y = tensorType(yValue);
  auto groups = tensorType(op.getGroups());
  if (x.getRank() != 2 || w.getRank() != 3 || y.getRank() != 2)
    return op.emitOpError("needs rows, and a matrix for each group, and has ")
           << x << ", " << w << " and " << y;
  int64_t k = op.getTransposeW() ? 2 : 1, rows = x.getDimSize(0);
  if (w.getDimSize(k) != x.getDimSize(1) ||
      w.getDimSize(3 - k) != y.getDimSize(1) || y.getDimSize(0) != rows)
    return op.emitOpError("has rows ")
           << x << " and " << y << ", which do not fit matrices " << w;
  if (groups.getShape() != ArrayRef<int64_t>{rows})
    return op.emitOpError("has groups ") << groups << " of " << rows << " rows";
  if (rows > 0 && w.getDimSize(0) == 0)
    return op.emitOpError("has rows, and no group");
  auto result = cast<RankedTensorType>(op.getType()).getElementType();
  for (Value factor : op->getOperands().take_front(2)) {
    Type type = tensorType(factor).getElementType();
    bool isWider = result.isF32() && isNarrowFloat(type);
    if (type != x.getElementType() || (type != result && !isWider))
      return op.emitOpError("cannot multiply ")
             << x.getElementType() << " by " << type << " to " << result;
  }
  return success();
}

LogicalResult GroupedMatmulOp::verify() {
  return verifyGroups(*this, getX(), getW(), getResult());
}

LogicalResult GroupedWeightGradientOp::verify() {
  return verifyGroups(*this, getX(), getResult(), getGradient());
}
