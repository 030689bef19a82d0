//===- Elementwise.cpp - Random element-wise ops --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpGenerators.h"

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
                    DType::U8, DType::Bool, DType::F8E4M3FN, DType::F8E5M2});
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

static Operation *atMost(Gen &g) {
  return make<AtMostOp>(
      g, g.operand(g.oneOf({DType::I32, DType::I64}), g.shape(0, 3), 0, 5), 5);
}

void addElementwiseGenerators(llvm::StringMap<Generator> &to) {
  to["at_most"] = atMost;
  to["unary"] = unary;
  to["binary"] = binary;
  to["compare"] = compare;
  to["select"] = select;
  to["cast"] = cast;
  to["dropout"] = dropout;
  to["uniform"] = uniform;
}

} // namespace ax::test
