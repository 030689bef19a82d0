//===- MultiplyIntegers.cpp - Products of integers of eight bits ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: a quantised Linear, as ONNX files have it,
//
//   x = (qx - zx) sx,   w = (qw - zw) sw,   y = x w
//
// of integers of eight bits qx and qw, is
//
//   d = qx qw - zx (sum over rows of qw) - zw (sum of each row of qx) + k zx zw
//   y = d sx sw
//
// where qx qw is a product that the processor does four times as fast as one of
// f32. d is exact. Its library wants weights with a sign, so those without, as
// zw, are less by 128; and numbers to multiply without one, so that those with,
// as zx, are more by 128 (else oneDNN 2.6 does that, and takes off what it adds
// in f32, which rounds). In a model zw is 0 or 128 for the most part, and the
// sums over weights are made once. A convolution is the same of an image around
// which there is zx; the sums of what windows see are one more convolution.
//
// On a GPU, cuBLASLt wants both factors with signs; what is to be padded then
// is PadProducts' to do. One row times weights that stand for floats is a
// kernel, which reads them as fast (ComposeProducts).
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"
#include "EightBitProducts.h"
#include "ForEachStage.h"
#include "ScaledProducts.h"
#include "ax/Codegen/LocalPasses.h"

#include <array>

namespace ax::codegen {
#define GEN_PASS_DEF_MULTIPLYINTEGERS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Dimensions of a factor of the dot product that are summed over, in order.
static SmallVector<int64_t> summedDims(DotOp dot, unsigned factor) {
  SmallVector<int64_t> dims(factor == 0 ? dot.getLhsContract()
                                        : dot.getRhsContract());
  llvm::sort(dims);
  return dims;
}

/// The same product of `x` and `w`, of integers of eight bits, in i32.
static DotOp makeDot(OpBuilder &builder, Operation *product, Value x, Value w) {
  RankedTensorType sums =
      tensorType(product->getResult(0)).clone(builder.getI32Type());
  if (auto dot = dyn_cast<DotOp>(product))
    return DotOp::create(builder, dot.getLoc(), sums, x, w, dot.getLhsBatch(),
                         dot.getRhsBatch(), dot.getLhsContract(),
                         dot.getRhsContract());
  auto linear = cast<LinearOp>(product);
  ArrayRef<int64_t> none;
  int64_t last = tensorType(x).getRank() - 1;
  int64_t summed = linear.getTransposeW() ? 1 : 0;
  return DotOp::create(builder, linear.getLoc(), sums, x, w, none, none, last,
                       summed);
}

static Value sumOf(Value numbers, ArrayRef<int64_t> dims, TensorBuilder &t) {
  return t.sum(t.cast(numbers, t.b.getI32Type()), dims, /*keepDims=*/false);
}

/// The same of weights. A zero point that is known is part of the sums, and
/// null then: they are made once, and what reads them multiplies nothing.
static Value sumOfWeights(Value weights, Value &zero, ArrayRef<int64_t> dims,
                          TensorBuilder &t) {
  std::optional<int64_t> number = integerOf(zero);
  if (!number)
    return sumOf(weights, dims, t);
  zero = Value();
  Value wide = t.cast(weights, t.b.getI32Type());
  return sumOf(t.mul(wide, static_cast<double>(*number)), dims, t);
}

/// Sums of a factor's numbers over what the product sums over, times the other
/// one's zero point, as they broadcast with its result. With `apart`, those of
/// weights are multiplied where each element of the result is read.
static Value sumTimes(Value zero, DotOp dot, unsigned factor, bool apart,
                      TensorBuilder &t) {
  Value numbers = dot->getOperand(factor);
  SmallVector<int64_t> dims = summedDims(dot, factor);
  // Several products of the same rows, with zero points of their own, have the
  // same sums of them.
  Value sums = factor == 1 ? sumOfWeights(numbers, zero, dims, t)
                           : sumOf(numbers, dims, t);
  // Where each dimension of the sums is in the result.
  SmallVector<int64_t> places;
  for (int64_t dim = 0, e = tensorType(numbers).getRank(); dim < e; ++dim)
    if (std::optional<int64_t> place = resultDimOf(dot, factor, dim))
      places.push_back(*place);
  SmallVector<int64_t> order = dimsFrom(0, places.size());
  llvm::sort(order,
             [&](int64_t a, int64_t b) { return places[a] < places[b]; });
  RankedTensorType result = tensorType(dot.getResult());
  SmallVector<int64_t> shape(result.getRank(), 1);
  for (int64_t place : places)
    shape[place] = result.getDimSize(place);
  sums = t.reshape(t.transpose(sums, order), shape);
  if (!zero)
    return sums;
  if (apart && factor == 1)
    sums = t.broadcast(sums, shapeOf(dot.getResult()));
  return t.mul(sums, zero);
}

/// `zero` less `shift`; null where that is 0.
static Value shifted(Value zero, int32_t shift, const FactorParameter &of,
                     TensorBuilder &t) {
  if (shift == 0)
    return zero;
  std::optional<int64_t> number = of.value ? integerOf(of.value) : 0;
  if (!number)
    return t.add(zero, -static_cast<double>(shift));
  // It wraps, as what it is taken off.
  auto less = static_cast<int32_t>(static_cast<uint32_t>(*number) -
                                   static_cast<uint32_t>(shift));
  return less ? t.splat({}, t.b.getI32Type(), less) : Value();
}

namespace {

struct MultiplyIntegersPass
    : codegen::impl::MultiplyIntegersBase<MultiplyIntegersPass> {
  using MultiplyIntegersBase::MultiplyIntegersBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      // Weights that change would be summed in each step.
      if (trains(stage))
        return;
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isProductOfIntegers(&op) && (!gpu || isForGpu(&op)))
          multiply(&op);
      removeUnused(stage.getBlock());
    });
  }

  /// Where floats are multiplied, they may be as fast.
  static bool isForGpu(Operation *product) {
    if (!isa<LinearOp, DotOp>(product) || !mayMultiplyIntegers(product))
      return false;
    RankedTensorType result = tensorType(product->getResult(0));
    int64_t columns = result.getShape().back(), terms = numTermsOf(product);
    auto growth = [](int64_t size) {
      return static_cast<double>(llvm::alignTo(size, eightBitMultiple)) /
             static_cast<double>(size);
    };
    constexpr double mostGrowth = 1.125;
    return !isa<FloatType>(result.getElementType()) ||
           (result.getNumElements() > columns &&
            growth(columns) * growth(terms) <= mostGrowth);
  }

  /// Padding is of the numbers that stand for 0.
  static Value padded(Value x, Value zero, ConvOp conv, TensorBuilder &t) {
    ArrayRef<int64_t> pads = conv.getPads();
    size_t spatial = pads.size() / 2;
    SmallVector<int64_t> low(2, 0), high(2, 0);
    llvm::append_range(low, pads.take_front(spatial));
    llvm::append_range(high, pads.drop_front(spatial));
    SmallVector<int64_t> shape(shapeOf(x));
    for (auto [size, before, behind] : llvm::zip_equal(shape, low, high))
      size += before + behind;
    return PadOp::create(t.b, tensorType(x).clone(shape), x,
                         t.cast(zero, elementType(x)), low, high,
                         PadMode::constant);
  }

  /// `numbers` less `shift`, with a sign or not.
  static Value shiftedNumbers(Value numbers, int32_t shift, bool isSigned,
                              TensorBuilder &t) {
    Type type = IntegerType::get(numbers.getContext(), 8,
                                 isSigned ? IntegerType::Signless
                                          : IntegerType::Unsigned);
    return t.cast(
        t.add(t.cast(numbers, t.b.getI32Type()), -static_cast<double>(shift)),
        type);
  }

  /// `x` and `w` are the numbers, which have signs in `w`; a zero point that is
  /// null is 0.
  static Value convolve(ConvOp conv, Value x, Value w, Value zero, Value zw,
                        TensorBuilder &t) {
    SmallVector<int64_t> pads(conv.getPads());
    bool isPadded = llvm::any_of(pads, [](int64_t pad) { return pad != 0; });
    if (zero && isPadded) {
      x = padded(x, zero, conv, t);
      llvm::fill(pads, 0);
    }
    RankedTensorType type =
        tensorType(conv.getResult()).clone(t.b.getI32Type());
    auto filtered = [&](Value filters) {
      SmallVector<int64_t> shape(type.getShape());
      shape[1] = shapeOf(filters)[0];
      return ConvOp::create(t.b, type.clone(shape), x, filters,
                            conv.getStrides(), pads, conv.getDilations(),
                            conv.getGroups());
    };
    Value y = filtered(w);
    if (zw) {
      SmallVector<int64_t> window(shapeOf(w));
      window[0] = static_cast<int64_t>(conv.getGroups());
      Value seen = filtered(t.splat(window, elementType(w), 1));
      if (zero)
        seen = t.sub(seen, t.mul(zero, static_cast<double>(numTermsOf(conv))));
      y = t.sub(y, t.mul(seen, zw));
    }
    if (!zero)
      return y;
    SmallVector<int64_t> shape(type.getRank(), 1);
    shape[1] = type.getDimSize(1);
    Value sums = sumOfWeights(w, zero, dimsFrom(1, tensorType(w).getRank()), t);
    sums = t.reshape(sums, shape);
    return t.sub(y, zero ? t.mul(sums, zero) : sums);
  }

  void multiply(Operation *product) {
    std::array<ScaledFactor, 2> factors = {
        *matchScaledInteger(product->getOperand(0)),
        *matchScaledInteger(product->getOperand(1))};
    OpBuilder builder(product);
    TensorBuilder t(product->getLoc(), builder);
    Value x = numbersOf(factors[0], builder),
          w = numbersOf(factors[1], builder);
    auto isUnsigned = [](Value value) {
      return elementType(value).isUnsignedInteger();
    };
    // What cuBLASLt multiplies has a sign, what oneDNN does has none.
    int32_t shiftX = isUnsigned(x) == !gpu ? 0
                     : gpu                 ? middleOfUnsigned
                                           : -middleOfUnsigned,
            shiftW = isUnsigned(w) ? middleOfUnsigned : factors[1].offset;
    if (shiftX != 0)
      x = shiftedNumbers(x, shiftX, /*isSigned=*/gpu, t);
    if (isUnsigned(w))
      w = shiftedNumbers(w, shiftW, /*isSigned=*/true, t);
    auto zeroOf = [&](unsigned factor, int32_t shift) {
      const FactorParameter &zero = factors[factor].zero;
      Value along =
          zero.value ? alongResult(product, factor, zero, t) : Value();
      return shifted(along, shift, zero, t);
    };
    Value zx = zeroOf(0, shiftX), zw = zeroOf(1, shiftW);
    auto conv = dyn_cast<ConvOp>(product);
    Value y = conv ? convolve(conv, x, w, zx, zw, t)
                   : multiply(product, x, w, zx, zw, t);
    Value result = product->getResult(0),
          asResult = scaled(y, factors, product, t);
    // Convolutions of integers are written as those of f64.
    auto cast = asResult.getDefiningOp<CastOp>();
    if (elementType(result).isF64() && cast && cast.getOperand() == y)
      for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
        if (isa<CastOp>(user) &&
            elementType(user->getResult(0)) == elementType(y))
          user->getResult(0).replaceAllUsesWith(y);
    result.replaceAllUsesWith(asResult);
    product->erase();
  }

  /// The same of a matrix product; a zero point that is null is 0.
  Value multiply(Operation *product, Value x, Value w, Value zx, Value zw,
                 TensorBuilder &t) {
    DotOp dot = makeDot(t.b, product, x, w);
    Value y = dot.getResult();
    if (zx)
      y = t.sub(y, sumTimes(zx, dot, 1, gpu, t));
    if (zw)
      y = t.sub(y, sumTimes(zw, dot, 0, gpu, t));
    if (zx && zw)
      y = t.add(y, t.mul(t.mul(zx, zw), static_cast<double>(numTermsOf(dot))));
    return y;
  }

  /// The sums as the product's result has them.
  static Value scaled(Value sums, ArrayRef<ScaledFactor> factors,
                      Operation *product, TensorBuilder &t) {
    Type result = elementType(product->getResult(0));
    if (!isa<FloatType>(result))
      return sums;
    Type wide = result.isF64() ? result : Type(t.b.getF32Type());
    Value y = t.cast(sums, wide);
    // One after another: what both are together may be out of range, and more
    // often than one of them times the sum.
    for (auto [i, factor] : llvm::enumerate(factors))
      if (factor.scale.value)
        y = t.mul(y, t.cast(alongResult(product, i, factor.scale, t), wide));
    return t.cast(y, result);
  }
};

} // namespace
