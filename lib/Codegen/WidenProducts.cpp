//===- WidenProducts.cpp - What processors multiply in f32 ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Processors' libraries have no products of f16: what a kernel widens when it
// reads them takes up to ten times as long as in f32, as which weights are made
// once: but of one row, where weights are all that is read, a kernel of our own
// reads them narrow. And a convolution of each channel by itself has few
// products for each number that it reads, so there is nothing to gain by narrow
// ones; of bf16 with dilations oneDNN has no code for those, which take 100
// times as long as in f32.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Library.h"
#include "Products.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ax::codegen {
#define GEN_PASS_DEF_WIDENPRODUCTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether processors do it better in f32.
static bool isSlow(Operation *op) {
  if (!isa_and_present<LinearOp, DotOp, ConvOp, ConvTransposeOp,
                       ConvWeightGradientOp, AttentionOp, AttentionGradientOp,
                       GroupedMatmulOp, GroupedWeightGradientOp>(op))
    return false;
  Type type = elementType(op->getOperand(0));
  auto isByChannel = [&](auto conv) {
    bool isDilated = llvm::any_of(
        conv.getDilations(), [](int64_t dilation) { return dilation > 1; });
    auto groups = static_cast<int64_t>(conv.getGroups());
    return groups > 1 && groups == shapeOf(conv->getOperand(0))[1] &&
           type.isBF16() && isDilated;
  };
  return type.isF16() ||
         llvm::TypeSwitch<Operation *, bool>(op)
             .Case<ConvOp, ConvTransposeOp, ConvWeightGradientOp>(isByChannel)
             .Default(false);
}

static bool isNarrow(Value value) {
  return ax::isNarrowFloat(elementType(value));
}

static void setWide(Value value) {
  if (isNarrow(value))
    value.setType(
        tensorType(value).clone(Float32Type::get(value.getContext())));
}

/// A product, or one with what is behind it.
static void widen(Operation *op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands())
    if (isNarrow(operand.get()))
      setLibraryOperand(
          op, operand.getOperandNumber(),
          CastOp::create(builder, op->getLoc(),
                         tensorType(operand.get()).clone(builder.getF32Type()),
                         operand.get()));
  if (auto library = dyn_cast<LibraryOp>(op))
    for (Operation &inner : library.getBody().front())
      for (Value result : inner.getResults())
        setWide(result);
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (!isNarrow(result))
      continue;
    RankedTensorType type = tensorType(result);
    setWide(result);
    auto rounded = CastOp::create(builder, op->getLoc(), type, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }
}

/// Sums up a row of f16, which has become f32, times weights as they lie.
static void makeSum(Operation *op) {
  std::optional<Product> product = productOf(getLibraryCore(op));
  if (!product || product->rows != 1)
    return;
  if (auto library = dyn_cast<LibraryOp>(op))
    product = productOf(unwrapLibrary(library));
  composeRow(*product, /*gpu=*/false);
}

namespace {

struct WidenProductsPass : codegen::impl::WidenProductsBase<WidenProductsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isSlow(getLibraryCore(&op))) {
          widen(&op);
          makeSum(&op);
        }
    });
  }
};

} // namespace
