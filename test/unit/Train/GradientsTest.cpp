//===- GradientsTest.cpp - Every gradient against differences -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In f64 on the reference interpreter: the gradient of every operand of every
// operation that has one, in all its kinds and attributes, against central
// differences.
//
//===----------------------------------------------------------------------===//

#include "TrainTestSupport.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace ax;
using namespace ax::test;

namespace {

std::vector<Case> allCases() {
  std::vector<Case> all;
#define AX_FILE(Name) add##Name##Cases(all);
#include "Cases.inc"
#undef AX_FILE
  return all;
}

class EveryGradient : public testing::TestWithParam<Case> {};

TEST_P(EveryGradient, IsThatOfDifferences) {
  const Case &c = GetParam();
  std::string text = programText(c);
  auto module = parse(text);
  ASSERT_TRUE(module);
  bool isThere = false;
  std::string wanted = std::string("ax.") + c.op;
  module->walk([&](Operation *op) {
    isThere |= op->getName().getStringRef() == wanted;
  });
  EXPECT_TRUE(isThere) << text;

  States states = stateValues(c);
  OwningOpRef<ModuleOp> trained = module->clone();
  // The pass manager verifies what comes out.
  ASSERT_EQ(runPasses(*trained, "ax-differentiate"), "") << text;
  States results = interpret(*trained, {}, states);
  for (const Operand &operand : c.operands) {
    auto gradient = results.find(std::string("gradient of ") + operand.name);
    HostTensor &value = states[operand.name];
    for (int64_t i = 0; i < value.numElements(); ++i) {
      constexpr double h = 1e-5;
      double at = value.getDouble(i);
      value.setDouble(i, at + h);
      double above = interpret(*module, {}, states)["loss"].getDouble(0);
      value.setDouble(i, at - h);
      double below = interpret(*module, {}, states)["loss"].getDouble(0);
      value.setDouble(i, at);
      double expected = (above - below) / (2 * h);
      // An operand that nothing flows through has no gradient.
      double actual =
          gradient == results.end() ? 0 : gradient->second.getDouble(i);
      ASSERT_NEAR(actual, expected, 1e-6 * (1 + std::fabs(expected)))
          << operand.name << "[" << i << "] = " << at << " in\n"
          << text;
    }
  }
}

std::string caseName(const testing::TestParamInfo<Case> &info) {
  std::string name = std::string(info.param.op) + "_" + info.param.name;
  for (char &c : name)
    c = std::isalnum(c) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryGradient, testing::ValuesIn(allCases()),
                         caseName);

TEST(Gradients, EveryOneHasCases) {
  // StraightThrough has it, whose gradient is no difference.
  std::set<std::string> tested = {"ax.fake_quantize"};
  for (const Case &c : allCases())
    tested.insert(std::string("ax.") + c.op);
  int count = 0;
  for (RegisteredOperationName op : context().getRegisteredOperationsByDialect(
           AxDialect::getDialectNamespace()))
    if (op.hasInterface<DifferentiableOpInterface>()) {
      ++count;
      EXPECT_TRUE(tested.count(op.getStringRef().str()))
          << op.getStringRef().str() << " has a gradient and no case";
    }
  EXPECT_GT(count, 25);
}

/// Gradients of one operand [n] at corners.
std::vector<double> atCorners(const std::string &body,
                              std::vector<double> values) {
  std::string n = std::to_string(values.size());
  Case c{"", "", {{"a", n}}, body, n};
  auto module = parse(programText(c));
  EXPECT_EQ(runPasses(*module, "ax-differentiate"), "");
  States states = {{"a", HostTensor::fromValues<double>(
                             {static_cast<int64_t>(values.size())}, values)}};
  States results = interpret(*module, {}, states);
  std::vector<double> gradient;
  for (size_t i = 0; i < values.size(); ++i)
    gradient.push_back(results["gradient of a"].getDouble(i) /
                       (1.3 + 0.31 * static_cast<double>(i)));
  return gradient;
}

TEST(Gradients, CornersAreAsInPyTorch) {
  EXPECT_EQ(atCorners("%r = ax.unary relu %a : $a -> $r", {-1, 0, 1}),
            (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(atCorners("%r = ax.unary abs %a : $a -> $r", {-1, 0, 1}),
            (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(atCorners("%c = ax.constant dense<0.0> : tensor<f64> -> tensor<f64>"
                      "%r = ax.binary max %a, %c : $a, tensor<f64> -> $r",
                      {-1, 0, 1}),
            (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(atCorners("%c = ax.constant dense<3.0> : tensor<f64> -> tensor<f64>"
                      "%r = ax.binary pow %a, %c : $a, tensor<f64> -> $r",
                      {0, 1, 2}),
            (std::vector<double>{0, 3, 12}));
}

TEST(Gradients, StraightThrough) {
  EXPECT_EQ(atCorners("%r = ax.fake_quantize %a : $a -> $r", {-1, 0, 0.3, 2}),
            (std::vector<double>{1, 1, 1, 1}));
}

TEST(Gradients, EqualExtremesShare) {
  Case c{"", "", {{"a", "5"}}, "%r = ax.reduce max %a dims [0] : $a -> $r", ""};
  auto module = parse(programText(c));
  ASSERT_EQ(runPasses(*module, "ax-differentiate"), "");
  States results =
      interpret(*module, {},
                {{"a", HostTensor::fromValues<double>({5}, {1, 3, 2, 3, -1})}});
  std::vector<double> expected = {0, 0.65, 0, 0.65, 0};
  for (int i = 0; i < 5; ++i)
    EXPECT_DOUBLE_EQ(results["gradient of a"].getDouble(i), expected[i]);
}

} // namespace
