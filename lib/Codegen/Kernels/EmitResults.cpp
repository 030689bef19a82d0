//===- EmitResults.cpp - What a kernel stores -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results with as many elements share a nest. So does a reduction of rows of as
// many that is a result, too (`findBeside`), where a GPU's threads do a row
// together: they have its elements in registers. E.g. of a row x
//
//   q = cast (x * scale) to f8,   largest = maximum of |x|
//
// is one nest that loads x, stores q, and carries the largest so far.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;

namespace ax::codegen {

/// The operation, if result `number` is no more than result `other` in another
/// order, and is to be stored along with it: a GPU's thread has the element
/// then, and need not make it again for each of the two. The other one is none
/// that is stored so itself.
TransposeOp Emitter::transposedFrom(unsigned number, unsigned other) {
  Value origin = yield->getOperand(other);
  auto transpose = yield->getOperand(number).getDefiningOp<TransposeOp>();
  bool isStoredAlong = transpose && nests.dealing == Dealing::Elements &&
                       !hasRows && transpose.getOperand() == origin &&
                       !origin.getDefiningOp<TransposeOp>();
  return isStoredAlong ? transpose : TransposeOp();
}

/// A reduction that is found along with results of so many elements, if there
/// is one that has not been.
ReduceOp Emitter::findBesideOf(int64_t elements) const {
  if (elements <= nests.iterations || nests.group.isColumn())
    return {};
  for (ReduceOp reduce : beside)
    if (tensorType(reduce.getOperand()).getNumElements() == elements &&
        tensorType(reduce.getResult()).getNumElements() == nests.iterations &&
        llvm::none_of(rowValues, [&](const auto &row) {
          return row.first.first == reduce;
        }))
      return reduce;
  return {};
}

/// The place of the element `inner` of this iteration in a result.
IndexExpr Emitter::offsetInResult(unsigned number, const IndexExpr &inner) {
  int64_t points = tensorType(yield->getOperand(number)).getNumElements();
  return space.linear(outer) * (points / nests.iterations) + inner;
}

Indices Emitter::indicesInResult(unsigned number, const IndexExpr &inner) {
  return space.delinearize(offsetInResult(number, inner),
                           tensorType(yield->getOperand(number)).getShape());
}

/// An element of each of them.
void Emitter::storeResults(ArrayRef<unsigned> members, const IndexExpr &inner) {
  for (unsigned i : members) {
    if (llvm::any_of(members, [&](unsigned other) {
          return transposedFrom(i, other) != nullptr;
        }))
      continue;
    Value value = stored[i];
    Indices indices = indicesInResult(i, inner);
    Value number = pullBroadcast(value, indices);
    storeElement(number, writer.tensor(numOperands + i),
                 offsetInResult(i, inner), tensorType(value).getElementType());
    for (unsigned other : members)
      if (TransposeOp transpose = transposedFrom(other, i))
        storeTransposed(number, other, transpose, indices);
  }
}

/// Row values that lie as the result does go there at once.
void Emitter::emitRowResults(SmallVectorImpl<unsigned> &members,
                             LoopPlan &plan) {
  IndexSpace::Nest probe = space.addNest(plan, false);
  for (auto [first, last] : plan.groups())
    space.bindGroup(probe, first, writer.number(0));
  for (unsigned i : members) {
    auto value = dyn_cast<OpResult>(yield->getOperand(i));
    if (value && (isRowOp(value.getOwner()) || kept.contains(value.getOwner())))
      getRowValue(value.getOwner(), indicesInResult(i, space.linear(probe)));
  }
  llvm::erase_if(members, [&](unsigned i) { return resultDone[i] != 0; });
}

/// A nest that stores results, and finds `along` if it is there.
void Emitter::emitResultNest(ArrayRef<unsigned> members, LoopPlan &plan,
                             bool isOnly, ReduceOp along) {
  IndexSpace::Nest nest = space.addNest(plan, !nests.group.isMany());
  nestOfResults = &nest;
  resultNest = isOnly && !hasRows ? &nest : nullptr;
  if (stays[members.front()])
    choosing.assign(members.begin(), members.end());
  if (!along) {
    emitLoops(nest, {}, [&](ValueRange) -> Values {
      storeResults(members, space.linear(nest));
      return {};
    });
    choosing.clear();
    return;
  }
  RankedTensorType type = tensorType(along.getOperand());
  Type element = type.getElementType();
  auto ofPoint = [&](ValueRange carried) -> Values {
    IndexExpr inner = space.linear(nest);
    storeResults(members, inner);
    Value x = pull(along.getOperand(),
                   space.delinearize(offsetInResult(members.front(), inner),
                                     type.getShape()));
    return {writer.combine(along.getKind(), carried.front(), x, element)};
  };
  RowValue row;
  row.isScalar = true;
  row.scalar =
      emitLoops(nest, writer.neutral(along.getKind(), element), ofPoint, along)
          .front();
  RowKey key{along,
             space.delinearize(space.linear(outer),
                               tensorType(along.getResult()).getShape())};
  rowValues.emplace(std::move(key), std::move(row));
}

void Emitter::emitResults(ArrayRef<unsigned> part) {
  // Results that share a nest: those with as many elements.
  SmallVector<std::pair<int64_t, SmallVector<unsigned>>> sets;
  for (unsigned i : part) {
    int64_t count = tensorType(yield->getOperand(i)).getNumElements();
    if (count == 0)
      continue;
    auto *it = llvm::find_if(sets, [&](auto &s) { return s.first == count; });
    if (it == sets.end())
      it = sets.insert(sets.end(), {count, {}});
    it->second.push_back(i);
  }
  // What is found beside others is stored behind them.
  llvm::stable_sort(sets, [&](auto &a, auto &b) {
    return findBesideOf(a.first) && !findBesideOf(b.first);
  });
  for (auto &[count, members] : sets) {
    RankedTensorType type = tensorType(yield->getOperand(members.front()));
    LoopPlan &plan =
        getPlan(yield, members.front(),
                splitShape(type.getShape(), nests.iterations).second);
    emitRowResults(members, plan);
    if (!members.empty())
      emitResultNest(members, plan, sets.size() == 1 && parts.size() == 1,
                     findBesideOf(count));
    resultNest = nestOfResults = nullptr;
  }
}

} // namespace ax::codegen
