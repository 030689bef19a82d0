//===- AttentionTest.cpp - Interpreting attention and its gradient --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InterpreterTestSupport.h"

#include <numeric>

using namespace ax;
using namespace ax::interpreter;

TEST(Contraction, Attention) {
  HostTensor q = f32({1, 2, 2, 1}, {1, 1, 0, 0});
  HostTensor k = f32({1, 1, 2, 1}, {0, 1}), v = f32({1, 1, 2, 1}, {0, 1});
  auto attend = [&](std::string mask, std::string flags,
                    std::vector<HostTensor> operands) {
    return run("%r = ax.attention %x0, %x1, %x2 " + mask + " scale 1.0 " +
                   flags +
                   " : tensor<1x2x2x1xf32>, tensor<1x1x2x1xf32>, "
                   "tensor<1x1x2x1xf32> -> tensor<1x2x2x1xf32>",
               operands, "tensor<1x2x2x1xf32>");
  };
  expectValues(attend("", "", {q, k, v}), {0.73105858, 0.73105858, 0.5, 0.5});
  expectValues(attend("", "{causal}", {q, k, v}), {0, 0.73105858, 0, 0.5});
  HostTensor mask = boolean({1, 1, 2, 2}, {0, 0, 0, 1});
  std::string masked = "mask %x3 : tensor<1x1x2x2xi1>";
  expectValues(attend(masked, "", {q, k, v, mask}), {NAN, 1, NAN, 1});
  expectValues(attend(masked, "{empty_rows_zero}", {q, k, v, mask}),
               {0, 1, 0, 1});
}

// One query of two keys, to which it attends alike: p = (1/2, 1/2), and with
// dp = (0, 2) and their mean 1 ds = (-1/2, 1/2).
TEST(Contraction, AttentionBackwards) {
  HostTensor q = f32({1, 1, 1, 1}, {0}), k = f32({1, 1, 2, 1}, {3, 5}),
             v = f32({1, 1, 2, 1}, {0, 1}), y = f32({1, 1, 1, 1}, {0.5}),
             dy = f32({1, 1, 1, 1}, {2});
  auto gradient = [&](const char *result, std::string flags) {
    std::string one = "tensor<1x1x1x1xf32>", two = "tensor<1x1x2x1xf32>";
    return run("%dq, %dk, %dv = ax.attention_gradient %x0, %x1, %x2, %x3, %x4 "
               "scale 1.0 " +
                   flags + " : " + one + ", " + two + ", " + two + ", " + one +
                   ", " + one + " -> " + one + ", " + two + ", " + two +
                   "\n%r = ax.reshape %" + result + " : " +
                   (result == std::string("dq") ? one + " -> tensor<1xf32>"
                                                : two + " -> tensor<2xf32>"),
               {q, k, v, y, dy},
               result == std::string("dq") ? "tensor<1xf32>" : "tensor<2xf32>");
  };
  expectValues(gradient("dq", ""), {1});
  expectValues(gradient("dk", ""), {0, 0});
  expectValues(gradient("dv", ""), {1, 1});
  // With a second query it would be hidden; of one, the last sees all.
  expectValues(gradient("dq", "{causal}"), {1});
  // tanh(0) is as steep as no cap at all.
  expectValues(gradient("dq", "{softcap = 2.0 : f64}"), {1});
}

namespace {
/// Attention of f64 with four heads, two of which share keys and values, and
/// what it is multiplied by to give one number.
struct Slope {
  std::string flags;
  std::vector<HostTensor> mask;

