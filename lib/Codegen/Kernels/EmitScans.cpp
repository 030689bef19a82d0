//===- EmitScans.cpp - Sums, products, maxima so far ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementOps.h"
#include "Emitter.h"

using namespace mlir;

namespace ax::codegen {

Emitter::RowValue Emitter::emitCumulative(CumulativeOp op,
                                          ArrayRef<IndexExpr> fixed) {
  RankedTensorType type = tensorType(op.getOperand());
  Type element = type.getElementType();
  unsigned first = fixed.size(), along = op.getDim() - first;
  int64_t size = type.getDimSize(op.getDim());
  SmallVector<int64_t> sizes(type.getShape().drop_front(first));
  RowValue row = allocateRow(op->getResult(0), fixed);

  auto at = [&](ArrayRef<IndexExpr> indices, const IndexExpr &step) {
    Indices own(indices);
    own[along] = op.getReverse() ? step * -1 + IndexExpr(size - 1) : step;
    return own;
  };
  auto operandAt = [&](ArrayRef<IndexExpr> own) {
    Indices all(fixed);
    llvm::append_range(all, own);
    return pull(op.getOperand(), all);
  };
  auto resultAt = [&](ArrayRef<IndexExpr> own) {
    return space.linearize(own, sizes);
  };
  SmallVector<int64_t> firstSizes(sizes), restSizes(sizes);
  firstSizes[along] = 1;
  restSizes[along] = size - 1;
  emitNest(op, NestRole::First, firstSizes, {},
           [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
             Indices own = at(indices, IndexExpr(0));
             Value start = op.getExclusive()
                               ? writer.neutral(op.getKind(), element)
                               : operandAt(own);
             storeElement(start, row.base, resultAt(own), element);
             return {};
           });
  if (size > 1)
    emitOrdered(
        op, NestRole::Whole, restSizes, [&](unsigned d) { return d == along; },
        [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
          Indices own = at(indices, indices[along] + IndexExpr(1));
          Indices before = at(indices, indices[along]);
          Value sum = loadElement(row.base, resultAt(before), element);
          Value x = operandAt(op.getExclusive() ? before : own);
          storeElement(writer.combine(op.getKind(), sum, x, element), row.base,
                       resultAt(own), element);
          return {};
        });
  return row;
}

} // namespace ax::codegen
