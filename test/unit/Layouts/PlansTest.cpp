//===- PlansTest.cpp - Plans of small models, rank by rank ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model is interpreted whole; then it goes through the phases for some
// strategy, and its plan is interpreted on all ranks. The outputs agree.
//
//===----------------------------------------------------------------------===//

#include "PlanOnRanks.h"
#include "Programs.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace mlir;

namespace ax::test {
namespace {

struct Model {
  const char *name;
  OwningOpRef<ModuleOp> (*build)(MLIRContext &);
};

OwningOpRef<ModuleOp> buildGPT(MLIRContext &context) {
  return test::buildGPT(context, {});
}
/// Sizes that no mesh of two divides.
OwningOpRef<ModuleOp> buildOddGPT(MLIRContext &context) {
  TransformerShape shape;
  shape.batch = 3;
  shape.sequence = 5;
  shape.heads = shape.kvHeads = 3;
  shape.hidden = 13;
  return test::buildGPT(context, shape);
}
OwningOpRef<ModuleOp> buildLlama(MLIRContext &context) {
  TransformerShape shape;
  shape.kvHeads = 2;
  return test::buildLlama(context, shape);
}
OwningOpRef<ModuleOp> buildConvNet(MLIRContext &context) {
  return test::buildConvNet(context, 4);
}

void PrintTo(const Model &model, std::ostream *os) { *os << model.name; }

HostTensor randomTensor(RankedTensorType type, std::mt19937_64 &random) {
  ArrayRef<int64_t> shape = type.getShape();
  HostTensor tensor(*interpreter::toDType(type.getElementType()),
                    Shape(shape.begin(), shape.end()));
  std::uniform_real_distribution<double> numbers(-0.5, 0.5);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    if (isFloat(tensor.getType()))
      tensor.setDouble(i, numbers(random));
    else
      tensor.setInt(i, random() % 21);
  return tensor;
}

std::string toText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

class Plans : public testing::TestWithParam<std::tuple<Model, NamedStrategy>> {
};

TEST_P(Plans, RanksTogetherGiveTheWhole) {
  auto [model, strategy] = GetParam();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  OwningOpRef<ModuleOp> module = model.build(context);
  ASSERT_TRUE(succeeded(verify(*module))) << toText(*module);

  std::mt19937_64 random(1);
  std::map<std::string, HostTensor> states;
  module->walk([&](StateOp state) {
    states[state.getSymName().str()] =
        randomTensor(state.getTensorType(), random);
  });
  std::vector<HostTensor> inputs;
  for (Type type : firstProgram(*module).getArgumentTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), random));
  auto readState = [&](llvm::StringRef name) -> llvm::Expected<HostTensor> {
    return states.at(name.str());
  };
  auto whole = interpreter::interpretProgram(
      firstProgram(*module), inputs,
      [&](LoadOp load) { return readState(load.getState()); });
  ASSERT_TRUE(static_cast<bool>(whole))
      << describeError(whole.takeError()).message;

  ASSERT_TRUE(succeeded(runPhases(*module, strategy))) << toText(*module);

  auto ranks = interpretOnRanks(firstProgram(*module), inputs, readState);
  ASSERT_TRUE(static_cast<bool>(ranks))
      << describeError(ranks.takeError()).message << "\n"
      << toText(*module);
  ASSERT_EQ(ranks->size(), whole->size());
  for (size_t i = 0; i < ranks->size(); ++i)
    EXPECT_LE(relativeDifference((*ranks)[i], (*whole)[i]), 1e-5)
        << toText(*module);
}

const Model models[] = {{"GPT", buildGPT},
                        {"OddGPT", buildOddGPT},
                        {"Llama", buildLlama},
                        {"ConvNet", buildConvNet}};
INSTANTIATE_TEST_SUITE_P(Small, Plans,
                         testing::Combine(testing::ValuesIn(models),
                                          testing::ValuesIn(strategies())),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  "_" + std::get<1>(info.param).name;
                         });

} // namespace
} // namespace ax::test
