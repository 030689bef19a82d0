//===- UnaryFunctions.h - Functions of one element --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function of UnaryKind, once. UnaryFunction.h says how.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_UNARYFUNCTIONS_H
#define AX_DIALECT_UNARYFUNCTIONS_H

#include "ax/Dialect/UnaryFunction.h"

#include <cmath>
#include <limits>

namespace ax {

constexpr UnaryFacts ofFloats(FunctionOperands::Floats);
constexpr UnaryFacts ofNumbers(FunctionOperands::Numbers);

template <typename M, typename V>
auto oneMinus(M &m, V x) {
  return m.add(m.neg(x), 1);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <>
struct UnaryFunction<UnaryKind::neg> {
  static constexpr UnaryFacts facts = ofNumbers.linear().ownInverse().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.neg(x); };
  static constexpr auto gradient = [](auto &m, auto, auto, auto dy) {
    return m.neg(dy);
  };
};

template <>
struct UnaryFunction<UnaryKind::abs> {
  static constexpr UnaryFacts facts = ofNumbers.idempotent().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.abs(x); };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::sign, x));
  };
};

template <>
struct UnaryFunction<UnaryKind::sign> {
  static constexpr UnaryFacts facts = ofNumbers.nonDecreasing().cheap();
  static constexpr auto value = [](auto &m, auto x) {
    // x itself where it is neither above nor below: zeros and NaN.
    auto below = m.select(m.compare(CompareKind::lt, x, 0), m.number(x, -1), x);
    return m.select(m.compare(CompareKind::gt, x, 0), m.number(x, 1), below);
  };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::sqrt> {
  static constexpr UnaryFacts facts = ofFloats.likeDivision().within(0.3, 2.2);
  static constexpr auto value = [](auto &m, auto x) { return m.sqrt(x); };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.div(dy, m.mul(y, 2));
  };
};

template <>
struct UnaryFunction<UnaryKind::rsqrt> {
  static constexpr UnaryFacts facts = ofFloats.likeDivision().within(0.3, 2.2);
  static constexpr auto value = [](auto &m, auto x) {
    return m.div(m.number(x, 1), m.sqrt(x));
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, m.mul(m.mul(m.mul(y, y), y), -0.5));
  };
};

template <>
struct UnaryFunction<UnaryKind::reciprocal> {
  static constexpr UnaryFacts facts = ofFloats.likeDivision().within(0.3, 2.2);
  static constexpr auto value = [](auto &m, auto x) {
    return m.div(m.number(x, 1), x);
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, m.neg(m.mul(y, y)));
  };
};

template <>
struct UnaryFunction<UnaryKind::ceil> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.ceil(x); };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::floor> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.floor(x); };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::round> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.round(x); };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::trunc> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.trunc(x); };
  static constexpr NoGradient gradient = {};
};

//===----------------------------------------------------------------------===//
// Of the C library
//===----------------------------------------------------------------------===//

template <>
struct UnaryFunction<UnaryKind::exp> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("exp", std::exp, x);
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, y);
  };
};

template <>
struct UnaryFunction<UnaryKind::log> {
  static constexpr UnaryFacts facts = ofFloats.within(0.3, 2.2);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("log", std::log, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.div(dy, x);
  };
};

template <>
struct UnaryFunction<UnaryKind::log1p> {
  static constexpr UnaryFacts facts = ofFloats.within(-0.9, 0.9);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("log1p", std::log1p, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.div(dy, m.add(x, 1));
  };
};

template <>
struct UnaryFunction<UnaryKind::expm1> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("expm1", std::expm1, x);
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, m.add(y, 1));
  };
};

template <>
struct UnaryFunction<UnaryKind::sin> {
  static constexpr UnaryFacts facts = ofFloats;
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("sin", std::sin, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::cos, x));
  };
};

template <>
struct UnaryFunction<UnaryKind::cos> {
  static constexpr UnaryFacts facts = ofFloats;
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("cos", std::cos, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.neg(m.mul(dy, m.unary(UnaryKind::sin, x)));
  };
};

