//===- SplitScans.cpp - Long running sums in parts ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread of a GPU does a row of a running sum alone, each step behind the one
// before. Where rows are few and long, most of the card would have nothing to
// do, and that thread a lot. So a row is seen as parts: each has a running sum
// of its own, to which what all before it come to is added, which is a running
// sum, too, of the parts' sums (Blelloch, "Prefix Sums and Their Applications",
// 1990). Of that the same holds, until it is short.
//
// Example: that of [8, 65536] becomes one of [8, 1024, 64], the sums of those
// of [8, 1024], before each of which there is a running sum that in turn
// becomes one of [8, 16, 64], and an addition of both.
//
// How many parts there are depends on shapes alone, and so do the bits of the
// results.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "FusionGroups.h"
#include "Kernels/ThreadGroups.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"
#include "mlir/IR/IRMapping.h"

namespace ax::codegen {
#define GEN_PASS_DEF_SPLITSCANS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Of as many steps a thread is done about as soon as the kernels that parts
/// take besides.
static constexpr int64_t longRow = 256;

static BinaryKind combining(ReduceOpKind kind) {
  switch (kind) {
  case ReduceOpKind::prod:
    return BinaryKind::mul;
  case ReduceOpKind::max:
    return BinaryKind::max;
  case ReduceOpKind::min:
    return BinaryKind::min;
  default:
    return BinaryKind::add;
  }
}

/// Elements of a part: a divisor of the row's, or, as a sum may have zeros
/// behind it, as many as there should be. Zero where the row stays whole; so do
/// those of products of floats, as a part alone may overflow where a product so
/// far is 0, or is done with.
static int64_t choosePart(CumulativeOp op) {
  constexpr int64_t fewest = 32, wanted = 64, most = 128;
  RankedTensorType type = tensorType(op.getOperand());
  int64_t size = type.getDimSize(op.getDim());
  bool isOfFloats = op.getKind() == ReduceOpKind::prod &&
                    isa<FloatType>(type.getElementType());
  if (isOfFloats || size < longRow ||
      2 * type.getNumElements() / size > manyThreads)
    return 0;
  for (int64_t part : {wanted, most, fewest})
    if (size % part == 0)
      return part;
  for (int64_t part = fewest; part <= most; ++part)
    if (size % part == 0)
      return part;
  return op.getKind() == ReduceOpKind::sum ? wanted : 0;
}

/// What is worked out for an element, once more for another kernel: as a result
/// of one that another reads it would have to be there whole, and so would its
/// rows be of one block.
static Value remade(OpBuilder &builder, Value value, IRMapping &made,
                    unsigned depth = 8) {
  if (Value known = made.lookupOrNull(value))
    return known;
  Operation *maker = value.getDefiningOp();
  if (!maker || depth == 0 || fusionKind(maker) != FusionKind::Pull ||
      isCostly(maker))
    return value;
  for (Value operand : maker->getOperands())
    if (Value own = remade(builder, operand, made, depth - 1); own != operand)
      made.map(operand, own);
  return builder.clone(*maker, made)->getResult(0);
}

/// Sums of narrow floats are rounded once, in the end. Returns what is left to
/// look at.
static CumulativeOp split(CumulativeOp op, int64_t part) {
  OpBuilder builder(op);
  TensorBuilder t(op.getLoc(), builder);
  auto dim = static_cast<int64_t>(op.getDim());
  Value x = op.getOperand();
  Type element = elementType(x);
  if (isNarrowFloat(element))
    x = t.cast(x, builder.getF32Type());
  SmallVector<int64_t> whole(shapeOf(x));
  int64_t size = whole[dim];
  int64_t parts = llvm::divideCeilSigned(size, part);
  if (int64_t rest = parts * part - size) {
    SmallVector<int64_t> low(whole.size(), 0), high(low);
    high[dim] = rest;
    x = t.pad(x, low, high);
    whole[dim] += rest;
  }
  SmallVector<int64_t> shape(whole), ofParts(whole);
  shape[dim] = parts;
  shape.insert(shape.begin() + dim + 1, part);
  ofParts[dim] = parts;
  SmallVector<int64_t> besides(ofParts);
  besides.insert(besides.begin() + dim + 1, 1);

  Value inParts = t.reshape(x, shape);
  Value own = CumulativeOp::create(t.b, op.getKind(), inParts, dim + 1,
                                   op.getExclusive(), op.getReverse());
  IRMapping made;
  Value sums = t.reduce(op.getKind(), remade(t.b, inParts, made), dim + 1,
                        /*keepDims=*/false);
  auto before = CumulativeOp::create(t.b, op.getKind(), sums, dim,
                                     /*exclusive=*/true, op.getReverse());
  Value result = t.binary(combining(op.getKind()), own,
                          t.reshape(before.getResult(), besides));
  result = t.reshape(result, whole);
  if (whole[dim] != size)
    result = t.slice(result, dim, 0, size);
  op.replaceAllUsesWith(t.cast(result, element));
  op.erase();
  return before;
}

namespace {
struct SplitScansPass : codegen::impl::SplitScansBase<SplitScansPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto op :
           llvm::make_early_inc_range(stage.getBlock().getOps<CumulativeOp>()))
        while (int64_t part = choosePart(op))
          op = split(op, part);
    });
  }
};
} // namespace
