//===- Products.cpp - Products with a matrix ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Products.h"

#include "FusionGroups.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Gradients/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;

namespace ax::codegen {

bool isMadeInPassing(Operation *op) {
  return op &&
         isa<ReshapeOp, BroadcastOp, SliceOp, CastOp, UnaryOp, BinaryOp,
             CompareOp, SelectOp>(op) &&
         !isCostly(op);
}

bool Product::mayComeApart() const {
  Type type = elementType(op->getResult(0));
  return isTransposed || type.isF32() || type.isF64();
}

std::optional<Product> productOf(Operation *op) {
  bool isTransposed = false;
  if (auto linear = dyn_cast<LinearOp>(op)) {
    isTransposed = linear.getTransposeW();
  } else if (auto dot = dyn_cast<DotOp>(op)) {
    int64_t last = tensorType(dot.getLhs()).getRank() - 1;
    if (!dot.getLhsBatch().empty() || tensorType(dot.getRhs()).getRank() != 2 ||
        dot.getLhsContract() != ArrayRef<int64_t>(last) ||
        dot.getRhsContract().size() != 1)
      return std::nullopt;
    isTransposed = dot.getRhsContract().front() == 1;
  } else {
    return std::nullopt;
  }
  Value x = op->getOperand(0), weight = op->getOperand(1);
  if (!isa<FloatType>(elementType(weight)) || isFloat8(elementType(weight)))
    return std::nullopt;
  int64_t k = shapeOf(x).back(), n = shapeOf(weight)[isTransposed ? 0 : 1];
  int64_t elements = tensorType(x).getNumElements();
  if (elements == 0 || n == 0)
    return std::nullopt;
  return Product{op, x, weight, isTransposed, elements / k, k, n};
}

std::optional<Product> productOfEachRow(Operation *op) {
  auto dot = dyn_cast<DotOp>(op);
  auto is = [](ArrayRef<int64_t> dims, int64_t dim) {
    return dims == ArrayRef<int64_t>(dim);
  };
  if (!dot || tensorType(dot.getLhs()).getRank() != 2 ||
      tensorType(dot.getRhs()).getRank() != 3 || !is(dot.getLhsBatch(), 0) ||
      !is(dot.getRhsBatch(), 0) || !is(dot.getLhsContract(), 1) ||
      !is(dot.getRhsContract(), 2) ||
      !isa<FloatType>(elementType(dot.getRhs())) ||
      isFloat8(elementType(dot.getRhs())))
    return std::nullopt;
  ArrayRef<int64_t> shape = shapeOf(dot.getRhs());
  if (tensorType(dot.getRhs()).getNumElements() == 0)
    return std::nullopt;
  return Product{op,       dot.getLhs(), dot.getRhs(), /*isTransposed=*/true,
                 shape[0], shape[2],     shape[1],     /*isOfEachRow=*/true};
}

int64_t numbersOfByte(Value weight) {
  llvm::SmallSetVector<Value, 16> values;
  values.insert(weight);
  for (size_t i = 0; i != values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (!isMadeInPassing(op))
      continue;
    auto shift = dyn_cast<BinaryOp>(op);
    if (shift && shift.getKind() == BinaryKind::shr &&
        shift.getRhs().getDefiningOp<ConstantOp>() &&
        tensorType(shift.getRhs()).getRank() == 1 &&
        tensorType(shift.getLhs()).getRank() > 0 &&
        shapeOf(shift.getLhs()).back() == 1)
      return shapeOf(shift.getRhs()).front();
    values.insert(op->operand_begin(), op->operand_end());
  }
  return 1;
}

/// [1, k] of x, or [rows, 1, k], such that neighbours in memory are multiplied
/// with numbers of neighbouring bytes. E.g. of bytes of two numbers each, the
/// even ones of x lie in front of the odd ones, in groups: the concatenation is
/// in memory, and what is read of it is x. A GPU's threads take a few
/// neighbours as they are.
static Value spread(TensorBuilder &t, const Product &product, Value x,
                    bool gpu) {
  constexpr int64_t mostBytes = 64, fewBytes = 8;
  int64_t numbers = gpu ? 1 : numbersOfByte(product.weight);
  int64_t bytes = std::gcd(product.k / numbers, mostBytes);
  SmallVector<int64_t> shape{1, product.k};
  if (product.isOfEachRow)
    shape.insert(shape.begin(), product.rows);
  if (numbers == 1 || product.k % numbers != 0 || bytes < fewBytes)
    return t.reshape(x, shape);
  int64_t groups = product.rows * product.k / (numbers * bytes);
  x = t.reshape(x, {groups, bytes, numbers});
  SmallVector<Value> runs;
  for (int64_t i = 0; i != numbers; ++i)
    runs.push_back(t.reshape(t.slice(x, 2, i, 1), {groups, 1, bytes}));
  Value apart = ConcatOp::create(t.b, runs, 1);
  return t.reshape(t.transpose(apart, {0, 2, 1}), shape);
}

/// The multiplication of integers by a scale of each column of the result, or
/// of all, that makes the weight; null where it is made in another way.
static BinaryOp findScaling(const Product &product) {
  auto scaling = product.weight.getDefiningOp<BinaryOp>();
  std::optional<ScaledFactor> factor = matchScaledInteger(product.weight);
  int64_t summed = product.isTransposed ? 1 : 0;
  bool isScaling = scaling && scaling.getKind() == BinaryKind::mul && factor &&
                   factor->moves.empty() && factor->scale.value &&
                   factor->scale.dim != summed &&
                   tensorType(scaling.getRhs()).getNumElements() <= product.n &&
                   tensorType(scaling.getLhs()) == tensorType(product.weight);
  return isScaling ? scaling : BinaryOp();
}

void composeRow(const Product &product, bool gpu) {
  OpBuilder builder(product.op);
  TensorBuilder t(product.op->getLoc(), builder);
  Value x = t.wide(product.x), weight = product.weight, sum;
  // Behind the sum, there are as many scales as columns.
  BinaryOp scaling = product.isOfEachRow ? BinaryOp() : findScaling(product);
  if (scaling)
    weight = scaling.getLhs();
  if (product.isTransposed) {
    x = spread(t, product, x, gpu);
    sum = t.sum(t.mul(t.wide(weight), x), {tensorType(weight).getRank() - 1},
                /*keepDims=*/false);
  } else {
    // Rows are read as they lie, in groups, which are independent.
    int64_t groups = 16;
    while (product.k % groups != 0)
      --groups;
    int64_t rows = product.k / groups;
    weight = t.reshape(weight, {groups, rows, product.n});
    sum = t.sum(t.mul(t.wide(weight), t.reshape(x, {groups, rows, 1})), {1},
                /*keepDims=*/false);
    sum = t.sum(sum, {0}, /*keepDims=*/false);
  }
  if (scaling) {
    Value scale = scaling.getRhs();
    int64_t scales = tensorType(scale).getNumElements();
    sum = t.mul(sum, t.reshape(t.wide(scale), {scales}));
  }
  Value result = product.op->getResult(0);
  result.replaceAllUsesWith(
      t.reshape(t.cast(sum, elementType(result)), shapeOf(result)));
  product.op->erase();
}

} // namespace ax::codegen
