//===- LookUps.cpp - Matrices that are looked up --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is rounded, transposed or widened for each of the indices can be so for
// each matrix instead. Example: of 512 indices into 8 matrices of bytes, and as
// many lists of scales,
//
//   %b = ax.gather %bytes[%i] axis 0      [512, 256, 64]
//   %n = ax.cast %b
//   %s = ax.gather %scales[%i] axis 0     [512, 256, 1]
//   %m = ax.binary mul %n, %s
//
// is a look-up of the 8 products of all bytes and scales.
//
//===----------------------------------------------------------------------===//
#include "LookUps.h"

#include "Products.h"
#include "ax/Local/Local.h"

using namespace mlir;

namespace ax::codegen {

bool turnsMatrices(TransposeOp op) {
  constexpr size_t withIndex = 3;
  return op.getPermutation().size() >= withIndex &&
         isIdentity(op.getPermutation().drop_back(2));
}

namespace {

class LookUpFinder {
public:
  /// Whether `value` has something for each of the indices.
  bool find(Value value) {
    if (!found.made.insert(value))
      return true;
    Operation *op = value.getDefiningOp();
    constexpr size_t mostValues = 64;
    if (!op || found.made.size() > mostValues)
      return false;
    if (auto gather = dyn_cast<GatherOp>(op))
      return take(gather);
    // By indices of several dimensions nothing but matrices is looked up.
    auto turn = dyn_cast<TransposeOp>(op);
    if (turn ? turnsMatrices(turn) : isa<CastOp>(op))
      return find(op->getOperand(0));
    if (!isMadeInPassing(op) || tensorType(value).getRank() == 0)
      return false;
    int64_t count = shapeOf(value)[0];
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      if (isShared(op, operand)) {
        shared.insert(operand);
        return true;
      }
      return isAlongside(op, operand, count) && find(operand);
    });
  }

  /// Whether what one operation has for each index is for others one for all.
  bool isAmbiguous() const {
    return llvm::any_of(
        shared, [&](Value value) { return found.made.contains(value); });
  }

  LookUp found;

private:
  /// Whether all of it is one for all indices.
  static bool isShared(Operation *op, Value operand) {
    if (!isa<BinaryOp, CompareOp, SelectOp, BroadcastOp>(op))
      return false;
    int64_t rank = tensorType(op->getResult(0)).getRank();
    ArrayRef<int64_t> shape = shapeOf(operand);
    return static_cast<int64_t>(shape.size()) < rank || shape.front() == 1;
  }

  /// Whether the first dimensions of an operand and of the result are alike.
  static bool isAlongside(Operation *op, Value operand, int64_t count) {
    ArrayRef<int64_t> shape = shapeOf(operand);
    if (shape.empty() || shape.front() != count)
      return false;
    auto slice = dyn_cast<SliceOp>(op);
    return !slice || (slice.getStarts()[0] == 0 && slice.getSteps()[0] == 1);
  }

  bool take(GatherOp gather) {
    Value indices = gather.getIndices();
    if (gather.getAxis() != 0 ||
        (found.indices && uncheckedOf(found.indices) != uncheckedOf(indices)))
      return false;
    int64_t groups = shapeOf(gather.getOperand())[0];
    if (found.indices && found.groups != groups)
      return false;
    found.indices = indices;
    found.groups = groups;
    return true;
  }

  /// Each look-up checks its indices: of as many matrices one check does.
  static Value uncheckedOf(Value indices) {
    auto check = indices.getDefiningOp<CheckIndicesOp>();
    return check ? check.getOperand() : indices;
  }

  /// Operands that are one for all indices.
  llvm::SmallDenseSet<Value, 8> shared;
};

} // namespace

std::optional<LookUp> lookUpOf(Value matrix) {
  LookUpFinder finder;
  if (!finder.find(matrix) || !finder.found.indices || finder.isAmbiguous())
    return std::nullopt;
  int64_t rank = finder.found.rankOfIndices();
  if (tensorType(matrix).getRank() != rank + 2)
    return std::nullopt;
  // Of others than moves and casts the first dimension is that of the indices.
  bool isPlain = llvm::all_of(finder.found.made, [](Value value) {
    return isa<GatherOp, TransposeOp, CastOp>(value.getDefiningOp());
  });
  return rank == 1 || isPlain ? std::optional(finder.found) : std::nullopt;
}

Value LookUp::make(TensorBuilder &t, int64_t count, Value others) const {
  llvm::DenseMap<Value, Value> results;
  auto find = [&](Value value) {
    Value found = results.lookup(value);
    return found ? found : value;
  };
  // What each is made of comes first.
  SmallVector<Operation *> ops;
  for (Value value : made)
    ops.push_back(value.getDefiningOp());
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ops) {
    Value &result = results[op->getResult(0)];
    if (auto gather = dyn_cast<GatherOp>(op)) {
      Value all = gather.getOperand();
      result = others ? GatherOp::create(t.b, all, others, 0).getResult() : all;
      continue;
    }
    if (isa<TransposeOp>(op) && rankOfIndices() != 1) {
      result = t.transpose(find(op->getOperand(0)), {0, 2, 1});
      continue;
    }
    Operation *clone = t.b.clone(*op);
    for (OpOperand &operand : clone->getOpOperands())
      operand.set(find(operand.get()));
    result = clone->getResult(0);
    SmallVector<int64_t> shape(
        shapeOf(op->getResult(0)).drop_front(rankOfIndices()));
    shape.insert(shape.begin(), count);
    result.setType(tensorType(result).clone(shape));
  }
  return find(made.front());
}

} // namespace ax::codegen
