//===- FunctionsTest.cpp - Functions of numbers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTestSupport.h"

#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Functions.h"

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

/// Beside differences.
TEST(Functions, GradientsOfActivations) {
  const std::vector<double> at{-2.1, -0.3, 0.4, 1.7}, dy{1, -2, 0.5, 3};
  const Shape shape{1, 4};
  std::vector<double> one(16);
  for (size_t i = 0; i < one.size(); i += 5)
    one[i] = 1;
  for (UnaryKind kind :
       {UnaryKind::relu, UnaryKind::gelu, UnaryKind::gelu_tanh, UnaryKind::silu,
        UnaryKind::tanh, UnaryKind::sigmoid}) {
    std::string name = stringifyUnaryKind(kind).str();
    HostTensor got =
        interpreter::run(R"(
      %r = axl.library(%x0, %x1, %x2) {
      ^bb0(%a: tensor<1x4xf64>, %b: tensor<4x4xf64>, %c: tensor<1x4xf64>):
        %0 = ax.linear %a, %b
            : tensor<1x4xf64>, tensor<4x4xf64> -> tensor<1x4xf64>
        %1 = axl.unary_gradient )" +
                             name +
                             R"( %0 at %c : tensor<1x4xf64>
        axl.yield %1 : tensor<1x4xf64>
      } : (tensor<1x4xf64>, tensor<4x4xf64>, tensor<1x4xf64>)
          -> tensor<1x4xf64>)",
                         {HostTensor::fromValues<double>(shape, dy),
                          HostTensor::fromValues<double>({4, 4}, one),
                          HostTensor::fromValues<double>(shape, at)},
                         "tensor<1x4xf64>");
    ASSERT_EQ(got.getShape(), shape);
    interpreter::UnaryFn function = interpreter::unaryFunction(kind);
    constexpr double step = 1e-6;
    for (size_t i = 0; i < at.size(); ++i)
      EXPECT_NEAR(got.getDouble(static_cast<int64_t>(i)),
                  dy[i] * (function(at[i] + step) - function(at[i] - step)) /
                      (2 * step),
                  1e-8)
          << name << " at " << at[i];
  }
}

/// What is added up begins with the first micro-batch, whatever is there
/// before.
TEST(Functions, AccumulateOverMicroBatches) {
  using namespace interpreter;
  auto module =
      parseProgram(R"(
      %r = axl.library(%x0, %x1, %x2) {
      ^bb0(%a: tensor<1x2xf32>, %b: tensor<2x1xf32>, %c: tensor<1x1xf32>):
        %0 = ax.linear %a, %b
            : tensor<1x2xf32>, tensor<2x1xf32> -> tensor<1x1xf32>
        %1 = axl.accumulate %0 to %c over {micro} : tensor<1x1xf32>
        axl.yield %1 : tensor<1x1xf32>
      } : (tensor<1x2xf32>, tensor<2x1xf32>, tensor<1x1xf32>)
          -> tensor<1x1xf32>)",
                   {f32({1, 2}, {0, 0}), f32({2, 1}, {0, 0}), f32({1, 1}, {0})},
                   "tensor<1x1xf32>");
  ASSERT_TRUE(module);
  LibraryOp library;
  module->walk([&](LibraryOp found) { library = found; });
  sharding::Mesh mesh({{"micro", 3, /*inTime=*/true}});
  const std::vector<HostTensor> operands{
      f32({1, 2}, {1, 2}), f32({2, 1}, {3, 4}), f32({1, 1}, {100})};
  for (int64_t number : {0, 1, 2}) {
    Place place{&mesh, {number}};
    auto results = interpret(library, operands, &place);
    ASSERT_TRUE(static_cast<bool>(results));
    EXPECT_EQ(results->front().values<float>()[0], number ? 111 : 11);
  }
  auto lost = interpret(library, operands);
  ASSERT_FALSE(static_cast<bool>(lost));
  EXPECT_EQ(describeError(lost.takeError()).message,
            "axl.accumulate: no place on a mesh is known");
}
