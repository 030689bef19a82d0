//===- Decompose.cpp - Softmax and norms as reductions --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Decompose.h"

#include "Emitter.h"
#include "WideBuilder.h"

#include "ax/Dialect/FunctionFacts.h"
#include "ax/Support/BitBlocks.h"

using namespace mlir;

namespace ax::codegen {
namespace {

void replace(Operation *op, WideBuilder &builder, Value result) {
  Value old = op->getResult(0);
  old.replaceAllUsesWith(
      builder.cast(result, tensorType(old).getElementType()));
  op->erase();
}

void decomposeSoftmax(SoftmaxOp op) {
  WideBuilder f(op, tensorType(op.getOperand()).getElementType());
  Value x = f.wide(op.getOperand());
  int64_t dim = op.getDim();
  Value shifted = f.sub(x, f.reduce(ReduceOpKind::max, x, dim));
  Value e = f.unary(UnaryKind::exp, shifted);
  e.getDefiningOp()->setAttr(kFlushed, f.b.getUnitAttr());
  Value sum = f.reduce(ReduceOpKind::sum, e, dim);
  Value y = op.getLog() ? f.sub(shifted, f.unary(UnaryKind::log, sum))
                        : f.mul(e, f.unary(UnaryKind::reciprocal, sum));
  replace(op, f, y);
}

void decomposeFakeQuantize(FakeQuantizeOp op) {
  constexpr double most = 127;
  WideBuilder f(op, Float32Type::get(op.getContext()));
  Value x = f.wide(op.getOperand());
  int64_t last = tensorType(x).getRank() - 1;
  Value largest = f.reduce(ReduceOpKind::max, f.unary(UnaryKind::abs, x), last);
  Type bools = tensorType(largest).clone(f.b.getI1Type());
  Value isSmall = CompareOp::create(f.b, f.loc, bools, CompareKind::lt, largest,
                                    f.number(leastQuantized));
  Value factor = BinaryOp::create(f.b, f.loc, largest.getType(),
                                  BinaryKind::div, f.number(most), largest);
  factor = SelectOp::create(f.b, f.loc, largest.getType(), isSmall, f.number(0),
                            factor);
  Value whole = f.unary(UnaryKind::round, f.mul(x, factor));
  Value scale = f.binary(BinaryKind::div, largest, f.number(most));
  replace(op, f, f.mul(whole, scale));
}

template <typename NormOp>
void decomposeNorm(NormOp op) {
  WideBuilder f(op, tensorType(op.getX()).getElementType());
  auto dims = llvm::to_vector(
      llvm::seq<int64_t>(op.getAxis(), tensorType(op.getX()).getRank()));
  replace(op, f, f.normalize(op, op.getX(), dims, op.getScale(), op.getBias()));
}

/// The best value, then the first (or last) place that holds it; a NaN is
/// better than any number. Two loops that vectorise.
void decomposeArgReduce(ArgReduceOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value x = op.getOperand();
  RankedTensorType type = tensorType(x);
  auto with = [&](ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  };
  // Wider floats are as good to compare, and reductions are done in them.
  Type element = type.getElementType();
  if (isNarrowFloat(element)) {
    element = b.getF32Type();
    x = CastOp::create(b, loc, with(type.getShape(), element), x);
  }
  int64_t dim = op.getDim(), size = type.getDimSize(dim);
  ArrayRef<int64_t> reduced = tensorType(op.getResult()).getShape();
  Value best = ReduceOp::create(
      b, loc, with(reduced, element),
      op.getMin() ? ReduceOpKind::min : ReduceOpKind::max, x, dim,
      /*keep_dims=*/true);
  auto bools = with(type.getShape(), b.getI1Type());
  Value isBest = CompareOp::create(b, loc, bools, CompareKind::eq, x, best);
  if (isa<FloatType>(element)) {
    Value isNaN = UnaryOp::create(b, loc, bools, UnaryKind::is_nan, x);
    isBest =
        BinaryOp::create(b, loc, bools, BinaryKind::logical_or, isBest, isNaN);
  }
  Type index = b.getIntegerType(size < INT32_MAX ? 32 : 64);
  auto indices = with(type.getShape(), index);
  Value place = IotaOp::create(b, loc, indices, dim);
  Value none = ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(
          with({}, index), b.getIntegerAttr(index, op.getLast() ? -1 : size)));
  Value candidates = SelectOp::create(b, loc, indices, isBest, place, none);
  Value found = ReduceOp::create(
      b, loc, with(reduced, index),
      op.getLast() ? ReduceOpKind::max : ReduceOpKind::min, candidates, dim,
      /*keep_dims=*/true);
  if (!index.isInteger(64))
    found = CastOp::create(b, loc, op.getResult().getType(), found);
  op.getResult().replaceAllUsesWith(found);
  op.erase();
}

/// Narrow floats are too coarse to accumulate in.
void widenAccumulation(Operation *op) {
  Type element = tensorType(op->getOperand(0)).getElementType();
  if (!isNarrowFloat(element))
    return;
  WideBuilder f(op, element);
  op->setOperand(0, f.wide(op->getOperand(0)));
  Value result = op->getResult(0);
  result.setType(f.type(tensorType(result).getShape()));
  f.b.setInsertionPointAfter(op);
  Value narrow = f.cast(result, element);
  result.replaceAllUsesExcept(narrow, narrow.getDefiningOp());
}

} // namespace

