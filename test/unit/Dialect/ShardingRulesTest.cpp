//===- ShardingRulesTest.cpp - Known rules --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rule as text: the factors of each dimension as letters (`.`: none), then
// each factor's size; `*` whole, `+` summed, `max`, `min` likewise, `!` splits
// only evenly. Then the sets of operands in which the op is linear.
//
//===----------------------------------------------------------------------===//

#include "ax/Dialect/Ax.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace ax;
using namespace ax::sharding;

static std::string toText(const TensorMap &map) {
  std::string text;
  for (const std::vector<int> &dim : map) {
    text += text.empty() ? "" : " ";
    text += dim.empty() ? "." : "";
    for (int f : dim)
      text += static_cast<char>('a' + f);
  }
  return "(" + text + ")";
}

static std::string toText(const Rule &rule) {
  std::string text;
  for (const TensorMap &map : rule.operands)
    text += toText(map);
  text += " -> ";
  for (const TensorMap &map : rule.results)
    text += toText(map);
  for (size_t f = 0; f < rule.factors.size(); ++f) {
    const RuleFactor &factor = rule.factors[f];
    text += std::string(" ") + static_cast<char>('a' + f) +
            std::to_string(factor.size);
    if (factor.kind == FactorKind::Whole)
      text += "*";
    if (factor.kind == FactorKind::Reduction)
      text += factor.reduce == ReduceKind::Sum ? "+" : toString(factor.reduce);
    text += factor.mayPad ? "" : "!";
  }
  for (const std::vector<int> &set : rule.linear) {
    text += " {";
    for (int operand : set)
      text += std::to_string(operand);
    text += "}";
  }
  return text;
}

/// Of the operation `body`, on arguments %0, %1, ... of the given types.
static std::string ruleOf(const std::vector<std::string> &arguments,
                          const std::string &body) {
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  std::string text = "ax.plan @p version 1 { ax.program @main(";
  for (size_t i = 0; i < arguments.size(); ++i)
    text += (i ? ", %x" : "%x") + std::to_string(i) + ": tensor<" +
            arguments[i] + ">";
  text += ") { " + body + " ax.return } }";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  std::string result;
  if (module)
    module->walk([&](ShardingRuleOpInterface op) {
      result = toText(op.getShardingRule());
    });
  return result;
}

static std::string reshapeRule(const std::string &from, const std::string &to) {
  return ruleOf({from + "xf32"}, "%r = ax.reshape %x0 : tensor<" + from +
                                     "xf32> -> tensor<" + to + "xf32>");
}

TEST(ShardingRules, ReshapeSharesDigits) {
  EXPECT_EQ(reshapeRule("2x16x24", "2x16x3x8"),
            "(a b cd) -> (a b c d) a2 b16 c3! d8! {0}");
  EXPECT_EQ(reshapeRule("2x16x3x8", "32x24"),
            "(a b c d) -> (ab cd) a2! b16! c3! d8! {0}");
  EXPECT_EQ(reshapeRule("1x6x1", "6"), "(. a .) -> (a) a6 {0}");
  EXPECT_EQ(reshapeRule("8x3", "2x12"), "(ab c) -> (a bc) a2! b4! c3! {0}");
}

TEST(ShardingRules, ReshapeThatDoesNotNest) {
  // Common major and minor digits split; what is between does not.
  EXPECT_EQ(reshapeRule("6x4x5", "4x6x5"),
            "(ac db g) -> (ae fb g) a2! b2! c3*! d2*! e2*! f3*! g5 {0}");
  EXPECT_EQ(reshapeRule("3x5", "5x3"), "(a b) -> (c d) a3* b5* c5* d3* {0}");
}

