//===- VerifyTest.cpp - What the verifier says ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PlanRunner.h"
#include "SamplePlans.h"

#include "ax/Local/Local.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace ax::plan {

/// The message about `text` with every `from` replaced by `to`.
static std::string fault(std::string text, llvm::StringRef from,
                         llvm::StringRef to) {
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos) << from.str();
  for (; at != std::string::npos; at = text.find(from.str(), at + to.size()))
    text.replace(at, from.size(), to.str());
  auto module = parsePlan(text, "p.mlir", testContext());
  llvm::Error error = module ? verifyPlan(**module) : module.takeError();
  ErrorDescription description = describeError(std::move(error));
  EXPECT_EQ(description.code, ExitCode::BadPlan);
  return description.message;
}

static void expectFault(const char *text, llvm::StringRef from,
                        llvm::StringRef to, llvm::StringRef expected) {
  std::string message = fault(text, from, to);
  EXPECT_NE(message.find(expected.str()), std::string::npos)
      << "expected: " << expected.str() << "\ngot: " << message;
}

TEST(Verify, WrongLayoutNamesNodeAndWhatIsRight) {
  expectFault(
      mlpPlan, "tensor<8x16xf32, #ax.layout<[{}, {col}]>>",
      "tensor<8x16xf32, #ax.layout<[{}, {}]>>",
      "p.mlir:12:12: 'ax.linear' op of node 'fc1' has result 0 of "
      "layout [{data, micro}, {col}]; its operands give [{data, micro}, "
      "{}]; operand 1 is [{}, {}] and would have to be [{}, {col}]");
  expectFault(mlpPlan, "tensor<16x8xf32, #ax.layout<[{col}, {}]>>",
              "tensor<16x8xf32, #ax.layout<[{}, {}]>>",
              "'ax.linear' op of node 'fc2' has layouts that do not fit "
              "together: operand 1 splits factor");
}

TEST(Verify, StagesShareOnlyTransfers) {
  expectFault(pipelinePlan, "%c = %t", "%c = %s#0",
              "there is no ax.transfer from 0 to 1");
  expectFault(pipelinePlan, "from 0 to 1 slots 2", "from 1 to 0 slots 2",
              "sends what stage 0 has made");
  expectFault(pipelinePlan, "@forward1 on 1", "@forward1 on 0",
              "is a second stage on 0");
}

TEST(Verify, OneListReceives) {
  const char *text = R"(
ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = ax.stage @forward0 on 0 (%b = %x : tensor<4xf32>) -> (tensor<4xf32>) {
      ax.yield %b : tensor<4xf32>
    }
    %t = ax.transfer %a from 0 to 1 slots 2 : tensor<4xf32>
    %c = ax.stage @forward1 on 1 (%d = %t : tensor<4xf32>) -> (tensor<4xf32>) {
      ax.yield %d : tensor<4xf32>
    }
    %e = ax.stage @backward1 on 1 (%f = %c : tensor<4xf32>) -> (tensor<4xf32>)
        attributes {ax.action = "B"} {
      ax.yield %f : tensor<4xf32>
    }
    ax.schedule "1f1b" { stage 0: "F0", stage 1: "F0 B0" }
    ax.return %e : tensor<4xf32>
  }
})";
  expectFault(text, "%f = %c", "%f = %t",
              "is received by two lists of a stage");
}

TEST(Verify, EveryMicroBatchOnceInOneOrder) {
  expectFault(pipelinePlan, "stage 0: \"F0 F1\"", "stage 0: \"F0\"",
              "of stage 0: F1 is missing");
  expectFault(pipelinePlan, "stage 0: \"F0 F1\"", "stage 0: \"F0 F0 F1\"",
              "F0 stands there twice");
  expectFault(pipelinePlan, "stage 1: \"F0 F1\"", "stage 1: \"F1 F0\"",
              "in another order than stage 0");
  expectFault(pipelinePlan, "stage 0: \"F0 F1\"", "stage 0: \"F0 X1\"",
              "'X1' is no action");
}

TEST(Verify, StateIsInTheFolderAndHeldWhereLoaded) {
  expectFault(mlpPlan, "\"w.bin\"", "\"../w.bin\"",
              "no path inside the model's folder");
  expectFault(mlpPlan, "\"w.bin\"", "\"/etc/passwd\"",
              "no path inside the model's folder");
  expectFault(mlpPlan, "offset 0", "offset 9223372036854775800",
              "ends behind every file");
  expectFault(mlpPlan, "stages [0]", "stages [0, 1]",
              "is held by stages [0, 1], and loaded by [0]");
  expectFault(mlpPlan, "length 512", "length 511", "does not have 511 bytes");
}