  HostTensor random(Shape shape) {
    std::vector<double> values(product(shape));
    for (double &value : values) {
      ++drawn;
      value = std::sin(drawn * 1.7) + 0.3 * std::cos(drawn * drawn);
    }
    return HostTensor::fromValues<double>(std::move(shape), values);
  }
  static int64_t product(const Shape &shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                           std::multiplies<>());
  }
  std::string masked(int number) const {
    return mask.empty()
               ? ""
               : "mask %x" + std::to_string(number) + " : " +
                     typeText(toTensorType(mask[0], &testContext())) + " ";
  }
  HostTensor attend() const {
    std::vector<HostTensor> operands(in, in + 3);
    operands.insert(operands.end(), mask.begin(), mask.end());
    return run("%r = ax.attention %x0, %x1, %x2 " + masked(3) + "scale 0.7 " +
                   flags + " : " + types + " -> " + resultType,
               operands, resultType);
  }
  double number() const {
    HostTensor result = attend();
    double sum = 0;
    for (int64_t i = 0; i < result.numElements(); ++i)
      sum += result.getDouble(i) * dy.getDouble(i);
    return sum;
  }
  HostTensor gradient(int operand) const {
    std::vector<HostTensor> operands(in, in + 3);
    operands.push_back(attend());
    operands.push_back(dy);
    operands.insert(operands.end(), mask.begin(), mask.end());
    static const char *names[] = {"%r, %b, %c", "%a, %r, %c", "%a, %b, %r"};
    return run(std::string(names[operand]) +
                   " = ax.attention_gradient %x0, %x1, %x2, %x3, %x4 " +
                   masked(5) + "scale 0.7 " + flags + " : " + types + ", " +
                   resultType + ", " + resultType + " -> " + types,
               operands, typeText(toTensorType(in[operand], &testContext())));
  }

  /// The gradients beside what small steps change, of every element.
  void check() {
    for (int operand : {0, 1, 2}) {
      HostTensor got = gradient(operand);
      for (int64_t i = 0; i < got.numElements(); ++i) {
        double at = in[operand].getDouble(i), step = 1e-5;
        auto moved = [&](double by) {
          in[operand].setDouble(i, at + by);
          return number();
        };
        double want = (moved(step) - moved(-step)) / (2 * step);
        in[operand].setDouble(i, at);
        EXPECT_NEAR(got.getDouble(i), want, 1e-8)
            << flags << ", operand " << operand << ", element " << i;
      }
    }
  }

  const std::string resultType = "tensor<2x4x3x3xf64>",
                    types = "tensor<2x4x3x2xf64>, tensor<2x2x4x2xf64>, "
                            "tensor<2x2x4x3xf64>";
  int drawn = 0;
  HostTensor in[3] = {random({2, 4, 3, 2}), random({2, 2, 4, 2}),
                      random({2, 2, 4, 3})};
  HostTensor dy = random({2, 4, 3, 3});
};
} // namespace

TEST(Contraction, AttentionBackwardsIsTheSlope) {
  HostTensor hidden = boolean({1, 1, 3, 4}, {1, 0, 1, 1, //
                                             0, 0, 0, 0, //
                                             0, 1, 1, 0});
  for (std::string flags : {"", "causal, ", "softcap = 1.5 : f64, ",
                            "causal, softcap = 0.8 : f64, "})
    for (int masks : {0, 1, 2}) {
      Slope slope{"{" + flags + "empty_rows_zero}", {}};
      if (masks == 1)
        slope.mask = {hidden};
      if (masks == 2)
        slope.mask = {slope.random({1, 4, 1, 4})};
      slope.check();
    }
}

// A number beside which no score is anything says the same: a query that sees
// no key attends to all alike, also to those that are later.
TEST(Contraction, AttentionToAllAlike) {
  HostTensor seen = boolean({2, 1, 1, 4}, {0, 0, 1, 0, //
                                           1, 0, 1, 1});
  std::vector<double> added;
  for (int64_t batch : {0, 1})
    for (int64_t query = 0; query < 3; ++query)
      for (int64_t key = 0; key < 4; ++key) {
        bool isSeen = seen.getDouble(batch * 4 + key) != 0 && key <= query + 1;
        added.push_back(isSeen ? 0 : -1e300);
      }
  for (std::string flags : {"", "softcap = 1.5 : f64"}) {
    std::string more = flags.empty() ? "" : ", " + flags;
    Slope mean{"{causal, empty_rows_mean" + more + "}", {seen}};
    Slope number{"{" + flags + "}",
                 {HostTensor::fromValues<double>({2, 1, 3, 4}, added)}};
    auto expectSame = [](const HostTensor &got, const HostTensor &want) {
      for (int64_t i = 0; i < want.numElements(); ++i)
        EXPECT_NEAR(got.getDouble(i), want.getDouble(i), 1e-12);
    };
    expectSame(mean.attend(), number.attend());
    for (int operand : {0, 1, 2})
      expectSame(mean.gradient(operand), number.gradient(operand));
  }
}
