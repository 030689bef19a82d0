//===- Shape.cpp - Random ops that move elements --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpGenerators.h"

#include "ax/Interpreter/Elements.h"

#include <numeric>

using namespace mlir;

namespace ax::test {

static Operation *constant(Gen &g) {
  DType type = g.oneOf({g.real, DType::I64, DType::Bool});
  HostTensor tensor = g.values(type, g.shape(0, 4));
  return make<ConstantOp>(
      g, interpreter::toElementsAttr(tensor, g.builder.getContext()));
}

static Operation *iota(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t dim = g.pick(0, shape.size() - 1);
  return make<IotaOp>(g, g.type(g.number(), shape), dim);
}

/// A shape of as many elements: primes grouped anew, and some ones.
static Shape regroup(Gen &g, std::vector<int64_t> primes) {
  Shape shape;
  for (int64_t prime : primes) {
    if (shape.empty() || g.chance(50))
      shape.push_back(1);
    shape.back() *= prime;
  }
  if (g.chance(30))
    shape.insert(shape.begin() + g.pick(0, shape.size()), 1);
  return shape;
}

static Operation *reshape(Gen &g) {
  std::vector<int64_t> primes;
  int64_t product = 1;
  while (product < 100 && !g.chance(10)) {
    primes.push_back(g.oneOf<int64_t>({2, 2, 2, 3, 5}));
    product *= primes.back();
  }
  Shape from = regroup(g, primes);
  // Mostly digits that nest, sometimes any.
  if (g.chance(25))
    g.shuffle(primes);
  return make<ReshapeOp>(g, g.type(g.real, regroup(g, primes)),
                         g.operand(g.real, from));
}

static Operation *transpose(Gen &g) {
  Shape from = g.shape(0, 4), to;
  SmallVector<int64_t> order(from.size());
  std::iota(order.begin(), order.end(), 0);
  g.shuffle(order);
  for (int64_t dim : order)
    to.push_back(from[dim]);
  return make<TransposeOp>(g, g.type(g.real, to), g.operand(g.real, from),
                           order);
}

static Operation *broadcast(Gen &g) {
  Shape to = g.shape(0, 4);
  return make<BroadcastOp>(g, g.type(g.real, to),
                           g.operand(g.real, g.broadcastable(to)));
}

static Operation *slice(Gen &g) {
  Shape from, to;
  SmallVector<int64_t> starts, steps;
  for (int64_t i = g.pick(1, 3); i > 0; --i) {
    int64_t size = g.extent();
    if (g.chance(30)) {
      // Whole parts of an aligned dimension.
      int64_t parts = g.pick(1, 3), first = g.pick(0, parts - 1);
      from.push_back(parts * size);
      starts.push_back(first * size);
      to.push_back(g.pick(1, parts - first) * size);
      steps.push_back(1);
    } else {
      int64_t start = g.pick(0, size - 1);
      int64_t step = g.oneOf<int64_t>({1, 1, 2, -1, -2});
      int64_t room = step > 0 ? (size - 1 - start) / step : start / -step;
      from.push_back(size);
      starts.push_back(start);
      to.push_back(g.pick(1, room + 1));
      steps.push_back(step);
    }
  }
  return make<SliceOp>(g, g.type(g.real, to), g.operand(g.real, from), starts,
                       steps);
}

static Operation *dynamicSlice(Gen &g) {
  Shape from = g.shape(1, 3), to;
  Value operand = g.operand(g.real, from);
  SmallVector<Value> starts;
  for (int64_t size : from) {
    to.push_back(g.pick(1, size));
    starts.push_back(g.operand(DType::I64, {}, -1, size));
  }
  return make<DynamicSliceOp>(g, g.type(g.real, to), operand, starts);
}

static Operation *concat(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t dim = g.pick(0, shape.size() - 1);
  bool equal = g.chance(40);
  SmallVector<Value> operands;
  for (int64_t i = g.pick(1, 3); i > 0; --i) {
    if (!equal)
      shape[dim] = g.extent();
    operands.push_back(g.operand(g.real, shape));
  }
  return make<ConcatOp>(g, ValueRange(operands), dim);
}

static Operation *pad(Gen &g) {
  Shape shape = g.shape(1, 3);
  auto mode = static_cast<PadMode>(g.pick(0, 3));
  SmallVector<int64_t> low, high;
  for (int64_t size : shape) {
    bool padded = g.chance(40);
    low.push_back(padded ? g.pick(0, std::max<int64_t>(size - 1, 0)) : 0);
    high.push_back(padded ? g.pick(0, std::max<int64_t>(size - 1, 0)) : 0);
  }
  Value operand = g.operand(g.real, shape);
  Value value = mode == PadMode::constant ? g.operand(g.real, {}) : Value();
  return make<PadOp>(g, operand, value, low, high, mode);
}

static Operation *load(Gen &g) {
  return make<LoadOp>(g, g.type(g.number(), g.shape(0, 4)), "state");
}

void addShapeGenerators(llvm::StringMap<Generator> &to) {
  to["constant"] = constant;
  to["iota"] = iota;
  to["load"] = load;
  to["reshape"] = reshape;
  to["transpose"] = transpose;
  to["broadcast"] = broadcast;
  to["slice"] = slice;
  to["dynamic_slice"] = dynamicSlice;
  to["concat"] = concat;
  to["pad"] = pad;
}

} // namespace ax::test
