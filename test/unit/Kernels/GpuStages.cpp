//===- GpuStages.cpp - Stages as kernels on a simulated GPU ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuStages.h"

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

} // namespace

void checkStage(const std::vector<std::string> &operands,
                const std::string &body, const std::string &result,
                int64_t numKernels, double tolerance) {
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
  manager.addPass(createComposeTopK());
  manager.addPass(createComposePools());
  manager.addPass(createSplitScans());
  manager.addPass(createSplitReductions());
  manager.addPass(createFuse({/*separately=*/false, /*gpu=*/true}));
  manager.addPass(createJoinKernels());
  ASSERT_TRUE(succeeded(manager.run(stage)));
  if (numKernels > 0) {
    EXPECT_EQ(llvm::range_size(stage.getBlock().getOps<FusionOp>()),
              numKernels);
  }
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

} // namespace ax::codegen