void decomposeRows(Operation *op) {
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    decomposeSoftmax(softmax);
  else if (auto quantize = dyn_cast<FakeQuantizeOp>(op))
    decomposeFakeQuantize(quantize);
  else if (auto norm = dyn_cast<LayerNormOp>(op))
    decomposeNorm(norm);
  else if (auto rms = dyn_cast<RMSNormOp>(op))
    decomposeNorm(rms);
  else if (auto arg = dyn_cast<ArgReduceOp>(op))
    decomposeArgReduce(arg);
}

void decompose(FusionOp fusion) {
  for (Operation &op : llvm::make_early_inc_range(fusion.getBody().front()))
    if (isa<ReduceOp, CumulativeOp>(op))
      widenAccumulation(&op);
    else
      decomposeRows(&op);
}

//===----------------------------------------------------------------------===//
// What to compute once
//===----------------------------------------------------------------------===//

/// About how many instructions an element of the op costs, operands aside.
static int64_t ownCost(Operation *op) {
  if (std::optional<FunctionCost> cost = functionCostOf(op))
    return static_cast<int64_t>(*cost);
  if (isa<GatherOp, GatherElementsOp, GatherNDOp>(op))
    return 6;
  if (isView(op) || isa<ConstantOp>(op))
    return 0;
  return 1;
}

SmallVector<ReduceOp> findBeside(FusionOp fusion) {
  Operation *yield = fusion.getBody().front().getTerminator();
  SmallVector<ReduceOp> found;
  for (Value result : yield->getOperands()) {
    // Of narrow floats, the reduction is of wide ones.
    auto cast = result.getDefiningOp<CastOp>();
    auto reduce = (cast ? cast.getOperand() : result).getDefiningOp<ReduceOp>();
    if (!reduce || !reduce->hasOneUse() || (cast && !cast->hasOneUse()))
      continue;
    RankedTensorType type = tensorType(reduce.getOperand());
    ArrayRef<int64_t> dims = reduce.getDims();
    bool isOfRows =
        !dims.empty() && dims.front() == type.getRank() - int64_t(dims.size());
    bool hasOther = llvm::any_of(yield->getOperands(), [&](Value other) {
      return tensorType(other).getNumElements() == type.getNumElements();
    });
    if (isOfRows && hasOther &&
        tensorType(reduce.getResult()).getNumElements() < type.getNumElements())
      found.push_back(reduce);
  }
  return found;
}

llvm::DenseSet<Operation *> chooseKept(FusionOp fusion,
                                       ArrayRef<ReduceOp> beside) {
  // An extra pass over a row costs about as much as this many instructions.
  constexpr int64_t worthKeeping = 8;
  llvm::DenseSet<Operation *> kept;
  Block &block = fusion.getBody().front();
  if (llvm::none_of(block, [](Operation &op) { return isRowOp(&op); }))
    return kept;

  llvm::DenseMap<Operation *, int64_t> cost;
  int64_t largest = 0;
  for (Operation &op : block) {
    int64_t sum = ownCost(&op);
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      sum += producer && !isRowOp(producer) ? cost[producer] : 1;
    }
    cost[&op] = std::min<int64_t>(sum, 1 << 20);
    for (Value operand : op.getOperands())
      largest = std::max(largest, tensorType(operand).getNumElements());
  }
  // Which nests pull each value: row ops, kept values, the results' one.
  llvm::DenseMap<Operation *, llvm::DenseSet<Operation *>> nests;
  for (Operation &op : llvm::reverse(block)) {
    for (Operation *user : op.getUsers()) {
      bool isBeside = llvm::is_contained(beside, user);
      bool ownNest =
          isRowOp(user) || kept.contains(user) || user == block.getTerminator();
      if (ownNest)
        nests[&op].insert(isBeside ? block.getTerminator() : user);
      else
        nests[&op].insert(nests[user].begin(), nests[user].end());
    }
    if (op.getNumResults() == 1 && !isRowOp(&op) && nests[&op].size() > 1 &&
        cost[&op] >= worthKeeping &&
        tensorType(op.getResult(0)).getNumElements() == largest)
      kept.insert(&op);
  }
  return kept;
}

} // namespace ax::codegen