/// A plan whose one stage has `body`, from `%a` of type `in` to `%b`.
static std::string onePlan(const std::string &in, const std::string &body,
                           const std::string &out) {
  return R"(
ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.program @main(%x: )" +
         in + R"( {ax.name = "x"}) -> ()" + out + R"( {ax.name = "y"}) {
    %s = ax.stage @s on 0 (%a = %x : )" +
         in + ") -> (" + out + ") {\n" + body + "\nax.yield %b : " + out + R"(
    }
    ax.schedule "forward" { stage 0: "F0" }
    ax.return %s : )" +
         out + "\n  }\n}\n";
}

static void expectRefused(const std::string &in, const std::string &body,
                          const std::string &out, llvm::StringRef expected) {
  expectFault(onePlan(in, body, out).c_str(), "version", "version", expected);
}

TEST(Verify, AttributesOfCodegenAreNotBelieved) {
  for (const char *attribute : {"ax.result_permutation = array<i64: 7, 9>",
                                "ax.activation_last", "ax.anything = 1"}) {
    std::string text = std::string("{") + attribute + ", node = \"fc1\"}";
    expectFault(mlpPlan, "{node = \"fc1\"}", text, "which no plan has");
  }
  expectFault(mlpPlan, "because \"k of fc2 is split\"",
              "because \"k of fc2 is split\" {ax.gather_dim = 77 : i64}",
              "which no plan has");
}

TEST(Verify, AttributesOfPlansStandWhereTheyMay) {
  expectFault(mlpPlan, "{node = \"fc1\"}",
              "{ax.model_dir = \"here\", node = \"fc1\"}",
              "which it cannot have");
  expectFault(mlpPlan, "version 1 {",
              "version 1 attributes {ax.model_dir = 7} {",
              "which it cannot have");
  expectFault(mlpPlan, "version 1 {", "version 1 attributes {ax.files = 7} {",
              "which it cannot have");
  expectFault(mlpPlan, "version 1 {",
              "version 1 attributes {ax.folded = {w = 7}} {",
              "which no plan has");
}

/// A process that runs plans knows them.
TEST(Verify, LocalOperationsAreOfNoPlan) {
  testContext().loadDialect<AxlDialect>();
  expectFault(mlpPlan, "ax.program @main",
              "axl.program @other {}\nax.program @main",
              "is of no plan: it is made when a plan runs");
  expectRefused("tensor<4xf32>",
                "%i = axl.axis_index {col} : tensor<i64>\n%b = ax.unary neg %a "
                ": tensor<4xf32> -> tensor<4xf32>",
                "tensor<4xf32>", "does not belong in a stage");
}

TEST(Verify, ConstantIndicesAreInRange) {
  for (const char *indices : {"[1, 10]", "[-11, 0]", "10"})
    expectRefused("tensor<10x3xf32>",
                  std::string("%i = ax.constant dense<") + indices +
                      "> : tensor<2xi64> -> tensor<2xi64>\n%b = ax.gather "
                      "%a[%i] axis 0 {node = \"g\"} : tensor<10x3xf32>, "
                      "tensor<2xi64> -> tensor<2x3xf32>",
                  "tensor<2x3xf32>",
                  "has indices of which one cannot be: index");
}

TEST(Verify, ConstantsOfAnotherFileAreRead) {
  expectRefused("tensor<2xi64>",
                "%b = ax.constant #ax.stored<offset 0 length 16 checksum "
                "\"0\"> : tensor<2xi64> -> tensor<2xi64>",
                "tensor<2xi64>", "is in a file that was not read");
}

TEST(Verify, NothingIsExchangedInTime) {
  std::string text = mlpPlan;
  for (size_t at; (at = text.find("{data, micro}")) != std::string::npos;)
    text.replace(at, 13, "{data}");
  // The weight split over micro-batches would need all of them at once.
  for (size_t at; (at = text.find("col}")) != std::string::npos;)
    text.replace(at, 4, "micro}");
  auto module = parsePlan(text, "p.mlir", testContext());
  ASSERT_TRUE(bool(module)) << describeError(module.takeError()).message;
  std::string message = describeError(verifyPlan(**module)).message;
  EXPECT_NE(message.find("exchanges over 'micro', which is in time"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("is the same for every micro-batch"),
            std::string::npos);
}

} // namespace ax::plan
