//===- NarrowEpilogues.cpp - Sums with biases in the product's type -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: mixed precision multiplies in bf16, and all else is f32,
//
//   y = linear x, w : bf16     wide = cast y to f32     sum = wide + b
//   g = gelu_tanh sum          h = cast g to bf16
//
// for which a kernel reads y and writes h. As
//
//   s = y + (cast b to bf16) : bf16     h = gelu_tanh s : bf16
//
// all of it is an epilogue, which has y in f32 until it writes s or h.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"

namespace ax::codegen {
#define GEN_PASS_DEF_NARROWEPILOGUES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static bool isNarrow(Value value) {
  Type type = elementType(value);
  return type.isBF16() || type.isF16();
}

/// What alone reads `value`, if that is such an operation.
template <typename OpTy>
static OpTy onlyReader(Value value) {
  return value.hasOneUse() ? dyn_cast<OpTy>(*value.user_begin()) : OpTy();
}

namespace {

struct NarrowEpiloguesPass
    : codegen::impl::NarrowEpiloguesBase<NarrowEpiloguesPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto linear : stage.getBlock().getOps<LinearOp>())
        if (isNarrow(linear.getResult()))
          narrow(linear);
      removeUnused(stage.getBlock());
    });
  }

  static void narrow(LinearOp linear) {
    auto widened = onlyReader<CastOp>(linear.getResult());
    if (!widened || !elementType(widened.getResult()).isF32())
      return;
    Value wide = widened.getResult();
    if (auto sum = onlyReader<BinaryOp>(wide))
      if (Value bias = biasOf(sum, wide))
        wide = addNarrow(linear, sum, bias);
    narrowActivation(linear, wide);
  }

  /// A number for each column; null where `sum` adds something else.
  static Value biasOf(BinaryOp sum, Value wide) {
    Value added = sum->getOperand(sum.getLhs() == wide);
    bool fits = sum.getKind() == BinaryKind::add &&
                shapeOf(added) == shapeOf(wide).take_back() &&
                tensorType(wide).getRank() > 1;
    return fits ? added : Value();
  }

  /// Returns the sum that is made in the product's type, as f32.
  static Value addNarrow(LinearOp linear, BinaryOp sum, Value bias) {
    // What there is from the beginning is rounded there, all biases together.
    OpBuilder builder(sum);
    if (isa<BlockArgument>(bias))
      builder.setInsertionPointToStart(sum->getBlock());
    Location loc = sum.getLoc();
    RankedTensorType type = tensorType(linear.getResult());
    auto rounded = CastOp::create(
        builder, loc, tensorType(bias).clone(type.getElementType()), bias);
    builder.setInsertionPoint(sum);
    auto added = BinaryOp::create(builder, loc, type, BinaryKind::add,
                                  linear.getResult(), rounded);
    auto wide = CastOp::create(builder, loc, sum.getType(), added);
    sum.getResult().replaceAllUsesWith(wide);
    return wide;
  }

  /// Of activations those that are only read when they are rounded.
  static void narrowActivation(LinearOp linear, Value wide) {
    Value narrow = wide.getDefiningOp<CastOp>().getOperand();
    for (Operation *user : llvm::make_early_inc_range(wide.getUsers())) {
      auto activation = dyn_cast<UnaryOp>(user);
      if (!activation || activation.use_empty() ||
          activation.getType() != wide.getType() ||
          !llvm::all_of(activation->getUsers(), [&](Operation *reader) {
            return isa<CastOp>(reader) &&
                   reader->getResult(0).getType() == narrow.getType();
          }))
        continue;
      OpBuilder builder(activation);
      auto rounded =
          UnaryOp::create(builder, activation.getLoc(), narrow.getType(),
                          activation.getKind(), narrow);
      for (Operation *reader :
           llvm::make_early_inc_range(activation->getUsers()))
        reader->getResult(0).replaceAllUsesWith(rounded);
    }
  }
};

} // namespace
