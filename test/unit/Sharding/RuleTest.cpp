//===- RuleTest.cpp - From operand layouts to assignments -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Sharding/Rule.h"
#include "ax/Sharding/LayoutText.h"

#include <gtest/gtest.h>

using namespace ax::sharding;

namespace {

class RuleTest : public ::testing::Test {
protected:
  Mesh mesh{{{"data", 2}, {"row", 3}, {"col", 4}}};

  Layout layout(const std::string &text, const std::vector<int64_t> &shape) {
    ParsedLayout result = parseLayout(text, shape, mesh);
    EXPECT_TRUE(result.layout) << text << ": " << result.fault;
    return result.layout.value_or(Layout::replicated(shape));
  }
  /// Text of result 0's layout, or the fault.
  std::string infer(const Rule &rule, const std::vector<Layout> &operands) {
    InferredAssignment inferred = inferAssignment(rule, operands, mesh);
    if (!inferred.assignment)
      return inferred.fault;
    for (size_t i = 0; i < operands.size(); ++i)
      EXPECT_EQ(toString(operandLayout(rule, *inferred.assignment, i), mesh),
                toString(operands[i], mesh));
    return toString(resultLayout(rule, *inferred.assignment, 0), mesh);
  }
  static bool has(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  }
};

Rule matmulRule(int64_t m, int64_t k, int64_t n) {
  Rule rule;
  int fm = rule.addFactor(m), fk = rule.addFactor(k, FactorKind::Reduction),
      fn = rule.addFactor(n);
  rule.operands = {{{fm}, {fk}}, {{fk}, {fn}}};
  rule.results = {{{fm}, {fn}}};
  rule.linear = {{0}, {1}};
  return rule;
}

Rule addRule(std::vector<int64_t> shape) {
  Rule rule;
  TensorMap map;
  for (int64_t size : shape)
    map.push_back({rule.addFactor(size)});
  rule.operands = {map, map};
  rule.results = {map};
  rule.linear = {{0, 1}};
  return rule;
}

TEST_F(RuleTest, MatmulMegatron) {
  Rule rule = matmulRule(8, 16, 32);
  EXPECT_EQ(infer(rule, {layout("[{data}, {}]", {8, 16}),
                         layout("[{}, {col}]", {16, 32})}),
            "[{data}, {col}]");
  EXPECT_EQ(infer(rule, {layout("[{data}, {col}]", {8, 16}),
                         layout("[{col}, {}]", {16, 32})}),
            "[{data}, {}], partial sum {col}");
  EXPECT_EQ(infer(rule, {layout("[{data}, {}], partial sum {row}", {8, 16}),
                         layout("[{}, {col}]", {16, 32})}),
            "[{data}, {col}], partial sum {row}");
}

TEST_F(RuleTest, MatmulFaults) {
  Rule rule = matmulRule(8, 16, 32);
  EXPECT_TRUE(has(infer(rule, {layout("[{}, {col}]", {8, 16}),
                               layout("[{}, {}]", {16, 32})}),
                  "splits factor 1"));
  EXPECT_TRUE(has(infer(rule, {layout("[{col}, {}]", {8, 16}),
                               layout("[{}, {col}]", {16, 32})}),
                  "used twice"));
  EXPECT_TRUE(has(infer(rule, {layout("[{}, {}], partial sum {col}", {8, 16}),
                               layout("[{}, {col}]", {16, 32})}),
                  "used twice"));
  EXPECT_TRUE(
      has(infer(rule, {layout("[{}, {}], partial sum {col}", {8, 16}),
                       layout("[{}, {}], partial sum {col}", {16, 32})}),
          "not linear"));
  EXPECT_TRUE(has(infer(rule, {layout("[{}, {}], partial max {col}", {8, 16}),
                               layout("[{}, {}]", {16, 32})}),
                  "not every operand"));
}

TEST_F(RuleTest, ReshapeStraddlesABoundary) {
  Rule rule;
  int b = rule.addFactor(6), h = rule.addFactor(2), d = rule.addFactor(4);
  rule.operands = {{{b}, {h, d}}};
  rule.results = {{{b}, {h}, {d}}};
  rule.linear = {{0}};
  rule.passesMaxMin = true;
  EXPECT_EQ(infer(rule, {layout("[{row}, {col}]", {6, 8})}),
            "[{row}, {col:(1)2}, {col:(2)2}]");
  EXPECT_EQ(infer(rule, {layout("[{}, {}], partial max {col}", {6, 8})}),
            "[{}, {}, {}], partial max {col}");
  EXPECT_TRUE(
      has(infer(rule, {layout("[{}, {row}]", {6, 8})}), "does not fall"));
}

TEST_F(RuleTest, FusedQkvSlice) {
  // One of three slices of a fused projection: which, heads x width.
  Rule rule;
  int s = rule.addFactor(5), which = rule.addFactor(3, FactorKind::Whole),
      m = rule.addFactor(512);
  rule.operands = {{{s}, {which, m}}};
  rule.results = {{{s}, {m}}};
  rule.linear = {{0}};
  EXPECT_EQ(infer(rule, {layout("[{}, 3 * 512{col}]", {5, 1536})}),
            "[{}, {col}]");
  EXPECT_TRUE(
      has(infer(rule, {layout("[{}, {row}]", {5, 1536})}), "cannot be split"));
  EXPECT_TRUE(
      has(infer(rule, {layout("[{}, {col}]", {5, 1536})}), "does not fall"));
}

TEST_F(RuleTest, JointlyLinear) {
  Rule rule = addRule({8, 16});
  Layout partial = layout("[{data}, {}], partial sum {col}", {8, 16});
  Layout whole = layout("[{data}, {}]", {8, 16});
  EXPECT_EQ(infer(rule, {partial, partial}), "[{data}, {}], partial sum {col}");
  EXPECT_TRUE(has(infer(rule, {partial, whole}), "not linear"));
  EXPECT_TRUE(
      has(infer(rule,
                {partial, layout("[{data}, {}], partial sum {row}", {8, 16})}),
          "different axes"));
}

TEST_F(RuleTest, VocabularyPaddingAndOptOut) {
  // table[V, d], ids[s] -> out[s, d].
  Rule rule;
  int v = rule.addFactor(11, FactorKind::Reduction), d = rule.addFactor(16),
      s = rule.addFactor(5);
  rule.operands = {{{v}, {d}}, {{s}}};
  rule.results = {{{s}, {d}}};
  rule.linear = {{0}};
  std::vector<Layout> operands = {layout("[{col}, {}]", {11, 16}),
                                  layout("[{}]", {5})};
  EXPECT_EQ(infer(rule, operands), "[{}, {}], partial sum {col}");
  rule.factors[v].mayPad = false;
  EXPECT_TRUE(has(infer(rule, operands), "does not divide"));
}

TEST_F(RuleTest, UnevenPartsDoNotCompose) {
  Rule rule;
  int b = rule.addFactor(2), s = rule.addFactor(5);
  rule.operands = {{{b}, {s}}};
  rule.results = {{{b, s}}};
  EXPECT_TRUE(
      has(infer(rule, {layout("[{}, {col}]", {2, 5})}), "compound dimension"));
}

TEST_F(RuleTest, FactorsOnlyInResults) {
  Rule rule;
  int b = rule.addFactor(8), n = rule.addFactor(16);
  rule.operands = {{{}, {n}}};
  rule.results = {{{b}, {n}}};
  std::vector<Layout> operands = {layout("[{}, {col}]", {1, 16})};
  EXPECT_EQ(infer(rule, operands), "[{}, {col}]");
  std::vector<Layout> results = {layout("[{data}, {col}]", {8, 16})};
  InferredAssignment inferred = inferAssignment(rule, operands, results, mesh);
  ASSERT_TRUE(inferred.assignment) << inferred.fault;
  EXPECT_EQ(resultLayout(rule, *inferred.assignment, 0), results[0]);
}

TEST_F(RuleTest, RulesAreChecked) {
  Rule rule = matmulRule(8, 16, 32);
  EXPECT_FALSE(findFault(rule, {{8, 16}, {16, 32}}, {{8, 32}}));
  EXPECT_TRUE(findFault(rule, {{8, 16}, {16, 31}}, {{8, 32}}));
  rule.factors[1].kind = FactorKind::Parallel;
  EXPECT_TRUE(findFault(rule, {{8, 16}, {16, 32}}, {{8, 32}}));
}

} // namespace
