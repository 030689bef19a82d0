//===- SplitReductionTest.cpp - Large reductions in several kernels -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages are interpreted as written, and split and fused: kernels on a
// simulated GPU, views by the interpreter.
//
//===----------------------------------------------------------------------===//

#include "KernelTestSupport.h"

#include "ax/Codegen/LocalPasses.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace ax::codegen {
namespace {

using Run = llvm::function_ref<std::vector<HostTensor>(
    Operation &op, const std::vector<HostTensor> &operands)>;

/// What the stage yields, where `run` tells what an operation gives.
std::vector<HostTensor> runStage(LocalStageOp stage,
                                 llvm::ArrayRef<HostTensor> inputs, Run run) {
  llvm::DenseMap<Value, HostTensor> values;
  for (auto [argument, input] :
       llvm::zip_equal(stage.getBody().getArguments(), inputs))
    values[argument] = input;
  auto operandsOf = [&](Operation &op) {
    std::vector<HostTensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.at(operand));
    return operands;
  };
  for (Operation &op : stage.getBlock().without_terminator())
    for (auto [result, tensor] :
         llvm::zip_equal(op.getResults(), run(op, operandsOf(op))))
      values[result] = tensor;
  return operandsOf(*stage.getYield());
}

std::vector<HostTensor> interpret(Operation &op,
                                  const std::vector<HostTensor> &operands) {
  llvm::SmallVector<HostTensor> results =
      llvm::cantFail(interpreter::interpret(&op, operands));
  return {results.begin(), results.end()};
}

/// In several orders of its threads, which are to give the same bits.
std::vector<HostTensor> runInOrders(FusionOp fusion,
                                    const std::vector<HostTensor> &operands) {
  CompiledKernel kernel = llvm::cantFail(testCompiler().compile(fusion));
  std::vector<HostTensor> first = runKernel(kernel, fusion, operands);
  constexpr uint64_t numOrders = 8;
  for (uint64_t seed = 1; seed != numOrders; ++seed) {
    std::vector<HostTensor> other =
        runKernel(kernel, fusion, operands, 1 + seed % 2, {}, seed);
    for (size_t i = 0; i != other.size(); ++i)
      EXPECT_EQ(
          std::memcmp(other[i].data(), first[i].data(), first[i].numBytes()), 0)
          << "result " << i << " in order " << seed;
  }
  return first;
}

/// The stage `body` on %a, %b, ... of the given types becomes so many kernels,
/// which give what it says.
void check(const std::vector<std::string> &operands, const std::string &body,
           const std::string &result, int64_t numKernels, double tolerance) {
  std::string arguments;
  for (size_t i = 0; i != operands.size(); ++i)
    arguments += std::string(i ? ", %" : "%") + char('a' + i) + ": tensor<" +
                 operands[i] + ">";
  std::string text = "axl.stage @s(" + arguments + ") {\n" + body +
                     "\naxl.yield %r : tensor<" + result + ">\n}";
  SCOPED_TRACE(text);
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  ASSERT_TRUE(module);
  LocalStageOp stage = *module->getOps<LocalStageOp>().begin();
  std::mt19937 random(1);
  std::vector<HostTensor> inputs;
  for (Type type : stage.getBody().getArgumentTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), random));
  std::vector<HostTensor> expected = runStage(stage, inputs, interpret);

  PassManager manager(&testContext(), LocalStageOp::getOperationName());
  manager.addPass(createSplitReductions());
  manager.addPass(createFuse({/*separately=*/false, /*gpu=*/true}));
  ASSERT_TRUE(succeeded(manager.run(stage)));
  EXPECT_EQ(llvm::range_size(stage.getBlock().getOps<FusionOp>()), numKernels);
  std::vector<HostTensor> actual =
      runStage(stage, inputs,
               [](Operation &op, const std::vector<HostTensor> &operandsOfOp) {
                 auto fusion = dyn_cast<FusionOp>(op);
                 return fusion ? runInOrders(fusion, operandsOfOp)
                               : interpret(op, operandsOfOp);
               });
  ASSERT_EQ(actual.size(), 1U);
  expectClose(actual[0], expected[0],
              tolerance > 0 ? tolerance : toleranceOf(actual[0].getType()),
              "on a GPU");
}

void checkReduce(const std::string &kind, const std::string &shape,
                 const std::string &dims, const std::string &kept,
                 const std::string &type, double tolerance = 0) {
  check({shape + type},
        "%r = ax.reduce " + kind + " %a dims " + dims + " : tensor<" + shape +
            type + "> -> tensor<" + kept + type + ">",
        kept + type, /*numKernels=*/2, tolerance);
}

