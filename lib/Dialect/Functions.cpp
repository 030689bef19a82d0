//===- Functions.cpp - Kinds of functions and what is known of them -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/UnaryFunctions.h"

using namespace mlir;
using namespace ax;

#include "ax/Dialect/AxEnums.cpp.inc"

const UnaryFacts &ax::factsOf(UnaryKind kind) {
  static constexpr auto facts =
      tabulateUnary<UnaryFacts>([](auto function) { return function.facts; });
  return facts[static_cast<uint32_t>(kind)];
}

BinaryFacts ax::factsOf(BinaryKind kind) {
  using Operands = FunctionOperands;
  using Linearity = FunctionLinearity;
  constexpr bool commutative = true;
  switch (kind) {
  case BinaryKind::add:
    return {Operands::Any, commutative, Linearity::Jointly};
  case BinaryKind::sub:
    return {Operands::Any, !commutative, Linearity::Jointly};
  case BinaryKind::mul:
    return {Operands::Any, commutative, Linearity::InEach};
  case BinaryKind::div:
    // Integer division truncates each addend.
    return {Operands::Any, !commutative, Linearity::InFirstOfFloats,
            FunctionCost::Division};
  case BinaryKind::pow:
    return {Operands::Any, !commutative, Linearity::None, FunctionCost::Many};
  case BinaryKind::max:
  case BinaryKind::min:
    return {Operands::Any, commutative};
  case BinaryKind::floor_mod:
  case BinaryKind::trunc_mod:
    return {Operands::Any, !commutative, Linearity::None,
            FunctionCost::Division};
  case BinaryKind::logical_and:
  case BinaryKind::logical_or:
  case BinaryKind::logical_xor:
    return {Operands::Bools, commutative};
  case BinaryKind::bit_and:
  case BinaryKind::bit_or:
  case BinaryKind::bit_xor:
    return {Operands::Integers, commutative};
  case BinaryKind::shl:
  case BinaryKind::shr:
    return {Operands::Integers, !commutative};
  }
  llvm_unreachable("binary kind");
}

std::optional<FunctionCost> ax::functionCostOf(Operation *op) {
  if (auto unary = dyn_cast<UnaryOp>(op))
    return factsOf(unary.getKind()).cost;
  if (auto binary = dyn_cast<BinaryOp>(op))
    return factsOf(binary.getKind()).cost;
  return std::nullopt;
}
