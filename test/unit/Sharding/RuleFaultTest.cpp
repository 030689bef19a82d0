//===- RuleFaultTest.cpp - What is wrong with rules and layouts -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Sharding/LayoutText.h"
#include "ax/Sharding/Reshard.h"
#include "ax/Sharding/Rule.h"

#include <gtest/gtest.h>

using namespace ax::sharding;

namespace {

class RuleFaultTest : public ::testing::Test {
protected:
  Mesh mesh{{{"row", 2}, {"col", 4}}};

  Layout layout(const std::string &text, const std::vector<int64_t> &shape) {
    ParsedLayout result = parseLayout(text, shape, mesh);
    EXPECT_TRUE(result.layout) << text << ": " << result.fault;
    return result.layout.value_or(Layout::replicated(shape));
  }
  void expectFault(const std::optional<std::string> &fault,
                   const std::string &expected) {
    EXPECT_NE(fault.value_or("").find(expected), std::string::npos)
        << "expected: " << expected << "\ngot: " << fault.value_or("nothing");
  }
  void expectMisfit(const Rule &rule, const std::vector<Layout> &operands,
                    const std::string &expected) {
    expectFault(inferAssignment(rule, operands, mesh).fault, expected);
  }
};

/// y[i] of x[i] and z[i], with i = 8.
Rule mapRule(int64_t numOperands) {
  Rule rule;
  int i = rule.addFactor(8);
  rule.operands.assign(numOperands, {{i}});
  rule.results = {{{i}}};
  return rule;
}

TEST_F(RuleFaultTest, PartialSums) {
  Layout row = layout("[{}], partial sum {row}", {8}),
         col = layout("[{}], partial sum {col}", {8}),
         max = layout("[{}], partial max {col}", {8}),
         whole = layout("[{}]", {8});
  Rule one = mapRule(1), two = mapRule(2);
  expectMisfit(one, {row},
               "operand 0 is a partial sum, in which the operation is not "
               "linear");
  expectMisfit(two, {row, col},
               "operand 0 and operand 1 are partial over different axes");
  expectMisfit(two, {max, whole},
               "operand 0 is partial max, but not every operand is");
  expectMisfit(one, {max}, "partial max does not pass through this operation");
  Assignment assignment = Assignment::unsplit(one);
  assignment.passedPartial = {mesh.whole("row")};
  expectFault(findFault(one, assignment, mesh),
              "the operation is not linear in the operands that are partial "
              "sums");
  Rule reduce;
  reduce.addFactor(8, FactorKind::Reduction, ReduceKind::Max);
  reduce.operands = {{{0}}};
  reduce.results = {{}};
  reduce.linear = {{0}};
  expectMisfit(reduce, {layout("[{col}], partial sum {row}", {8})},
               "the results would be partial in two ways (sum and max)");
}

TEST_F(RuleFaultTest, Layouts) {
  expectMisfit(mapRule(1), {layout("[{}, {}]", {8, 1})},
               "operand 0: the layout has 2 dimensions, not 1");
  Rule merged;
  merged.addFactor(3);
  merged.addFactor(4);
  merged.operands = {{{0, 1}}};
  merged.results = {{{0}, {1}}};
  expectMisfit(merged, {layout("[{col}]", {12})},
               "operand 0, dimension 0: split [{col}] does not fall on its "
               "parts 3");
  Assignment wrong = Assignment::unsplit(merged);
  wrong.factors.pop_back();
  expectFault(findFault(merged, wrong, mesh), "wrong number of factors");
  expectFault(findStepFault(StepKind::AllReduce, {mesh.whole("col")},
                            layout("[{}]", {8}), layout("[{}]", {4}), mesh),
              "operand and result differ in shape");
}

TEST_F(RuleFaultTest, Rules) {
  using Shapes = std::vector<std::vector<int64_t>>;
  auto check = [&](const Rule &rule, const Shapes &operands,
                   const std::string &expected) {
    expectFault(findFault(rule, operands, Shapes{{8}}), expected);
  };
  Rule rule = mapRule(1);
  EXPECT_FALSE(findFault(rule, Shapes{{8}}, Shapes{{8}}));
  check(rule, {}, "the rule has another number of operands or results");
  check(rule, {{8, 1}}, "operand 0 has another rank");
  check(rule, {{4}}, "operand 0, dimension 0: factors multiply to 8, not 4");
  Rule unknown = rule;
  unknown.operands[0][0][0] = 3;
  check(unknown, {{8}}, "operand 0 names an unknown factor");
  Rule absent = rule;
  absent.addFactor(4);
  check(absent, {{8}}, "parallel factor 1 is not in result 0");
  Rule kept = rule;
  kept.factors[0].kind = FactorKind::Reduction;
  check(kept, {{8}}, "reduction factor 0 is in every result");
  Rule set = rule;
  set.linear = {{2}};
  check(set, {{8}}, "a linear set names an unknown operand");
}

} // namespace
