//===- EmitRows.cpp - Values computed once per outer iteration ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementOps.h"
#include "Emitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ax::codegen {

static Type elementType(Value value) {
  return tensorType(value).getElementType();
}

bool isRowOp(Operation *op) {
  return isa<ReduceOp, CumulativeOp>(op) || isScatter(op);
}

bool isScatter(Operation *op) {
  return isa<ScatterElementsOp, ScatterNDOp>(op);
}

/// How many leading dimensions of the results are independent of each other,
/// and lie before all that the op runs along.
static unsigned numIndependent(Operation *op, Dealing dealing) {
  return TypeSwitch<Operation *, unsigned>(op)
      .Case<ReduceOp>([&](ReduceOp o) -> unsigned {
        // Neighbours may sum next to each other what lies apart.
        if (dealing == Dealing::Elements)
          return tensorType(o.getResult()).getRank();
        // Dimensions before the first reduced one have the same number in the
        // result.
        return o.getDims().empty() ? tensorType(o.getOperand()).getRank()
                                   : o.getDims().front();
      })
      .Case<CumulativeOp>([](auto o) -> unsigned { return o.getDim(); })
      .Case<ScatterElementsOp, ScatterNDOp>([](auto) { return 0u; })
      .Default([](Operation *o) -> unsigned {
        return tensorType(o->getResult(0)).getRank();
      });
}

Value Emitter::pullRow(OpResult value, ArrayRef<IndexExpr> indices) {
  const RowValue &row = getRowValue(value.getOwner(), indices);
  if (row.isScalar)
    return row.scalar;
  return loadElement(row.base, rowOffset(row, indices), elementType(value));
}

IndexExpr Emitter::rowOffset(const RowValue &row, ArrayRef<IndexExpr> indices) {
  IndexExpr offset;
  for (auto [index, stride] : llvm::zip(indices, row.strides))
    offset = offset + index * stride;
  return offset;
}

/// Leading dimensions whose index is that of the row (`fixed`) are left out of
/// the array; it holds all elements along the others.
Emitter::RowValue &Emitter::getRowValue(Operation *op,
                                        ArrayRef<IndexExpr> indices) {
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  unsigned independent = numIndependent(op, nests.dealing);
  Indices fixed;
  while (fixed.size() < std::min<size_t>(independent, shape.size()) &&
         space.dependsOnlyOn(indices[fixed.size()], outer))
    fixed.push_back(indices[fixed.size()]);
  if (nests.iterations > 1 && !isInParts(op)) {
    // Otherwise each outer iteration would do the same again.
    for (auto var : outer.vars)
      wantsFewer |=
          var >= 0 && llvm::none_of(fixed, [&](const IndexExpr &index) {
            return index.coefficient(var) != 0;
          });
    for (size_t d = fixed.size(); d != shape.size(); ++d)
      wantsFewer |= space.dependsOn(indices[d], outer);
  }
  // What is found along with another comes with that.
  if (ReduceOp max = maximaAlong.lookup(op))
    getRowValue(max, indices);
  RowKey key{op, fixed};
  auto it = rowValues.find(key);
  if (it == rowValues.end()) {
    RowValue value;
    atRowLevel([&] { value = emitRowValue(op, fixed); });
    it = rowValues.emplace(key, std::move(value)).first;
  }
  return it->second;
}

Emitter::RowValue Emitter::emitRowValue(Operation *op,
                                        ArrayRef<IndexExpr> fixed) {
  return TypeSwitch<Operation *, RowValue>(op)
      .Case<ReduceOp>([&](ReduceOp o) { return emitReduce(o, fixed); })
      .Case<CumulativeOp>(
          [&](CumulativeOp o) { return emitCumulative(o, fixed); })
      .Case<ScatterElementsOp>(
          [&](ScatterElementsOp o) { return emitScatterElements(o); })
      .Case<ScatterNDOp>([&](ScatterNDOp o) { return emitScatterND(o); })
      .Default([&](Operation *o) { return emitKept(o, fixed); });
}

/// Places a row in the result that this value is, when the row lies there in
/// one piece; in scratch otherwise.
Emitter::RowValue Emitter::allocateRow(OpResult value,
                                       ArrayRef<IndexExpr> fixed) {
  RankedTensorType type = tensorType(value);
  RowValue row;
  row.strides.assign(type.getRank(), 0);
  int64_t count = 1;
  for (int64_t d = type.getRank() - 1; d >= int64_t(fixed.size()); --d) {
    row.strides[d] = count;
    count *= type.getDimSize(d);
  }
  IndexExpr start;
  int64_t stride = count;
  for (int64_t d = int64_t(fixed.size()) - 1; d >= 0; --d) {
    start = start + fixed[d] * stride;
    stride *= type.getDimSize(d);
  }
  for (auto [i, result] : llvm::enumerate(yield->getOperands())) {
    if (result != value || resultDone[i] ||
        type.getNumElements() != count * nests.iterations ||
        !(start == space.linear(outer) * count))
      continue;
    resultDone[i] = 1;
    row.base = writer.address(writer.tensor(numOperands + i),
                              space.materialize(start), type.getElementType());
    return row;
  }
  row.base = allocateScratch(count, type.getElementType());
  return row;
}

Value Emitter::allocateScratch(int64_t count, Type element) {
  Value base = writer.scratch(scratchBytes);
  int64_t bytes = count * storageBytes(element);
  scratchBytes += (bytes + 63) / 64 * 64;
  return base;
}

Emitter::RowValue Emitter::emitKept(Operation *op, ArrayRef<IndexExpr> fixed) {
  auto value = op->getResult(0);
  RankedTensorType type = tensorType(value);
  RowValue row = allocateRow(value, fixed);
  SmallVector<int64_t> sizes(type.getShape().drop_front(fixed.size()));
  Operation *previous = std::exchange(inKept, op);
  emitNest(op, NestRole::Whole, sizes, {},
           [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
             Indices all(fixed);
             llvm::append_range(all, indices);
             storeElement(pull(value, all), row.base,
                          space.linearize(indices, sizes),
                          type.getElementType());
             return {};
           });
  inKept = previous;
  return row;
}

} // namespace ax::codegen
