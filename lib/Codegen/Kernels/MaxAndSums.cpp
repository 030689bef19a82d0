//===- MaxAndSums.cpp - Sums of exp of what is below the largest ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum of exp(x - max x) reads a row twice: the second time when the largest
// is known. Once is enough: of the elements so far there are the largest, m,
// and the sum of exp(x - m), which is multiplied by exp(m - n) when a larger
// one comes, n. So are those of two threads that become one (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018).
//
// What it is in is found by what operations compute: whoever wrote them, and
// whatever casts and slices are between the two and what they read.
//
//===----------------------------------------------------------------------===//

#include "MaxAndSums.h"

#include "ElementOps.h"
#include "ThreadGroups.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace ax::codegen {

/// Whether both are the same number at each place: the same value, or made by
/// the same operations of the same. Deeper than views and casts are, nobody
/// looks.
static bool areEqual(Value x, Value y, int depth = 8) {
  if (x == y)
    return true;
  auto a = dyn_cast<OpResult>(x), b = dyn_cast<OpResult>(y);
  if (!a || !b || depth == 0 || a.getResultNumber() != b.getResultNumber() ||
      a.getOwner()->getNumRegions() != 0)
    return false;
  return OperationEquivalence::isEquivalentTo(
      a.getOwner(), b.getOwner(),
      [&](Value of, Value other) {
        return success(areEqual(of, other, depth - 1));
      },
      /*markEquivalent=*/nullptr,
      OperationEquivalence::IgnoreLocations |
          OperationEquivalence::IgnoreDiscardableAttrs);
}

/// The maximum that is taken from each element of `shape`, if that is what
/// `value` is: as it is, or repeated.
static ReduceOp maximumOf(Value value) {
  while (auto repeated = value.getDefiningOp<BroadcastOp>())
    value = repeated.getOperand();
  auto max = value.getDefiningOp<ReduceOp>();
  return max && max.getKind() == ReduceOpKind::max && max.getKeepDims()
             ? max
             : ReduceOp();
}

static std::optional<MaxAndSumOps> match(ReduceOp sum) {
  if (sum.getKind() != ReduceOpKind::sum ||
      !tensorType(sum.getOperand()).getElementType().isF32())
    return std::nullopt;
  auto exp = sum.getOperand().getDefiningOp<UnaryOp>();
  if (!exp || exp.getKind() != UnaryKind::exp)
    return std::nullopt;
  auto below = exp.getOperand().getDefiningOp<BinaryOp>();
  if (!below || below.getKind() != BinaryKind::sub)
    return std::nullopt;
  ReduceOp max = maximumOf(below.getRhs());
  if (!max || max.getDims() != sum.getDims() ||
      max.getResult().getType() != sum.getResult().getType() ||
      !areEqual(max.getOperand(), below.getLhs()))
    return std::nullopt;
  return MaxAndSumOps{max, sum, exp};
}

SmallVector<MaxAndSumOps>
findMaxAndSums(FusionOp fusion, const llvm::DenseSet<Operation *> &kept) {
  SmallVector<MaxAndSumOps> found;
  llvm::DenseSet<Operation *> seen;
  for (auto sum : fusion.getBody().front().getOps<ReduceOp>()) {
    std::optional<MaxAndSumOps> both = match(sum);
    if (!both)
      continue;
    RankedTensorType type = tensorType(sum.getOperand());
    int64_t row = 1;
    for (int64_t dim : sum.getDims())
      row *= type.getDimSize(dim);
    bool isKept = kept.contains(both->exp) &&
                  row * storageBytes(type.getElementType()) <= mostShared;
    // One sum for each maximum.
    if (!isKept && seen.insert(both->max).second)
      found.push_back(*both);
  }
  return found;
}

} // namespace ax::codegen