TEST(ShardingRules, SliceAndConcatKeepAlignedParts) {
  EXPECT_EQ(ruleOf({"4x24xf32"},
                   "%r = ax.slice %x0 starts [0, 8] steps [1, 1] : "
                   "tensor<4x24xf32> -> tensor<4x8xf32>"),
            "(a cb) -> (a b) a4 b8! c3*! {0}");
  EXPECT_EQ(ruleOf({"4x24xf32"},
                   "%r = ax.slice %x0 starts [0, 1] steps [2, 1] : "
                   "tensor<4x24xf32> -> tensor<2x8xf32>"),
            "(a c) -> (b d) a4* b2* c24* d8* {0}");
  EXPECT_EQ(ruleOf({"2x8xf32", "2x8xf32"},
                   "%r = ax.concat %x0, %x1 dim 1 : tensor<2x8xf32>, "
                   "tensor<2x8xf32> -> tensor<2x16xf32>"),
            "(a b)(a b) -> (a cb) a2 b8! c2*! {01}");
}

TEST(ShardingRules, Broadcasting) {
  EXPECT_EQ(ruleOf({"4x1xf32", "3xf32"},
                   "%r = ax.binary add %x0, %x1 : tensor<4x1xf32>, "
                   "tensor<3xf32> -> tensor<4x3xf32>"),
            "(a .)(b) -> (a b) a4 b3 {01}");
  EXPECT_EQ(ruleOf({"1x3xf32"}, "%r = ax.broadcast %x0 : tensor<1x3xf32> -> "
                                "tensor<2x4x3xf32>"),
            "(. c) -> (a b c) a2 b4 c3 {0}");
}

TEST(ShardingRules, CastsPassAddendsThatStayWhatTheyAre) {
  auto castRule = [](const std::string &from, const std::string &to) {
    return ruleOf({"4x" + from}, "%r = ax.cast %x0 : tensor<4x" + from +
                                     "> -> tensor<4x" + to + ">");
  };
  EXPECT_EQ(castRule("f32", "f16"), "(a) -> (a) a4 {0}");
  EXPECT_EQ(castRule("f32", "f64"), "(a) -> (a) a4 {0}");
  // Sums of integers are exact in f64, their addends in f32 are not.
  EXPECT_EQ(castRule("f64", "f32"), "(a) -> (a) a4");
  EXPECT_EQ(castRule("f64", "f16"), "(a) -> (a) a4");
  EXPECT_EQ(castRule("i32", "f32"), "(a) -> (a) a4");
}

TEST(ShardingRules, Linear) {
  EXPECT_EQ(ruleOf({"2x8x16xf32", "16x32xf32"},
                   "%r = ax.linear %x0, %x1 : tensor<2x8x16xf32>, "
                   "tensor<16x32xf32> -> tensor<2x8x32xf32>"),
            "(a b c)(c d) -> (a b d) a2 b8 c16+ d32 {0} {1}");
}

TEST(ShardingRules, AttentionByKeyValueHeads) {
  std::string types = ": tensor<2x8x5x4xf32>, tensor<2x2x7x4xf32>, "
                      "tensor<2x2x7x3xf32> -> tensor<2x8x5x3xf32>";
  std::vector<std::string> operands = {"2x8x5x4xf32", "2x2x7x4xf32",
                                       "2x2x7x3xf32", "1x8x1x7xi1"};
  EXPECT_EQ(ruleOf(operands, "%r = ax.attention %x0, %x1, %x2 mask %x3 : "
                             "tensor<1x8x1x7xi1> scale 1.0 " +
                                 types),
            "(a bc d f)(a b e f)(a b e g)(. bc . e) -> (a bc d g) "
            "a2 b2! c4! d5 e7* f4* g3 {2}");
  EXPECT_EQ(ruleOf(operands, "%r = ax.attention %x0, %x1, %x2 scale 1.0 "
                             "{causal} " +
                                 types),
            "(a bc d f)(a b e f)(a b e g) -> (a bc d g) "
            "a2 b2! c4! d5 e7* f4* g3 {2}");
}

