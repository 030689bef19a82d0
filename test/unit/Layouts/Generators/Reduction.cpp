//===- Reduction.cpp - Random reductions, norms, scans --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpGenerators.h"

using namespace mlir;

namespace ax::test {

static ReduceOpKind reduceKind(Gen &g) {
  return g.oneOf({ReduceOpKind::sum, ReduceOpKind::sum, ReduceOpKind::max,
                  ReduceOpKind::min, ReduceOpKind::prod});
}

static Operation *reduce(Gen &g) {
  Shape shape = g.shape(0, 4);
  SmallVector<int64_t> dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (g.chance(50))
      dims.push_back(dim);
  ReduceOpKind kind = reduceKind(g);
  bool extreme = kind == ReduceOpKind::max || kind == ReduceOpKind::min;
  DType type = extreme && g.chance(25) ? DType::Bool : g.number();
  return make<ReduceOp>(g, kind, g.operand(type, shape, -2, 2), dims,
                        g.chance(50));
}

static Operation *argReduce(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<ArgReduceOp>(g, g.operand(g.real, shape),
                           g.pick(0, shape.size() - 1), g.chance(50),
                           g.chance(50));
}

static Operation *cumulative(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<CumulativeOp>(g, reduceKind(g), g.operand(g.real, shape, -2, 2),
                            g.pick(0, shape.size() - 1), g.chance(50),
                            g.chance(50));
}

static Operation *topK(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t dim = g.pick(0, shape.size() - 1);
  return make<TopKOp>(g, g.operand(g.real, shape), g.pick(1, shape[dim]), dim,
                      g.chance(50));
}

static Operation *nonMaxSuppression(Gen &g) {
  int64_t images = g.extent(), classes = g.extent(), boxes = g.extent();
  return make<NonMaxSuppressionOp>(
      g, g.operand(g.real, {images, boxes, 4}, 0, 9),
      g.operand(g.real, {images, classes, boxes}), g.pick(1, boxes),
      llvm::APFloat(0.37),
      g.chance(50) ? g.builder.getF64FloatAttr(-1.5) : mlir::FloatAttr());
}

static Operation *softmax(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<SoftmaxOp>(g, g.operand(g.real, shape),
                         g.pick(0, shape.size() - 1), g.chance(50));
}

static Operation *fakeQuantize(Gen &g) {
  return make<FakeQuantizeOp>(g, g.operand(g.real, g.shape(1, 3)));
}

template <typename OpT>
static Operation *norm(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t axis = g.pick(0, shape.size() - 1);
  Shape inner(shape.begin() + axis, shape.end());
  Value x = g.operand(g.real, shape);
  Value scale = g.chance(60) ? g.operand(g.real, inner) : Value();
  Value bias = g.chance(60) ? g.operand(g.real, inner) : Value();
  return make<OpT>(g, x, scale, bias, axis, llvm::APFloat(1e-5));
}

void addReductionGenerators(llvm::StringMap<Generator> &to) {
  to["non_max_suppression"] = nonMaxSuppression;
  to["reduce"] = reduce;
  to["arg_reduce"] = argReduce;
  to["cumulative"] = cumulative;
  to["top_k"] = topK;
  to["softmax"] = softmax;
  to["fake_quantize"] = fakeQuantize;
  to["layer_norm"] = norm<LayerNormOp>;
  to["rms_norm"] = norm<RMSNormOp>;
}

} // namespace ax::test