template <>
struct UnaryFunction<UnaryKind::tan> {
  static constexpr UnaryFacts facts = ofFloats.within(-1.2, 1.2);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("tan", std::tan, x);
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, m.add(m.mul(y, y), 1));
  };
};

template <>
struct UnaryFunction<UnaryKind::asin> {
  static constexpr UnaryFacts facts = ofFloats.within(-0.9, 0.9);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("asin", std::asin, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::rsqrt, oneMinus(m, m.mul(x, x))));
  };
};

template <>
struct UnaryFunction<UnaryKind::acos> {
  static constexpr UnaryFacts facts = ofFloats.within(-0.9, 0.9);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("acos", std::acos, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.neg(
        m.mul(dy, m.unary(UnaryKind::rsqrt, oneMinus(m, m.mul(x, x)))));
  };
};

template <>
struct UnaryFunction<UnaryKind::atan> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("atan", std::atan, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.div(dy, m.add(m.mul(x, x), 1));
  };
};

template <>
struct UnaryFunction<UnaryKind::sinh> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("sinh", std::sinh, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::cosh, x));
  };
};

template <>
struct UnaryFunction<UnaryKind::cosh> {
  static constexpr UnaryFacts facts = ofFloats;
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("cosh", std::cosh, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::sinh, x));
  };
};

template <>
struct UnaryFunction<UnaryKind::tanh> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("tanh", std::tanh, x);
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, oneMinus(m, m.mul(y, y)));
  };
};

template <>
struct UnaryFunction<UnaryKind::asinh> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("asinh", std::asinh, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::rsqrt, m.add(m.mul(x, x), 1)));
  };
};

template <>
struct UnaryFunction<UnaryKind::acosh> {
  static constexpr UnaryFacts facts = ofFloats.within(1.2, 3);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("acosh", std::acosh, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::rsqrt, m.add(m.mul(x, x), -1)));
  };
};

template <>
struct UnaryFunction<UnaryKind::atanh> {
  static constexpr UnaryFacts facts = ofFloats.within(-0.9, 0.9);
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("atanh", std::atanh, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.div(dy, oneMinus(m, m.mul(x, x)));
  };
};

template <>
struct UnaryFunction<UnaryKind::erf> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    return m.library("erf", std::erf, x);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(
        dy, m.mul(m.unary(UnaryKind::exp, m.neg(m.mul(x, x))), M_2_SQRTPI));
  };
};

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

template <>
struct UnaryFunction<UnaryKind::relu> {
  static constexpr UnaryFacts facts =
      ofNumbers.nonDecreasing().idempotent().cheap();
  static constexpr auto value = [](auto &m, auto x) {
    return m.select(m.compare(CompareKind::lt, x, 0), m.number(x, 0), x);
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.select(m.compare(CompareKind::gt, y, 0), dy, 0);
  };
};

template <>
struct UnaryFunction<UnaryKind::sigmoid> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    // Both branches are made of exp(-|x|), which does not overflow.
    auto e = m.unary(UnaryKind::exp, m.neg(m.abs(x)));
    auto top = m.select(m.compare(CompareKind::lt, x, 0), e, m.number(x, 1));
    return m.div(top, m.add(e, 1));
  };
  static constexpr auto gradient = [](auto &m, auto, auto y, auto dy) {
    return m.mul(dy, m.mul(y, oneMinus(m, y)));
  };
};

template <>
struct UnaryFunction<UnaryKind::silu> {
  static constexpr UnaryFacts facts = ofFloats;
  static constexpr auto value = [](auto &m, auto x) {
    return m.mul(x, m.unary(UnaryKind::sigmoid, x));
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    auto s = m.unary(UnaryKind::sigmoid, x);
    return m.mul(dy, m.mul(s, m.add(m.mul(x, oneMinus(m, s)), 1)));
  };
};

