//===- GenerateElementwise.cpp - Random element-wise ops, reductions ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpGenerators.h"

#include "ax/Dialect/FunctionFacts.h"

using namespace mlir;

namespace ax::test {

static Operation *unary(Gen &g) {
  auto kind = static_cast<UnaryKind>(g.pick(0, getMaxEnumValForUnaryKind()));
  DType type = g.real;
  if (factsOf(kind).operands == FunctionOperands::Bools)
    type = DType::Bool;
  else if (factsOf(kind).operands == FunctionOperands::Integers)
    type = DType::I32;
  return make<UnaryOp>(g, kind, g.operand(type, g.shape(0, 4)));
}

static Operation *binary(Gen &g) {
  auto kind = static_cast<BinaryKind>(g.pick(0, getMaxEnumValForBinaryKind()));
  // More of those through which partial sums pass.
  if (g.chance(50))
    kind = g.oneOf(
        {BinaryKind::add, BinaryKind::sub, BinaryKind::mul, BinaryKind::div});
  DType type = g.number();
  if (factsOf(kind).operands == FunctionOperands::Bools)
    type = DType::Bool;
  else if (factsOf(kind).operands == FunctionOperands::Integers)
    type = DType::U8;
  Shape full = g.shape(0, 4), lhs = full, rhs = full;
  (g.chance(50) ? lhs : rhs) = g.broadcastable(full);
  int64_t low = type == DType::U8 ? 0 : -4;
  // Addends divided by 0 are not what their sum gives.
  int64_t rhsLow = kind == BinaryKind::div ? 1 : low;
  return make<BinaryOp>(g, kind, g.operand(type, lhs, low),
                        g.operand(type, rhs, rhsLow));
}

static Operation *compare(Gen &g) {
  auto kind = static_cast<CompareKind>(g.pick(0, 5));
  DType type = g.number();
  Shape full = g.shape(0, 4);
  return make<CompareOp>(g, kind, g.operand(type, full),
                         g.operand(type, g.broadcastable(full)));
}

static Operation *select(Gen &g) {
  DType type = g.oneOf({g.real, DType::I64, DType::Bool});
  Shape full = g.shape(0, 4);
  return make<SelectOp>(g, g.operand(DType::Bool, g.broadcastable(full)),
                        g.operand(type, full),
                        g.operand(type, g.broadcastable(full)));
}

static Operation *cast(Gen &g) {
  auto any = [&] {
    return g.oneOf({DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32,
                    DType::U8, DType::Bool});
  };
  Shape shape = g.shape(0, 4);
  DType from = any(), to = any();
  return make<CastOp>(g, g.type(to, shape), g.operand(from, shape));
}

static Operation *dropout(Gen &g) {
  Value seed = g.operand(DType::I64, {}), step = g.operand(DType::I64, {});
  return make<DropoutOp>(g, g.operand(g.real, g.shape(0, 4)), seed, step,
                         llvm::APFloat(0.25), g.pick(0, 3));
}

static Operation *uniform(Gen &g) {
  Value seed = g.operand(DType::I64, {}), step = g.operand(DType::I64, {});
  return make<UniformOp>(g, g.type(DType::F32, g.shape(0, 4)), seed, step,
                         g.pick(0, 3));
}

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

static Operation *atMost(Gen &g) {
  return make<AtMostOp>(
      g, g.operand(g.oneOf({DType::I32, DType::I64}), g.shape(0, 3), 0, 5), 5);
}

static Operation *softmax(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<SoftmaxOp>(g, g.operand(g.real, shape),
                         g.pick(0, shape.size() - 1), g.chance(50));
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

void addElementwiseGenerators(llvm::StringMap<Generator> &to) {
  to["at_most"] = atMost;
  to["non_max_suppression"] = nonMaxSuppression;
  to["unary"] = unary;
  to["binary"] = binary;
  to["compare"] = compare;
  to["select"] = select;
  to["cast"] = cast;
  to["dropout"] = dropout;
  to["uniform"] = uniform;
}

void addReductionGenerators(llvm::StringMap<Generator> &to) {
  to["reduce"] = reduce;
  to["arg_reduce"] = argReduce;
  to["cumulative"] = cumulative;
  to["top_k"] = topK;
  to["softmax"] = softmax;
  to["layer_norm"] = norm<LayerNormOp>;
  to["rms_norm"] = norm<RMSNormOp>;
}

} // namespace ax::test
