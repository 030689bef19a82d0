//===- EmitScans.cpp - Cumulative, top_k, scatter -------------------------===//

#include "ElementOps.h"
#include "Emitter.h"
#include "HostFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

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
  RowArray row = allocateRow(op->getResult(0), fixed);

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
    return space->linearize(own, sizes);
  };
  SmallVector<int64_t> firstSizes(sizes), restSizes(sizes);
  firstSizes[along] = 1;
  restSizes[along] = size - 1;
  emitNest(op, 0, firstSizes, {},
           [&](ArrayRef<IndexExpr> indices, ValueRange) -> SmallVector<Value> {
             Indices own = at(indices, IndexExpr(0));
             Value start = op.getExclusive()
                               ? emitNeutral(b, op.getKind(), element)
                               : operandAt(own);
             storeElement(start, row.base, resultAt(own), element);
             return {};
           });
  if (size > 1)
    emitNest(
        op, 1, restSizes, {},
        [&](ArrayRef<IndexExpr> indices, ValueRange) -> SmallVector<Value> {
          Indices own = at(indices, indices[along] + IndexExpr(1));
          Indices before = at(indices, indices[along]);
          Value sum = loadElement(row.base, resultAt(before), element);
          Value x = operandAt(op.getExclusive() ? before : own);
          storeElement(emitCombine(b, op.getKind(), sum, x, element), row.base,
                       resultAt(own), element);
          return {};
        });
  return {row};
}

/// Each row is written to scratch, and a function of the host picks from it.
Emitter::RowValue Emitter::emitTopK(TopKOp op, ArrayRef<IndexExpr> fixed) {
  RankedTensorType type = tensorType(op.getOperand());
  Type element = type.getElementType(), i64 = b.getI64Type();
  unsigned first = fixed.size(), along = op.getDim() - first;
  int64_t size = type.getDimSize(op.getDim()), k = op.getK();
  RowArray values = allocateRow(op->getResult(0), fixed);
  RowArray indices = allocateRow(op->getResult(1), fixed);
  Type pointer = scratch.getType();
  auto room = [&](int64_t bytes) -> Value {
    Value at = LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), scratch,
                                   ArrayRef<LLVM::GEPArg>{number(scratchBytes)},
                                   LLVM::GEPNoWrapFlags::inbounds);
    scratchBytes += (bytes + 63) / 64 * 64;
    return at;
  };
  Value input = room(size * storageBytes(element));
  Value bestValues = room(k * storageBytes(element));
  Value bestIndices = room(k * 8);

  if (!module.lookupSymbol(topKSymbol)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::LLVMFuncOp::create(
        b, loc, topKSymbol,
        LLVM::LLVMFunctionType::get(
            LLVM::LLVMVoidType::get(b.getContext()),
            {i64, pointer, i64, i64, i64, pointer, pointer}));
  }
  SmallVector<int64_t> sizes(type.getShape().drop_front(first));
  sizes[along] = 1;
  SmallVector<int64_t> resultSizes(sizes);
  resultSizes[along] = k;
  emitNest(
      op, 0, sizes, {},
      [&](ArrayRef<IndexExpr> lane, ValueRange) -> SmallVector<Value> {
        emitNest(op, 1, {size}, {},
                 [&](ArrayRef<IndexExpr> at, ValueRange) -> SmallVector<Value> {
                   Indices all(fixed);
                   llvm::append_range(all, lane);
                   all[op.getDim()] = at[0];
                   storeElement(pull(op.getOperand(), all), input, at[0],
                                element);
                   return {};
                 });
        LLVM::CallOp::create(b, loc, TypeRange(), topKSymbol,
                             ValueRange{number(int64_t(hostTypeOf(element))),
                                        input, number(size), number(k),
                                        number(op.getSmallest()), bestValues,
                                        bestIndices});
        emitNest(op, 2, {k}, {},
                 [&](ArrayRef<IndexExpr> at, ValueRange) -> SmallVector<Value> {
                   Indices own(lane);
                   own[along] = at[0];
                   IndexExpr offset = space->linearize(own, resultSizes);
                   storeElement(loadElement(bestValues, at[0], element),
                                values.base, offset, element);
                   storeElement(loadElement(bestIndices, at[0], i64),
                                indices.base, offset, i64);
                   return {};
                 });
        return {};
      });
  return {values, indices};
}

void Emitter::emitUpdate(ScatterKind kind, const RowArray &row,
                         const IndexExpr &offset, Value update, Type type) {
  if (kind != ScatterKind::set) {
    Value old = loadElement(row.base, offset, type);
    BinaryKind combine = kind == ScatterKind::add   ? BinaryKind::add
                         : kind == ScatterKind::mul ? BinaryKind::mul
                         : kind == ScatterKind::max ? BinaryKind::max
                                                    : BinaryKind::min;
    update = emitBinary(b, combine, old, update, type);
  }
  storeElement(update, row.base, offset, type);
}

Emitter::RowValue Emitter::emitScatterElements(ScatterElementsOp op) {
  RankedTensorType type = tensorType(op->getResult(0));
  RankedTensorType updates = tensorType(op.getUpdates());
  ArrayRef<int64_t> shape = type.getShape();
  Type element = type.getElementType();
  RowArray row = allocateRow(op->getResult(0), {});
  emitNest(op, 0, shape, {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> SmallVector<Value> {
             storeElement(pull(op.getOperand(), at), row.base,
                          space->linearize(at, shape), element);
             return {};
           });
  emitNest(op, 1, updates.getShape(), {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> SmallVector<Value> {
             Indices own(at);
             own[op.getAxis()] = dynamicIndex(pull(op.getIndices(), at),
                                              elementType(op.getIndices()),
                                              shape[op.getAxis()]);
             emitUpdate(op.getKind(), row, space->linearize(own, shape),
                        pull(op.getUpdates(), at), element);
             return {};
           });
  return {row};
}

Emitter::RowValue Emitter::emitScatterND(ScatterNDOp op) {
  RankedTensorType type = tensorType(op->getResult(0));
  RankedTensorType indexType = tensorType(op.getIndices());
  RankedTensorType updates = tensorType(op.getUpdates());
  ArrayRef<int64_t> shape = type.getShape();
  Type element = type.getElementType();
  unsigned rank = indexType.getRank() - 1;
  RowArray row = allocateRow(op->getResult(0), {});
  emitNest(op, 0, shape, {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> SmallVector<Value> {
             storeElement(pull(op.getOperand(), at), row.base,
                          space->linearize(at, shape), element);
             return {};
           });
  emitNest(op, 1, updates.getShape(), {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> SmallVector<Value> {
             Indices which(at.take_front(rank));
             which.push_back(IndexExpr());
             Indices own;
             for (int64_t k = 0; k != indexType.getShape().back(); ++k) {
               which.back() = IndexExpr(k);
               own.push_back(dynamicIndex(pull(op.getIndices(), which),
                                          indexType.getElementType(),
                                          shape[k]));
             }
             own.append(at.begin() + rank, at.end());
             emitUpdate(op.getKind(), row, space->linearize(own, shape),
                        pull(op.getUpdates(), at), element);
             return {};
           });
  return {row};
}

} // namespace ax::codegen