template <>
struct UnaryFunction<UnaryKind::gelu> {
  static constexpr UnaryFacts facts = ofFloats;
  static constexpr auto value = [](auto &m, auto x) {
    auto tail = m.library("erfc", std::erfc, m.mul(x, -M_SQRT1_2));
    return m.mul(m.mul(x, 0.5), tail);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    // The normal distribution, of which the value is x times, and its density.
    auto erf = m.unary(UnaryKind::erf, m.mul(x, M_SQRT1_2));
    auto distribution = m.mul(m.add(erf, 1), 0.5);
    auto density = m.mul(m.unary(UnaryKind::exp, m.mul(m.mul(x, x), -0.5)),
                         0.5 * M_SQRT1_2 * M_2_SQRTPI);
    return m.mul(dy, m.add(distribution, m.mul(x, density)));
  };
};

template <>
struct UnaryFunction<UnaryKind::gelu_tanh> {
  static constexpr UnaryFacts facts = ofFloats;
  static constexpr auto value = [](auto &m, auto x) {
    // x (1 + tanh(z)) / 2, without a loss of digits.
    constexpr double scale = M_SQRT1_2 * M_2_SQRTPI;
    auto cube = m.mul(m.mul(m.mul(x, 0.044715), x), x);
    auto z = m.mul(m.add(x, cube), scale);
    return m.mul(x, m.unary(UnaryKind::sigmoid, m.mul(z, 2)));
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    constexpr double scale = M_SQRT1_2 * M_2_SQRTPI, cubic = 0.044715;
    auto square = m.mul(x, x);
    auto t = m.unary(UnaryKind::tanh,
                     m.mul(m.mul(x, m.add(m.mul(square, cubic), 1)), scale));
    auto slope = m.mul(m.add(m.mul(square, 3 * cubic), 1), 0.5 * scale);
    auto rest = m.add(m.neg(m.mul(t, t)), 1);
    return m.mul(dy,
                 m.add(m.mul(m.add(t, 1), 0.5), m.mul(m.mul(x, rest), slope)));
  };
};

template <>
struct UnaryFunction<UnaryKind::softplus> {
  static constexpr UnaryFacts facts = ofFloats.nonDecreasing();
  static constexpr auto value = [](auto &m, auto x) {
    // log(1 + exp(x)), which does not overflow.
    auto tail =
        m.unary(UnaryKind::log1p, m.unary(UnaryKind::exp, m.neg(m.abs(x))));
    auto positive =
        m.select(m.compare(CompareKind::lt, x, 0), m.number(x, 0), x);
    return m.add(positive, tail);
  };
  static constexpr auto gradient = [](auto &m, auto x, auto, auto dy) {
    return m.mul(dy, m.unary(UnaryKind::sigmoid, x));
  };
};

//===----------------------------------------------------------------------===//
// Of truth values and bits, and giving them
//===----------------------------------------------------------------------===//

template <>
struct UnaryFunction<UnaryKind::logical_not> {
  static constexpr UnaryFacts facts =
      UnaryFacts(FunctionOperands::Bools).ownInverse().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.bitNot(x); };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::bit_not> {
  static constexpr UnaryFacts facts =
      UnaryFacts(FunctionOperands::Integers).ownInverse().cheap();
  static constexpr auto value = [](auto &m, auto x) { return m.bitNot(x); };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::is_nan> {
  static constexpr UnaryFacts facts = ofFloats.givingBools().cheap();
  static constexpr auto value = [](auto &m, auto x) {
    return m.compare(CompareKind::ne, x, x);
  };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::is_pos_inf> {
  static constexpr UnaryFacts facts = ofFloats.givingBools().cheap();
  static constexpr auto value = [](auto &m, auto x) {
    return m.compare(CompareKind::eq, x,
                     std::numeric_limits<double>::infinity());
  };
  static constexpr NoGradient gradient = {};
};

template <>
struct UnaryFunction<UnaryKind::is_neg_inf> {
  static constexpr UnaryFacts facts = ofFloats.givingBools().cheap();
  static constexpr auto value = [](auto &m, auto x) {
    return m.compare(CompareKind::eq, x,
                     -std::numeric_limits<double>::infinity());
  };
  static constexpr NoGradient gradient = {};
};

} // namespace ax

#endif // AX_DIALECT_UNARYFUNCTIONS_H
