//===- EmitScatters.cpp - Scatters ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scatter's updates are done in order of position, which says what a sum is
// rounded to and which of two values stays. A processor goes through them, and
// so do the threads of a GPU's group, each through those of its own columns.
//
//===----------------------------------------------------------------------===//

#include "ElementOps.h"
#include "Scatters.h"

using namespace mlir;

namespace ax::codegen {

static Type elementType(Value value) {
  return tensorType(value).getElementType();
}

void Emitter::emitOperand(const Scatter &scatter, Value base) {
  emitNest(scatter.op, NestRole::First, scatter.shape, {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
             storeElement(pull(scatter.operand, at), base,
                          space.linearize(at, scatter.shape), scatter.type());
             return {};
           });
}

void Emitter::emitUpdate(const Scatter &scatter, Value base,
                         const IndexExpr &offset, Value update) {
  Type type = scatter.type();
  if (scatter.kind != ScatterKind::set) {
    Value old = loadElement(base, offset, type);
    BinaryKind combine = scatter.kind == ScatterKind::add   ? BinaryKind::add
                         : scatter.kind == ScatterKind::mul ? BinaryKind::mul
                         : scatter.kind == ScatterKind::max ? BinaryKind::max
                                                            : BinaryKind::min;
    update = writer.binary(combine, old, update, type);
  }
  storeElement(update, base, offset, type);
}

Emitter::RowValue Emitter::emitScatter(const Scatter &scatter) {
  OpResult result = scatter.op->getResult(0);
  if (!isInParts(scatter.op)) {
    RowValue row = allocateRow(result, {});
    emitOperand(scatter, row.base);
    emitOrdered(
        scatter.op, NestRole::Update, scatter.sizes,
        [&](unsigned d) { return scatter.isOrdered(d); },
        [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
          emitUpdate(scatter, row.base,
                     space.linearize(scatter.placeOf(at), scatter.shape),
                     scatter.valueOf(at));
          return {};
        });
    return row;
  }
  unsigned number = result.getUses().begin()->getOperandNumber();
  resultDone[number] = 1;
  RowValue row;
  row.base = writer.tensor(numOperands + number);
  Share share = shareOf(scatter);
  emitOwnOperand(scatter, share, row.base);
  if (llvm::is_contained(scatter.sizes, 0))
    return row;
  atAnchor([&] {
    if (scatter.goTogether)
      emitUpdatesTogether(scatter, share, row.base);
    else
      emitUpdatesByColumn(scatter, share, row.base);
  });
  return row;
}

Emitter::RowValue Emitter::emitScatterElements(ScatterElementsOp op) {
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  ArrayRef<int64_t> sizes = tensorType(op.getUpdates()).getShape();
  unsigned axis = op.getAxis();
  auto placeOf = [&](ArrayRef<IndexExpr> at) {
    Indices own(at);
    own[axis] = dynamicIndex(pull(op.getIndices(), at),
                             elementType(op.getIndices()), shape[axis]);
    return own;
  };
  auto valueOf = [&](ArrayRef<IndexExpr> at) {
    return pull(op.getUpdates(), at);
  };
  Scatter scatter{op,
                  op.getKind(),
                  op.getOperand(),
                  shape,
                  sizes,
                  axis,
                  /*numRowDims=*/1,
                  /*numOrdered=*/1,
                  /*goTogether=*/false,
                  placeOf,
                  valueOf};
  scatter.goTogether = llvm::all_of(scatter.columnSizes(),
                                    [](int64_t size) { return size == 1; });
  return emitScatter(scatter);
}

Emitter::RowValue Emitter::emitScatterND(ScatterNDOp op) {
  RankedTensorType indexType = tensorType(op.getIndices());
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  ArrayRef<int64_t> sizes = tensorType(op.getUpdates()).getShape();
  unsigned rank = indexType.getRank() - 1, depth = indexType.getShape().back();
  auto placeOf = [&](ArrayRef<IndexExpr> at) {
    Indices which(at.take_front(rank)), own;
    which.push_back(IndexExpr());
    for (unsigned k = 0; k != depth; ++k) {
      which.back() = IndexExpr(k);
      own.push_back(dynamicIndex(pull(op.getIndices(), which),
                                 indexType.getElementType(), shape[k]));
    }
    own.append(at.begin() + rank, at.end());
    return own;
  };
  auto valueOf = [&](ArrayRef<IndexExpr> at) {
    return pull(op.getUpdates(), at);
  };
  return emitScatter({op, op.getKind(), op.getOperand(), shape, sizes,
                      /*firstRowDim=*/0, depth, /*numOrdered=*/rank,
                      /*goTogether=*/true, placeOf, valueOf});
}

} // namespace ax::codegen
