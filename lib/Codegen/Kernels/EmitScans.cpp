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

bool hasScattersInParts(FusionOp fusion) {
  Block &block = fusion.getBody().front();
  auto isResult = [&](Operation &op) {
    return op.hasOneUse() && *op.user_begin() == block.getTerminator();
  };
  bool hasAny = false;
  for (Operation &op : block)
    if (isScatter(&op)) {
      hasAny = true;
      if (!isResult(op))
        return false;
    }
  return hasAny;
}

/// On a GPU each iteration goes through all updates, and does those of its part
/// of the result.
bool Emitter::isInParts(Operation *op) const {
  return nests.dealing == Dealing::Elements && nests.iterations > 1 &&
         scattersInParts && isScatter(op);
}

Emitter::Part Emitter::emitBeforeUpdates(Operation *op, Value operand) {
  OpResult result = op->getResult(0);
  RankedTensorType type = tensorType(result);
  ArrayRef<int64_t> shape = type.getShape();
  Type element = type.getElementType();
  Part part{{}, {}, type.getNumElements()};
  SmallVector<int64_t> sizes(shape);
  if (isInParts(op)) {
    part.count /= nests.iterations;
    part.start = space.linear(outer) * part.count;
    sizes = splitShape(shape, nests.iterations).second;
    unsigned number = result.getUses().begin()->getOperandNumber();
    resultDone[number] = 1;
    part.row.base = writer.address(writer.tensor(numOperands + number),
                                   space.materialize(part.start), element);
  } else {
    part.row = allocateRow(result, {});
  }
  emitNest(op, NestRole::First, sizes, {},
           [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
             if (!isInParts(op)) {
               storeElement(pull(operand, at), part.row.base,
                            space.linearize(at, shape), element);
               return {};
             }
             IndexExpr offset = space.linearize(at, sizes);
             Indices own = space.delinearize(part.start + offset, shape);
             storeElement(pull(operand, own), part.row.base, offset, element);
             return {};
           });
  return part;
}

void Emitter::emitUpdate(ScatterKind kind, const Part &part,
                         const IndexExpr &offset, function_ref<Value()> update,
                         Type type) {
  auto store = [&](const IndexExpr &at) {
    Value value = update();
    if (kind != ScatterKind::set) {
      Value old = loadElement(part.row.base, at, type);
      BinaryKind combine = kind == ScatterKind::add   ? BinaryKind::add
                           : kind == ScatterKind::mul ? BinaryKind::mul
                           : kind == ScatterKind::max ? BinaryKind::max
                                                      : BinaryKind::min;
      value = writer.binary(combine, old, value, type);
    }
    storeElement(value, part.row.base, at, type);
  };
  if (part.start == IndexExpr()) {
    store(offset);
    return;
  }
  // What a choice gives is of no use here: what counts is the store.
  IndexExpr at = offset + part.start * -1;
  guarded(
      {{at, 0, part.count}}, type,
      [&] {
        store(at);
        return writer.zero(type);
      },
      [&] { return writer.zero(type); });
}

void Emitter::emitUpdates(const Updates &updates, const Part &part) {
  if (isInParts(updates.op)) {
    emitUpdatesOfPart(updates, part);
    return;
  }
  emitOrdered(updates.op, NestRole::Update, updates.sizes, updates.isOrdered,
              [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
                emitUpdate(
                    updates.kind, part, updates.offsetOf(at),
                    [&] { return updates.valueOf(at); }, updates.type);
                return {};
              });
}

