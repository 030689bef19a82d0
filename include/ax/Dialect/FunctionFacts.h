//===- FunctionFacts.h - What is known of functions -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the verifier, sharding rules, fusion and tests ask of element-wise
// functions. Of those of one element it is stated where they are defined
// (UnaryFunctions.h), of those of two in lib/Dialect/Functions.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_FUNCTIONFACTS_H
#define AX_DIALECT_FUNCTIONFACTS_H

#include "ax/Dialect/AxEnums.h"

#include <optional>

namespace mlir {
class Operation;
} // namespace mlir

namespace ax {

/// The elements that a function takes. Integers are also i1, numbers are not.
enum class FunctionOperands { Floats, Numbers, Integers, Bools, Any };

/// About how many instructions an element costs where a device has vectors: an
/// instruction or two, a division, or some tens.
enum class FunctionCost { One = 1, Division = 6, Many = 16 };

/// Each function below gives the facts with one more.
struct UnaryFacts {
  constexpr explicit UnaryFacts(FunctionOperands operands)
      : operands(operands) {}

  /// The result is i1.
  constexpr UnaryFacts givingBools() const {
    UnaryFacts facts = *this;
    facts.givesBools = true;
    return facts;
  }
  /// Everywhere, not only in an interval: it passes a maximum over ranks on,
  /// and a number of which one rank's addend is outside the function's domain
  /// would give NaN.
  constexpr UnaryFacts nonDecreasing() const {
    UnaryFacts facts = *this;
    facts.isNonDecreasing = true;
    return facts;
  }
  /// f(x + y) = f(x) + f(y), rounding aside: it passes a sum over ranks on.
  constexpr UnaryFacts linear() const {
    UnaryFacts facts = *this;
    facts.isLinear = true;
    return facts;
  }
  /// f(f(x)) = x.
  constexpr UnaryFacts ownInverse() const {
    UnaryFacts facts = *this;
    facts.isOwnInverse = true;
    return facts;
  }
  /// f(f(x)) = f(x).
  constexpr UnaryFacts idempotent() const {
    UnaryFacts facts = *this;
    facts.isIdempotent = true;
    return facts;
  }
  /// An instruction or two.
  constexpr UnaryFacts cheap() const { return costing(FunctionCost::One); }
  constexpr UnaryFacts likeDivision() const {
    return costing(FunctionCost::Division);
  }
  /// Where it is defined and not steep, for tests.
  constexpr UnaryFacts within(double from, double to) const {
    UnaryFacts facts = *this;
    facts.low = from;
    facts.high = to;
    return facts;
  }

  FunctionOperands operands;
  bool givesBools = false, isNonDecreasing = false, isLinear = false;
  bool isOwnInverse = false, isIdempotent = false;
  FunctionCost cost = FunctionCost::Many;
  double low = -2, high = 2.2;
  /// Whether floats give floats.
  constexpr bool isOfFloats() const {
    return !givesBools && (operands == FunctionOperands::Floats ||
                           operands == FunctionOperands::Numbers);
  }

private:
  constexpr UnaryFacts costing(FunctionCost each) const {
    UnaryFacts facts = *this;
    facts.cost = each;
    return facts;
  }
};

const UnaryFacts &factsOf(UnaryKind kind);

/// Says through which operands sums over ranks pass, rounding aside.
enum class FunctionLinearity {
  None,
  /// f(a + b, c + d) = f(a, c) + f(b, d).
  Jointly,
  /// They pass through each operand, while all ranks have the other.
  InEach,
  /// They pass through the first, where elements are floats: division.
  InFirstOfFloats,
};

struct BinaryFacts {
  FunctionOperands operands = FunctionOperands::Any;
  bool isCommutative = false;
  FunctionLinearity linear = FunctionLinearity::None;
  FunctionCost cost = FunctionCost::One;
};

BinaryFacts factsOf(BinaryKind kind);

/// What an element of the operation costs, if it is a function of elements.
std::optional<FunctionCost> functionCostOf(mlir::Operation *op);

} // namespace ax

#endif // AX_DIALECT_FUNCTIONFACTS_H
