//===- EmitScans.cpp - Cumulative, scatter --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementOps.h"
#include "Emitter.h"

using namespace mlir;

namespace ax::codegen {

static Type elementType(Value value) {
  return tensorType(value).getElementType();
}

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

void Emitter::emitUpdate(ScatterKind kind, const RowValue &row,
                         const IndexExpr &offset, Value update, Type type) {
  if (kind != ScatterKind::set) {
    Value old = loadElement(row.base, offset, type);
    BinaryKind combine = kind == ScatterKind::add   ? BinaryKind::add
                         : kind == ScatterKind::mul ? BinaryKind::mul
                         : kind == ScatterKind::max ? BinaryKind::max
                                                    : BinaryKind::min;
    update = writer.binary(combine, old, update, type);
  }
  storeElement(update, row.base, offset, type);
}

Emitter::RowValue Emitter::emitScatterElements(ScatterElementsOp op) {
  RankedTensorType type = tensorType(op->getResult(0));
  RankedTensorType updates = tensorType(op.getUpdates());
  ArrayRef<int64_t> shape = type.getShape();
  Type element = type.getElementType();
  RowValue row = allocateRow(op->getResult(0), {});
  emitNest(op, NestRole::First, shape, {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
             storeElement(pull(op.getOperand(), at), row.base,
                          space.linearize(at, shape), element);
             return {};
           });
  // Updates of one place are along the axis.
  emitOrdered(
      op, NestRole::Update, updates.getShape(),
      [&](unsigned d) { return d == op.getAxis(); },
      [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
        Indices own(at);
        own[op.getAxis()] =
            dynamicIndex(pull(op.getIndices(), at),
                         elementType(op.getIndices()), shape[op.getAxis()]);
        emitUpdate(op.getKind(), row, space.linearize(own, shape),
                   pull(op.getUpdates(), at), element);
        return {};
      });
  return row;
}

Emitter::RowValue Emitter::emitScatterND(ScatterNDOp op) {
  RankedTensorType type = tensorType(op->getResult(0));
  RankedTensorType indexType = tensorType(op.getIndices());
  RankedTensorType updates = tensorType(op.getUpdates());
  ArrayRef<int64_t> shape = type.getShape();
  Type element = type.getElementType();
  unsigned rank = indexType.getRank() - 1;
  RowValue row = allocateRow(op->getResult(0), {});
  emitNest(op, NestRole::First, shape, {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
             storeElement(pull(op.getOperand(), at), row.base,
                          space.linearize(at, shape), element);
             return {};
           });
  emitOrdered(
      op, NestRole::Update, updates.getShape(),
      [&](unsigned d) { return d < rank; },
      [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
        Indices which(at.take_front(rank));
        which.push_back(IndexExpr());
        Indices own;
        for (int64_t k = 0; k != indexType.getShape().back(); ++k) {
          which.back() = IndexExpr(k);
          own.push_back(dynamicIndex(pull(op.getIndices(), which),
                                     indexType.getElementType(), shape[k]));
        }
        own.append(at.begin() + rank, at.end());
        emitUpdate(op.getKind(), row, space.linearize(own, shape),
                   pull(op.getUpdates(), at), element);
        return {};
      });
  return row;
}

} // namespace ax::codegen
