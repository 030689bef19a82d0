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
// f32. d is exact. Its library wants weights with a sign: those without, as zw,
// are less by 128. In a model zw is 0 or 128 for the most part, and the sums
// over weights are made once.
//
//===----------------------------------------------------------------------===//
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

/// Dimensions of a factor of the dot product that are summed over.
static ArrayRef<int64_t> summedDims(DotOp dot, unsigned factor) {
  return factor == 0 ? dot.getLhsContract() : dot.getRhsContract();
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

/// Sums of a factor's numbers over what the product sums over, as they
/// broadcast with its result.
static Value sumOf(DotOp dot, unsigned factor, TensorBuilder &t) {
  Value numbers = dot->getOperand(factor);
  ArrayRef<int64_t> summed = summedDims(dot, factor);
  Value sums = t.sum(t.cast(numbers, t.b.getI32Type()), summed,
                     /*keepDims=*/false);
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
  return t.reshape(t.transpose(sums, order), shape);
}

/// The number that all elements of a constant are.
static std::optional<int64_t> numberOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !constant.getValue().isSplat() ||
      !isa<IntegerType>(elementType(value)))
    return std::nullopt;
  return constant.getValue().getSplatValue<APInt>().getSExtValue();
}

/// `zero` less `shift`; null where that is 0.
static Value shifted(Value zero, int64_t shift, const FactorParameter &of,
                     TensorBuilder &t) {
  if (shift == 0)
    return zero;
  if (!of.value)
    return t.splat({}, t.b.getI32Type(), -shift);
  std::optional<int64_t> number = numberOf(of.value);
  if (number)
    return *number == shift ? Value()
                            : t.splat({}, t.b.getI32Type(), *number - shift);
  return t.add(zero, -static_cast<double>(shift));
}

namespace {

struct MultiplyIntegersPass
    : codegen::impl::MultiplyIntegersBase<MultiplyIntegersPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      // Weights that change would be summed in each step.
      if (trains(stage))
        return;
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isProductOfIntegers(&op))
          multiply(&op);
      removeUnused(stage.getBlock());
    });
  }

  static void multiply(Operation *product) {
    std::array<ScaledFactor, 2> factors = {
        *matchScaledInteger(product->getOperand(0)),
        *matchScaledInteger(product->getOperand(1))};
    for (auto [i, factor] : llvm::enumerate(factors))
      for (const FactorParameter *parameter : {&factor.zero, &factor.scale})
        if (parameter->dim && !resultDimOf(product, i, *parameter->dim))
          return;
    OpBuilder builder(product);
    TensorBuilder t(product->getLoc(), builder);
    Value x = numbersOf(factors[0], builder),
          w = numbersOf(factors[1], builder);
    constexpr int64_t half = 128;
    int64_t shift = elementType(w).isUnsignedInteger() ? half : 0;
    if (shift != 0)
      w = t.cast(t.add(t.cast(w, builder.getI32Type()), -half),
                 builder.getIntegerType(8));
    DotOp dot = makeDot(builder, product, x, w);
    auto zeroOf = [&](unsigned factor) {
      const FactorParameter &zero = factors[factor].zero;
      return zero.value ? alongResult(dot, factor, zero, t) : Value();
    };
    Value y = dot.getResult();
    Value zx = zeroOf(0), zw = shifted(zeroOf(1), shift, factors[1].zero, t);
    if (zx)
      y = t.sub(y, t.mul(sumOf(dot, 1, t), zx));
    if (zw)
      y = t.sub(y, t.mul(sumOf(dot, 0, t), zw));
    if (zx && zw)
      y = t.add(y, t.mul(t.mul(zx, zw), static_cast<double>(numTermsOf(dot))));
    product->getResult(0).replaceAllUsesWith(
        scaled(y, dot, factors, product, t));
    product->erase();
  }

  /// The sums as the product's result has them.
  static Value scaled(Value sums, DotOp dot, ArrayRef<ScaledFactor> factors,
                      Operation *product, TensorBuilder &t) {
    Type result = elementType(product->getResult(0));
    if (!isa<FloatType>(result))
      return sums;
    Type wide = result.isF64() ? result : Type(t.b.getF32Type());
    Value scale;
    for (auto [i, factor] : llvm::enumerate(factors)) {
      if (!factor.scale.value)
        continue;
      Value next = t.cast(alongResult(dot, i, factor.scale, t), wide);
      scale = scale ? t.mul(scale, next) : next;
    }
    Value y = t.cast(sums, wide);
    return t.cast(scale ? t.mul(y, scale) : y, result);
  }
};

} // namespace
