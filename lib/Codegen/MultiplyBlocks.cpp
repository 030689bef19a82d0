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
#include "ax/Support/BitBlocks.h"

#include <cmath>

namespace ax::codegen {
#define GEN_PASS_DEF_MULTIPLYBLOCKS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What `value` is, in another shape, of floats in another type, but for those
/// of eight bits.
static Value original(Value value) {
  auto isFloat = [](Value v) {
    return isa<FloatType>(elementType(v)) && !isFloat8(elementType(v));
  };
  while (Operation *op = value.getDefiningOp()) {
    auto cast = dyn_cast<CastOp>(op);
    bool isOfFloats =
        cast && isFloat(cast.getOperand()) && isFloat(cast.getResult());
    if (!isOfFloats && !isa<ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// What `kind` makes `value` of with a constant of these numbers; null where it
/// is made in another way.
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
/// have: numbers of a byte lie side by side.
static std::optional<std::pair<Value, int64_t>> matchBits(Value numbers) {
  if (!elementType(numbers).isUnsignedInteger(8))
    return std::nullopt;
  numbers = original(numbers);
  for (int64_t bits : {2, 4}) {
    SmallVector<int64_t> shifts;
    for (int64_t shift = 0; shift < 8; shift += bits)
      shifts.push_back(shift);
    Value shifted = matchWithNumbers(numbers, BinaryKind::bit_and,
                                     {(int64_t(1) << bits) - 1});
    Value bytes =
        shifted ? matchWithNumbers(shifted, BinaryKind::shr, shifts) : Value();
    if (bytes && shapeOf(bytes).size() == shapeOf(shifted).size() &&
        shapeOf(bytes).back() == 1)
      return std::pair(original(bytes), bits);
  }
  return std::pair(numbers, int64_t(8));
}

/// Zero points of bytes, which are widened, or constants that are whole
/// numbers; null where they are others.
static Value matchZeros(Value zeros, OpBuilder &builder) {
  zeros = original(zeros);
  if (auto cast = zeros.getDefiningOp<CastOp>())
    return elementType(cast.getOperand()).isUnsignedInteger(8)
               ? cast.getOperand()
               : Value();
  auto constant = zeros.getDefiningOp<ConstantOp>();
  auto numbers = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue())
                          : DenseFPElementsAttr();
  if (!numbers)
    return {};
  constexpr double most = 255;
  SmallVector<uint8_t> bytes;
  for (const APFloat &number : numbers.getValues<APFloat>()) {
    double value = number.convertToDouble();
    if (!(value >= 0 && value <= most) || value != std::floor(value))
      return {};
    bytes.push_back(static_cast<uint8_t>(value));
  }
  Type byte = builder.getIntegerType(8, /*isSigned=*/false);
  auto type = RankedTensorType::get(numbers.getType().getShape(), byte);
  return ConstantOp::create(builder, constant.getLoc(), type,
                            DenseElementsAttr::get(type, ArrayRef(bytes)));
}

/// Whether there is one for each block of a row of `shape`, [n, blocks, block].
static bool isOfBlocks(Value value, ArrayRef<int64_t> shape) {
  return shapeOf(value) == ArrayRef<int64_t>{shape[0], shape[1], 1};
}

/// What `weight` of a product is, if it has blocks of `block` numbers.
static std::optional<BlockWeight>
matchWeight(const Product &product, int64_t block, OpBuilder &builder) {
  auto scaling = original(product.weight).getDefiningOp<BinaryOp>();
  if (!scaling || scaling.getKind() != BinaryKind::mul)
    return std::nullopt;
  ArrayRef<int64_t> shape = shapeOf(scaling.getResult());
  auto less = scaling.getLhs().getDefiningOp<BinaryOp>();
  if (shape != ArrayRef<int64_t>{product.n, product.k / block, block} ||
      !isOfBlocks(scaling.getRhs(), shape) || !less ||
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
  found.zeros = matchZeros(zero, builder);
  bool isOne = tensorType(zero).getNumElements() == 1;
  if (!found.zeros || (!isOne && !isOfBlocks(zero, shape)))
    return std::nullopt;
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
    constexpr int64_t bitsOfByte = 8;
    auto rounded = original(product.x).getDefiningOp<FakeQuantizeOp>();
    if (!rounded || !product.isTransposed ||
        elementType(product.op->getResult(0)).isF64())
      return;
    int64_t block = shapeOf(rounded.getOperand()).back();
    if (!isBlockLength(block) || product.k % block != 0)
      return;
    OpBuilder builder(product.op);
    std::optional<BlockWeight> weight = matchWeight(product, block, builder);
    if (!weight)
      return;
    TensorBuilder t(product.op->getLoc(), builder);
    Type f32 = builder.getF32Type();
    SmallVector<int64_t> ofBlocks{product.n, weight->blocks};
    auto x =
        t.cast(t.reshape(rounded.getOperand(), {product.rows, product.k}), f32);
    auto bytes = t.reshape(weight->bytes,
                           {product.n, product.k * weight->bits / bitsOfByte});
    auto scales = t.cast(t.reshape(weight->scales, ofBlocks), f32);
    Value zeros = weight->zeros;
    if (zeros && tensorType(zeros).getNumElements() == 1)
      zeros = t.broadcast(t.reshape(zeros, {1, 1}), ofBlocks);
    else if (zeros)
      zeros = t.reshape(zeros, ofBlocks);
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
