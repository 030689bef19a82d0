//===- FunctionsTest.cpp - Functions of numbers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Interpreter/Functions.h"
#include "ax/Dialect/Ax.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ax;

/// Beside the formulas of textbooks, where these have digits enough.
TEST(Functions, AreWhatTheyAreComposedFor) {
  auto tanhForm = [](double x) {
    return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  };
  for (double x : {-3.1, -0.7, -0.0, 0.0, 1e-3, 0.4, 2.6}) {
    auto expect = [&](UnaryKind kind, double value) {
      EXPECT_NEAR(interpreter::unaryFunction(kind)(x), value, 1e-15)
          << stringifyUnaryKind(kind).str() << " at " << x;
    };
    expect(UnaryKind::sigmoid, 1 / (1 + std::exp(-x)));
    expect(UnaryKind::silu, x / (1 + std::exp(-x)));
    expect(UnaryKind::gelu, x * (1 + std::erf(x / M_SQRT2)) / 2);
    expect(UnaryKind::gelu_tanh, x * (1 + tanhForm(x)) / 2);
    expect(UnaryKind::softplus, std::log(1 + std::exp(x)));
    expect(UnaryKind::relu, std::fmax(x, 0));
    expect(UnaryKind::sign, x == 0 ? x : std::copysign(1, x));
    expect(UnaryKind::round, std::nearbyint(x));
  }
}
