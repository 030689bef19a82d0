//===- TransposeFloat8.cpp - Weights of eight bits, k innermost -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Gradients/TensorBuilder.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ax {
#define GEN_PASS_DEF_TRANSPOSEFLOAT8
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

/// The operations that make `value` of a weight, element by element, in order:
/// empty where it is something else.
static SmallVector<Operation *> makingOf(Value value) {
  SmallVector<Operation *> making;
  while (Operation *op = value.getDefiningOp()) {
    if (isa<LoadOp>(op))
      return {making.rbegin(), making.rend()};
    if (!isElementwise(op))
      break;
    making.push_back(op);
    SmallVector<Value> whole(
        llvm::make_filter_range(op->getOperands(), [&](Value operand) {
          return shapeOf(operand) == shapeOf(value);
        }));
    if (whole.size() != 1)
      break;
    value = whole.front();
  }
  return {};
}

/// `value`, [k, n] or what is repeated to that, transposed. What has one
/// dimension that counts is seen so.
static Value transposed(TensorBuilder &t, Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  if (shape.empty())
    return value;
  if (shape.size() == 1)
    shape.insert(shape.begin(), 1);
  if (shape[0] != 1 && shape[1] != 1)
    return t.transpose(value, {1, 0});
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return t.reshape(value, {shape[1], shape[0]});
}

static void transposeWeight(LinearOp linear) {
  SmallVector<Operation *> making = makingOf(linear.getW());
  if (making.empty())
    return;
  IRMapping mapping;
  for (Operation *op : making) {
    OpBuilder builder(op);
    TensorBuilder t(op->getLoc(), builder);
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, transposed(t, operand));
    Operation *made = builder.clone(*op, mapping);
    RankedTensorType type = tensorType(op->getResult(0));
    made->getResult(0).setType(
        type.clone({type.getDimSize(1), type.getDimSize(0)}));
  }
  linear.getWMutable().assign(mapping.lookup(linear.getW()));
  linear.setTransposeW(true);
  // What nobody reads any more would have its word in what is sharded.
  SmallVector<Operation *> open(making);
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && !llvm::is_contained(open, source))
        open.insert(open.begin(), source);
    op->erase();
  }
}

namespace {
struct TransposeFloat8 : ax::impl::TransposeFloat8Base<TransposeFloat8> {
  void runOnOperation() final {
    SmallVector<LinearOp> found;
    getOperation()->walk([&](LinearOp linear) {
      if (!linear.getTransposeW() && isProductOfFloat8(linear))
        found.push_back(linear);
    });
    llvm::for_each(found, transposeWeight);
  }
};
} // namespace
