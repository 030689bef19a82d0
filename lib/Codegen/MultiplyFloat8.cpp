//===- MultiplyFloat8.cpp - Scales behind products of eight bits ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: a quantised Linear, as ONNX files have it,
//
//   x = cast qx * sx,   w = cast qw * sw,   y = x w
//
// of floats of eight bits qx and qw, a scale sx and one of each column sw, is
//
//   y = (qx qw) * sx * sw
//
// where qx qw is a product that a GPU's library does on eight bits.
//
//===----------------------------------------------------------------------===//
#include "Float8Products.h"
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Gradients/TensorBuilder.h"

#include <array>

namespace ax::codegen {
#define GEN_PASS_DEF_MULTIPLYFLOAT8
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// The dimension of the product's result that is dimension `dim` of a factor;
/// nothing where that is summed over.
static std::optional<int64_t> resultDimOf(Operation *product, unsigned factor,
                                          int64_t dim) {
  int64_t last = tensorType(product->getResult(0)).getRank() - 1;
  if (auto linear = dyn_cast<LinearOp>(product)) {
    if (factor == 1)
      return dim == (linear.getTransposeW() ? 0 : 1) ? std::optional(last)
                                                     : std::nullopt;
    return dim < last ? std::optional(dim) : std::nullopt;
  }
  auto dot = cast<DotOp>(product);
  auto numberOf = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract,
                     int64_t dim) -> std::optional<int64_t> {
    const int64_t *place = llvm::find(batch, dim);
    if (place != batch.end())
      return place - batch.begin();
    if (llvm::is_contained(contract, dim))
      return std::nullopt;
    // Those of a batch come first, then the others in their order.
    int64_t number = batch.size();
    for (int64_t before = 0; before < dim; ++before)
      number += !llvm::is_contained(batch, before) &&
                !llvm::is_contained(contract, before);
    return number;
  };
  if (factor == 0)
    return numberOf(dot.getLhsBatch(), dot.getLhsContract(), dim);
  int64_t batch = dot.getRhsBatch().size();
  std::optional<int64_t> number =
      numberOf(dot.getRhsBatch(), dot.getRhsContract(), dim);
  // The other factor's are in front of its own.
  if (number && *number >= batch)
    *number += tensorType(dot.getLhs()).getRank() - batch -
               static_cast<int64_t>(dot.getLhsContract().size());
  return number;
}

namespace {

struct MultiplyFloat8Pass
    : codegen::impl::MultiplyFloat8Base<MultiplyFloat8Pass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isProductOfFloat8(&op))
          multiply(&op);
      removeUnused(stage.getBlock());
    });
  }

  /// The factor's numbers, moved as it is.
  static Value numbersOf(const ScaledFactor &factor, OpBuilder &builder) {
    CastOp widened = factor.widened;
    Value numbers = widened.getOperand();
    for (Operation *move : factor.moves) {
      Operation *moved = builder.clone(*move);
      moved->setOperand(0, numbers);
      numbers = moved->getResult(0);
      numbers.setType(
          tensorType(numbers).clone(elementType(widened.getOperand())));
    }
    return numbers;
  }

  static void multiply(Operation *product) {
    std::array<ScaledFactor, 2> factors = {
        *matchScaledFloat8(product->getOperand(0)),
        *matchScaledFloat8(product->getOperand(1))};
    OpBuilder builder(product);
    TensorBuilder t(product->getLoc(), builder);
    Operation *narrow = builder.clone(*product);
    for (auto [i, factor] : llvm::enumerate(factors))
      narrow->setOperand(i, numbersOf(factor, builder));
    // They were made behind it.
    narrow->moveBefore(product);
    Value y = narrow->getResult(0);
    RankedTensorType wanted = tensorType(y);
    y.setType(wanted.clone(builder.getF32Type()));
    bool mayScale = multipliesFloat8(narrow);
    SmallVector<Value, 2> scales;
    for (auto [i, factor] : llvm::enumerate(factors)) {
      if (!factor.scale)
        continue;
      SmallVector<int64_t> shape;
      if (factor.dim) {
        std::optional<int64_t> dim = resultDimOf(narrow, i, *factor.dim);
        mayScale &= dim.has_value();
        shape.assign(wanted.getRank(), 1);
        if (dim)
          shape[*dim] = wanted.getDimSize(*dim);
      }
      if (mayScale)
        scales.push_back(
            t.reshape(t.cast(factor.scale, builder.getF32Type()), shape));
    }
    if (!mayScale) {
      narrow->erase();
      return;
    }
    for (Value scale : scales)
      y = t.mul(y, scale);
    product->getResult(0).replaceAllUsesWith(
        t.cast(y, wanted.getElementType()));
    product->erase();
  }
};

} // namespace
