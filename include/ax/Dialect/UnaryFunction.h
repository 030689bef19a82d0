//===- UnaryFunction.h - What a function of one element has -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of UnaryKind is stated once: what is known of it, its value, its
// gradient. The interpreter, the emitter of kernels and the Train phase each
// bring an arithmetic, M, on which they evaluate these: of numbers, of a
// kernel's scalars, of tensors. Without one of the three it does not build.
//
// All arithmetics have
//   unary(kind, x)                   another function
//   add, mul, div, neg               add and mul also of a double as y
//   compare(kind, x, y)              y may be a double
//   select(condition, x, y)          y may be a double
//   number(x, value)                 of x's type
// and those of values have abs, sqrt, ceil, floor, round (half to even), trunc,
// bitNot, and library(name, function, x): a function of the C library, which
// also has one of f32.
//
// Kernels may have a better form of a function in a type (ScalarMath.h).
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_UNARYFUNCTION_H
#define AX_DIALECT_UNARYFUNCTION_H

#include "ax/Dialect/FunctionFacts.h"

#include <array>
#include <utility>

namespace ax {

/// Each kind has a specialization with
///   facts                  UnaryFacts
///   value(m, x)
///   gradient(m, x, y, dy)  dy times the slope at x, where the value is y; at
///                          corners as in PyTorch. NoGradient if it is 0.
template <UnaryKind kind>
struct UnaryFunction;

struct NoGradient {};

template <typename T, typename Make, uint32_t... kinds>
constexpr std::array<T, sizeof...(kinds)>
tabulateUnary(Make make, std::integer_sequence<uint32_t, kinds...>) {
  return {make(UnaryFunction<static_cast<UnaryKind>(kinds)>())...};
}

/// What `make` gives for the UnaryFunction of each kind, by kind.
template <typename T, typename Make>
constexpr auto tabulateUnary(Make make) {
  return tabulateUnary<T>(
      make,
      std::make_integer_sequence<uint32_t, getMaxEnumValForUnaryKind() + 1>());
}

} // namespace ax

#endif // AX_DIALECT_UNARYFUNCTION_H