/// Of all updates a part has few. So several are looked at together, whose
/// loads need not wait for each other, and mostly none of them is the part's.
void Emitter::emitUpdatesOfPart(const Updates &updates, const Part &part) {
  SmallVector<int64_t> ordered, others;
  int64_t count = 1, together = 16;
  for (auto [d, size] : llvm::enumerate(updates.sizes))
    if (updates.isOrdered(d)) {
      ordered.push_back(size);
      count *= size;
    } else {
      others.push_back(size);
    }
  while (count % together != 0)
    together /= 2;
  auto pointOf = [&](ArrayRef<IndexExpr> atOthers, const IndexExpr &number) {
    Indices atOrdered = space.delinearize(number, ordered), all;
    const IndexExpr *i = atOrdered.begin(), *j = atOthers.begin();
    for (unsigned d = 0; d != updates.sizes.size(); ++d)
      all.push_back(updates.isOrdered(d) ? *i++ : *j++);
    return all;
  };
  auto doSome = [&](ArrayRef<IndexExpr> atOthers, const IndexExpr &first) {
    std::vector<Indices> points;
    std::vector<IndexExpr> offsets;
    Value hits = writer.number(0);
    for (int64_t k = 0; k != together; ++k) {
      points.push_back(pointOf(atOthers, first + IndexExpr(k)));
      offsets.push_back(updates.offsetOf(points.back()));
      Value at = space.materialize(offsets.back() + part.start * -1);
      Value isIn = writer.both(writer.isAtLeast(at, writer.number(0)),
                               writer.isLess(at, writer.number(part.count)));
      hits = writer.select(isIn, writer.number(1), hits);
    }
    choose(
        writer.isAtLeast(hits, writer.number(1)), updates.type,
        [&] {
          for (auto [point, offset] : llvm::zip_equal(points, offsets))
            emitUpdate(
                updates.kind, part, offset,
                [&, &point = point] { return updates.valueOf(point); },
                updates.type);
          return writer.zero(updates.type);
        },
        [&] { return writer.zero(updates.type); });
  };
  emitNest(updates.op, NestRole::Update, others, {},
           [&](ArrayRef<IndexExpr> atOthers, ValueRange) -> Values {
             emitNest(updates.op, NestRole::InOrder, {count / together}, {},
                      [&](ArrayRef<IndexExpr> group, ValueRange) -> Values {
                        doSome(atOthers, group[0] * together);
                        return {};
                      });
             return {};
           });
}

Emitter::RowValue Emitter::emitScatterElements(ScatterElementsOp op) {
  RankedTensorType type = tensorType(op->getResult(0));
  RankedTensorType updates = tensorType(op.getUpdates());
  ArrayRef<int64_t> shape = type.getShape();
  Part part = emitBeforeUpdates(op, op.getOperand());
  auto offsetOf = [&](ArrayRef<IndexExpr> at) {
    Indices own(at);
    own[op.getAxis()] =
        dynamicIndex(pull(op.getIndices(), at), elementType(op.getIndices()),
                     shape[op.getAxis()]);
    return space.linearize(own, shape);
  };
  emitUpdates(
      {op, op.getKind(), type.getElementType(), updates.getShape(),
       [&](unsigned d) { return d == op.getAxis(); }, offsetOf,
       [&](ArrayRef<IndexExpr> at) { return pull(op.getUpdates(), at); }},
      part);
  return part.row;
}

Emitter::RowValue Emitter::emitScatterND(ScatterNDOp op) {
  RankedTensorType type = tensorType(op->getResult(0));
  RankedTensorType indexType = tensorType(op.getIndices());
  RankedTensorType updates = tensorType(op.getUpdates());
  ArrayRef<int64_t> shape = type.getShape();
  unsigned rank = indexType.getRank() - 1;
  Part part = emitBeforeUpdates(op, op.getOperand());
  auto offsetOf = [&](ArrayRef<IndexExpr> at) {
    Indices which(at.take_front(rank));
    which.push_back(IndexExpr());
    Indices own;
    for (int64_t k = 0; k != indexType.getShape().back(); ++k) {
      which.back() = IndexExpr(k);
      own.push_back(dynamicIndex(pull(op.getIndices(), which),
                                 indexType.getElementType(), shape[k]));
    }
    own.append(at.begin() + rank, at.end());
    return space.linearize(own, shape);
  };
  emitUpdates(
      {op, op.getKind(), type.getElementType(), updates.getShape(),
       [&](unsigned d) { return d < rank; }, offsetOf,
       [&](ArrayRef<IndexExpr> at) { return pull(op.getUpdates(), at); }},
      part);
  return part.row;
}

} // namespace ax::codegen
