//===- Window.cpp - Gradients of convolutions and pooling -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../GradientRules.h"
#include "ax/Gradients/PoolSizes.h"

using namespace mlir;
using namespace ax;

/// Pads of a transposed convolution over `small` that fills `large` exactly.
namespace {
struct TransposedPads {
  SmallVector<int64_t> pads, output;

  TransposedPads(ArrayRef<int64_t> large, ArrayRef<int64_t> small,
                 ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                 ArrayRef<int64_t> convPads, ArrayRef<int64_t> dilations)
      : pads(convPads.take_front(large.size())) {
    for (size_t i = 0; i < large.size(); ++i) {
      int64_t reached = strides[i] * (small[i] - 1) +
                        (kernel[i] - 1) * dilations[i] + 1 - convPads[i];
      pads.push_back(std::max<int64_t>(reached - large[i], 0));
      output.push_back(std::max<int64_t>(large[i] - reached, 0));
    }
  }
};
} // namespace

static LogicalResult conv(ConvOp op, GradientBuilder &g) {
  Value x = op.getX(), w = op.getW(), dy = g.ofResult();
  ArrayRef<int64_t> kernel = shapeOf(w).drop_front(2);
  g.give(op.getXMutable(), [&]() -> Value {
    TransposedPads fit(shapeOf(x).drop_front(2), shapeOf(dy).drop_front(2),
                       kernel, op.getStrides(), op.getPads(),
                       op.getDilations());
    return ConvTransposeOp::create(g.b, dy, w, op.getStrides(), fit.pads,
                                   op.getDilations(), fit.output,
                                   op.getGroups());
  });
  g.give(op.getWMutable(), [&]() -> Value {
    return ConvWeightGradientOp::create(g.b, x, dy, kernel, op.getStrides(),
                                        op.getPads(), op.getDilations(),
                                        op.getGroups());
  });
  return success();
}

static LogicalResult convTranspose(ConvTransposeOp op, GradientBuilder &g) {
  Value x = op.getX(), w = op.getW(), dy = g.ofResult();
  // What the output pads add is read by no window of the convolution.
  size_t spatial = op.getStrides().size();
  SmallVector<int64_t> pads(op.getPads());
  for (size_t i = 0; i < spatial; ++i)
    if (op.getOutputPads()[i] >= op.getStrides()[i])
      pads[spatial + i] -= op.getOutputPads()[i];
  g.give(op.getXMutable(), [&]() -> Value {
    return ConvOp::create(g.b, dy, w, op.getStrides(), pads, op.getDilations(),
                          op.getGroups());
  });
  g.give(op.getWMutable(), [&]() -> Value {
    return ConvWeightGradientOp::create(g.b, dy, x, shapeOf(w).drop_front(2),
                                        op.getStrides(), pads,
                                        op.getDilations(), op.getGroups());
  });
  return success();
}

/// Each element gets the sum of the gradients of the windows that it is in: a
/// transposed convolution of every channel by itself with ones.
static Value spread(PoolOp op, GradientBuilder &g, Value dy) {
  ArrayRef<int64_t> shape = shapeOf(op.getX());
  TransposedPads fit(shape.drop_front(2), shapeOf(dy).drop_front(2),
                     op.getKernel(), op.getStrides(), op.getPads(),
                     op.getDilations());
  SmallVector<int64_t> ones = {shape[1], 1};
  llvm::append_range(ones, op.getKernel());
  return ConvTransposeOp::create(g.b, dy, g.splat(ones, elementType(dy), 1),
                                 op.getStrides(), fit.pads, op.getDilations(),
                                 fit.output, /*groups=*/shape[1]);
}

static LogicalResult pool(PoolOp op, GradientBuilder &g) {
  Value dy = g.ofResult();
  g.give(op.getXMutable(), [&]() -> Value {
    switch (op.getKind()) {
    case PoolKind::max:
      return MaxPoolGradientOp::create(g.b, op.getX(), dy, op.getKernel(),
                                       op.getStrides(), op.getPads(),
                                       op.getDilations(), op.getCeilExtra());
    case PoolKind::avg:
      return spread(op, g, g.div(dy, poolSizes(op, g, elementType(dy))));
    case PoolKind::sum:
      return spread(op, g, dy);
    }
    llvm_unreachable("pool kind");
  });
  return success();
}

void ax::attachWindowGradients(MLIRContext &context) {
  attachGradient<ConvOp, conv>(context);
  attachGradient<ConvTransposeOp, convTranspose>(context);
  attachGradient<PoolOp, pool>(context);
}