// Heads of a group, and queries, add up to the gradients of keys and values.
TEST(ShardingRules, AttentionBackwards) {
  std::vector<std::string> operands{"2x8x5x4xf32", "2x2x7x4xf32", "2x2x7x3xf32",
                                    "2x8x5x3xf32", "2x8x5x3xf32"};
  std::string given = "tensor<2x8x5x4xf32>, tensor<2x2x7x4xf32>, "
                      "tensor<2x2x7x3xf32>";
  std::string types =
      " : " + given + ", tensor<2x8x5x3xf32>, tensor<2x8x5x3xf32> -> " + given;
  std::string op = "%r:3 = ax.attention_gradient %x0, %x1, %x2, %x3, %x4 "
                   "scale 1.0";
  EXPECT_EQ(ruleOf(operands, op + types),
            "(a bc d f)(a b e f)(a b e g)(a bc d g)(a bc d g) -> (a bc d f)"
            "(a b e f)(a b e g) a2 b2! c4+! d5+! e7* f4* g3* {4}");
  EXPECT_EQ(ruleOf(operands, op + " {causal}" + types),
            "(a bc d f)(a b e f)(a b e g)(a bc d g)(a bc d g) -> (a bc d f)"
            "(a b e f)(a b e g) a2 b2! c4+! d5+! e7* f4* g3* {4}");
}

TEST(ShardingRules, ConvolutionsByGroups) {
  auto conv = [](std::string x, std::string w, std::string groups,
                 std::string result) {
    return ruleOf({x + "xf32", w + "xf32"},
                  "%r = ax.conv %x0, %x1 strides [1] pads [0, 0] dilations [1] "
                  "{groups = " +
                      groups + "} : tensor<" + x + "xf32>, tensor<" + w +
                      "xf32> -> tensor<" + result + "xf32>");
  };
  EXPECT_EQ(conv("2x6x5", "8x6x3", "1", "2x8x3"),
            "(a c d)(b c e) -> (a b f) "
            "a2 b8 c6+ d5* e3* f3* {0} {1}");
  EXPECT_EQ(conv("2x6x5", "6x1x3", "6", "2x6x3"),
            "(a b c)(b . d) -> (a b e) a2 b6 c5* d3* e3* {0} {1}");
  EXPECT_EQ(conv("2x6x5", "8x3x3", "2", "2x8x3"),
            "(a bd e)(bc d f) -> (a bc g) "
            "a2 b2! c4! d3+! e5* f3* g3* {0} {1}");
}

TEST(ShardingRules, LookupsSumOverTheVocabulary) {
  EXPECT_EQ(ruleOf({"50x8xf32", "2x3xi64"},
                   "%r = ax.gather %x0[%x1] axis 0 : tensor<50x8xf32>, "
                   "tensor<2x3xi64> -> tensor<2x3x8xf32>"),
            "(a b)(c d) -> (c d b) a50+ b8 c2 d3 {0}");
  EXPECT_EQ(ruleOf({"50xi1", "2xi64"},
                   "%r = ax.gather %x0[%x1] axis 0 : tensor<50xi1>, "
                   "tensor<2xi64> -> tensor<2xi1>"),
            "(a)(b) -> (b) a50max b2 {0}");
}

TEST(ShardingRules, Reductions) {
  EXPECT_EQ(ruleOf({"4x5xf32"}, "%r = ax.reduce max %x0 dims [1] keep_dims : "
                                "tensor<4x5xf32> -> tensor<4x1xf32>"),
            "(a b) -> (a .) a4 b5max");
  EXPECT_EQ(ruleOf({"4x5xf32"}, "%r = ax.reduce prod %x0 dims [0] : "
                                "tensor<4x5xf32> -> tensor<5xf32>"),
            "(a b) -> (b) a4* b5");
  EXPECT_EQ(ruleOf({"4x5xf32", "5xf32"},
                   "%r = ax.layer_norm %x0 scale %x1 : tensor<5xf32> axis 1 "
                   "epsilon 1.0e-5 : tensor<4x5xf32> -> tensor<4x5xf32>"),
            "(a b)(b) -> (a b) a4 b5*");
  EXPECT_EQ(ruleOf({"4x5xf32"}, "%v, %i = ax.top_k %x0 k 2 dim 1 : "
                                "tensor<4x5xf32> -> tensor<4x2xf32>, "
                                "tensor<4x2xi64>"),
            "(a b) -> (a c)(a c) a4 b5* c2*");
}