TEST(SplitReduction, EveryKind) {
  for (std::string type : {"f32", "f64", "f16", "bf16", "i32", "ui8", "i1"})
    for (std::string kind : {"sum", "max", "min"})
      if (type != "i1" || kind != "sum")
        checkReduce(kind, "65536x", "[0]", "", type, type == "f32" ? 3e-5 : 0);
  checkReduce("prod", "65536x", "[0]", "", "i32");
}

TEST(SplitReduction, EveryPlace) {
  for (std::string type : {"f32", "bf16"}) {
    double tolerance = type == "f32" ? 3e-5 : 0;
    // Rows, of one run of dimensions and of two.
    checkReduce("sum", "2x300x256x", "[1, 2]", "2x", type, tolerance);
    checkReduce("sum", "16x3x4096x", "[0, 2]", "3x", type, tolerance);
    // Columns, of few and of more than a tile.
    checkReduce("sum", "100000x3x", "[0]", "3x", type, tolerance);
    checkReduce("sum", "96x96x40x", "[0, 1]", "40x", type, tolerance);
    checkReduce("sum", "2x8192x24x", "[1]", "2x24x", type, tolerance);
    checkReduce("sum", "4x3x4096x8x", "[0, 2]", "3x8x", type, tolerance);
  }
}

/// Nothing divides it.
TEST(SplitReduction, PrimesStayWhole) {
  check({"100003xf32"},
        "%r = ax.reduce sum %a dims [0] : tensor<100003xf32> -> tensor<f32>",
        "f32", /*numKernels=*/1, 3e-5);
}

/// What makes the elements is done in the first kernel, what is made of the
/// result in the second.
TEST(SplitReduction, BetweenOthers) {
  check({"8192x40xbf16", "8192x1xf32", "1x40xf32"},
        R"(%x = ax.cast %a : tensor<8192x40xbf16> -> tensor<8192x40xf32>
           %y = ax.binary mul %x, %b : tensor<8192x40xf32>, tensor<8192x1xf32> -> tensor<8192x40xf32>
           %s = ax.reduce sum %y dims [0] keep_dims : tensor<8192x40xf32> -> tensor<1x40xf32>
           %r = ax.binary add %c, %s : tensor<1x40xf32>, tensor<1x40xf32> -> tensor<1x40xf32>)",
        "1x40xf32", /*numKernels=*/2, 1e-4);
  // What is larger than the parts is not done by who sums them.
  check(
      {"65536xf32", "3000xf32"},
      R"(%m = ax.binary mul %a, %a : tensor<65536xf32>, tensor<65536xf32> -> tensor<65536xf32>
           %s = ax.reduce sum %m dims [0] : tensor<65536xf32> -> tensor<f32>
           %n = ax.unary sqrt %s : tensor<f32> -> tensor<f32>
           %r = ax.binary div %b, %n : tensor<3000xf32>, tensor<f32> -> tensor<3000xf32>)",
      "3000xf32", /*numKernels=*/3, 0);
}

TEST(SplitReduction, SoftmaxAndNorms) {
  for (std::string type : {"f32", "bf16"}) {
    auto checkRows = [&](const std::string &shape, const std::string &op,
                         int64_t numKernels) {
      std::string tensor = "tensor<" + shape + type + ">";
      check({shape + type}, "%r = " + op + " : " + tensor + " -> " + tensor,
            shape + type, numKernels, type == "f32" ? 2e-5 : 0);
    };
    // Two kernels for each reduction, one for the result.
    checkRows("2x65536x", "ax.softmax %a dim 1", 5);
    checkRows("2x65536x", "ax.softmax %a dim 1 {log}", 5);
    checkRows("2x65536x", "ax.layer_norm %a axis 1 epsilon 1.0e-5", 5);
    checkRows("2x65536x", "ax.rms_norm %a axis 1 epsilon 1.0e-5", 3);
    // Columns, whose sums are one kernel's.
    checkRows("2x100x40x", "ax.softmax %a dim 1", 3);
    checkRows("100x40x", "ax.softmax %a dim 0 {log}", 3);
  }
  // A scale and a bias.
  check({"2x256x256xf32", "256x256xf32"},
        "%r = ax.layer_norm %a scale %b : tensor<256x256xf32> bias %b : "
        "tensor<256x256xf32> axis 1 epsilon 1.0e-5 : tensor<2x256x256xf32> -> "
        "tensor<2x256x256xf32>",
        "2x256x256xf32", /*numKernels=*/5, 2e-5);
}

/// Of equal ones, the first or the last.
TEST(SplitReduction, ArgReduce) {
  for (std::string type : {"i32", "bf16"})
    for (std::string flags : {"", " {last}", " {min}"})
      check({"2x65536x" + type},
            "%r = ax.arg_reduce %a dim 1" + flags + " : tensor<2x65536x" +
                type + "> -> tensor<2x1xi64>",
            "2x1xi64", /*numKernels=*/4, 0);
}

} // namespace
} // namespace ax::codegen
