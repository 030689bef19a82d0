//===- MultiplyBlocks.cpp - Products of rounded rows with few bits --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: of a weight of four bits, two in a byte, with blocks of 32,
//
//   x' = reshape (fake_quantize (reshape x to [rows, k / 32, 32]))
//   w  = reshape ((cast (bytes >> {0, 4} & 15) - zero) * scale)
//   y  = x' w^T
//
// is one product of integers for each block, which is what x and the bytes are
// read for; `x'` and `w` are not in memory.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Products.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace ax::codegen {
#define GEN_PASS_DEF_MULTIPLYBLOCKS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What `value` is, in another shape, of floats in another type.
static Value original(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto cast = dyn_cast<CastOp>(op);
    bool isOfFloats = cast && isa<FloatType>(elementType(cast.getOperand())) &&
                      isa<FloatType>(elementType(cast.getResult()));
    if (!isOfFloats && !isa<ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The operand of `op` that is not a constant, if `kind` with a constant of
/// these numbers makes it.
static Value matchWithNumbers(Value value, BinaryKind kind,
                              ArrayRef<int64_t> numbers) {
  auto op = value.getDefiningOp<BinaryOp>();
  auto constant = op ? op.getRhs().getDefiningOp<ConstantOp>() : ConstantOp();
  if (!constant || op.getKind() != kind)
    return {};
  auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  if (!elements ||
      elements.getNumElements() != static_cast<int64_t>(numbers.size()))
    return {};
  bool isEqual = llvm::equal(elements.getValues<APInt>(), numbers,
                             [](const APInt &a, int64_t b) {
                               return a.getZExtValue() == uint64_t(b);
                             });
  return isEqual ? op.getLhs() : Value();
}

namespace {

/// A matrix of few bits, as importing makes it.
struct BlockWeight {
  /// Of eight bits, [n, k bits / 8] in another shape.
  Value bytes;
  int64_t bits;
  /// [n, blocks] in other shapes; zero points are null in the middle.
  Value scales, zeros;
  int64_t blocks;
};

} // namespace

/// The bytes that numbers of few bits are made of, and how many bits these
/// have.
static std::optional<std::pair<Value, int64_t>> matchBits(Value numbers) {
  if (!elementType(numbers).isUnsignedInteger(8))
    return std::nullopt;
  numbers = original(numbers);
  Value shifted = matchWithNumbers(numbers, BinaryKind::bit_and, {15});
  if (!shifted)
    return std::pair(numbers, int64_t(8));
  Value bytes = matchWithNumbers(shifted, BinaryKind::shr, {0, 4});
  if (!bytes || tensorType(bytes).getNumElements() * 2 !=
                    tensorType(shifted).getNumElements())
    return std::nullopt;
  return std::pair(original(bytes), int64_t(4));
}

/// Whether there is one for each block of a row of `shape`, [n, blocks, block].
static bool isOfBlocks(Value value, ArrayRef<int64_t> shape) {
  return shapeOf(value) == ArrayRef<int64_t>{shape[0], shape[1], 1};
}

static std::optional<BlockWeight> matchWeight(Value weight) {
  auto scaling = original(weight).getDefiningOp<BinaryOp>();
  if (!scaling || scaling.getKind() != BinaryKind::mul)
    return std::nullopt;
  ArrayRef<int64_t> shape = shapeOf(scaling.getResult());
  auto less = scaling.getLhs().getDefiningOp<BinaryOp>();
  if (shape.size() != 3 || !isOfBlocks(scaling.getRhs(), shape) || !less ||
      less.getKind() != BinaryKind::sub)
    return std::nullopt;
  auto widened = less.getLhs().getDefiningOp<CastOp>();
  if (!widened || shapeOf(widened.getResult()) != shape)
    return std::nullopt;
  auto bits = matchBits(widened.getOperand());
  if (!bits)
    return std::nullopt;
  BlockWeight found{bits->first, bits->second, scaling.getRhs(), {}, shape[1]};
  Value zero = less.getRhs();
  double middle = std::ldexp(1.0, static_cast<int>(found.bits) - 1);
  if (splatNumber(zero) == middle)
    return found;
  auto cast = original(zero).getDefiningOp<CastOp>();
  if (!isOfBlocks(zero, shape) || !cast ||
      !elementType(cast.getOperand()).isUnsignedInteger(8))
    return std::nullopt;
  found.zeros = cast.getOperand();
  return found;
}

namespace {

struct MultiplyBlocksPass
    : codegen::impl::MultiplyBlocksBase<MultiplyBlocksPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (std::optional<Product> product = productOf(&op))
          multiply(*product);
      removeUnused(stage.getBlock());
    });
  }

  static void multiply(const Product &product) {
    constexpr int64_t leastOfBlock = 16, bitsOfByte = 8;
    auto rounded = original(product.x).getDefiningOp<FakeQuantizeOp>();
    std::optional<BlockWeight> weight = matchWeight(product.weight);
    if (!rounded || !weight || !product.isTransposed ||
        elementType(product.op->getResult(0)).isF64())
      return;
    int64_t block = shapeOf(rounded.getOperand()).back();
    if (block * weight->blocks != product.k || block < leastOfBlock ||
        !llvm::isPowerOf2_64(block))
      return;
    OpBuilder builder(product.op);
    TensorBuilder t(product.op->getLoc(), builder);
    Type f32 = builder.getF32Type();
    SmallVector<int64_t> ofBlocks{product.n, weight->blocks};
    auto x =
        t.cast(t.reshape(rounded.getOperand(), {product.rows, product.k}), f32);
    auto bytes = t.reshape(weight->bytes,
                           {product.n, product.k * weight->bits / bitsOfByte});
    auto scales = t.cast(t.reshape(weight->scales, ofBlocks), f32);
    Value zeros = weight->zeros ? t.reshape(weight->zeros, ofBlocks) : Value();
    Value y = BlockMatmulOp::create(
        t.b, RankedTensorType::get({product.rows, product.n}, f32), x, bytes,
        scales, zeros, weight->bits);
    Value result = product.op->getResult(0);
    result.replaceAllUsesWith(
        t.reshape(t.cast(y, elementType(result)), shapeOf(result)));
    product.op->erase();
  }
};

} // namespace
