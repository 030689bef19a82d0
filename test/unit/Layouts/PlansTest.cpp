//===- PlansTest.cpp - Plans of small models, rank by rank ----------------===//
//
// A model is evaluated whole; then it goes through the phases for some
// strategy, and its plan is evaluated on all ranks. The outputs agree.
//
//===----------------------------------------------------------------------===//

#include "PlanOnRanks.h"
#include "Programs.h"

#include "ax/Eval/Elements.h"
#include "ax/Eval/Evaluate.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
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

struct Layout {
  const char *name;
  const char *tensor;
  int64_t data, pipe, micro;
  bool sequence;
};

void PrintTo(const Model &model, std::ostream *os) { *os << model.name; }
void PrintTo(const Layout &layout, std::ostream *os) { *os << layout.name; }

HostTensor randomTensor(RankedTensorType type, std::mt19937_64 &random) {
  ArrayRef<int64_t> shape = type.getShape();
  HostTensor tensor(*eval::toDType(type.getElementType()),
                    Shape(shape.begin(), shape.end()));
  std::uniform_real_distribution<double> numbers(-0.5, 0.5);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    if (isFloat(tensor.getType()))
      tensor.setDouble(i, numbers(random));
    else
      tensor.setInt(i, random() % 21);
  return tensor;
}

ProgramOp programOf(ModuleOp module) {
  ProgramOp found;
  module.walk([&](ProgramOp program) { found = program; });
  return found;
}

std::string toText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

class Plans : public testing::TestWithParam<std::tuple<Model, Layout>> {};

TEST_P(Plans, RanksTogetherGiveTheWhole) {
  auto [model, layout] = GetParam();
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
  for (Type type : programOf(*module).getArgumentTypes())
    inputs.push_back(randomTensor(cast<RankedTensorType>(type), random));
  auto readState = [&](llvm::StringRef name) -> llvm::Expected<HostTensor> {
    return states.at(name.str());
  };
  auto whole =
      eval::evaluateProgram(programOf(*module), inputs, [&](LoadOp load) {
        return readState(load.getState());
      });
  ASSERT_TRUE(static_cast<bool>(whole))
      << describeError(whole.takeError()).message;

  Strategy strategy;
  ASSERT_FALSE(static_cast<bool>(strategy.setTensorParallel(layout.tensor)));
  strategy.data = layout.data;
  strategy.pipe = layout.pipe;
  strategy.micro = layout.micro;
  strategy.sequenceParallel = layout.sequence;
  PassManager manager(&context);
  addNormalizePhase(manager);
  addRaisePhase(manager);
  addStagePhase(manager, strategy);
  addShardPhase(manager, strategy, /*strict=*/false);
  addOptimizePhase(manager);
  addPipelinePhase(manager);
  ASSERT_TRUE(succeeded(manager.run(*module))) << toText(*module);

  auto ranks = evaluateOnRanks(programOf(*module), inputs, readState);
  ASSERT_TRUE(static_cast<bool>(ranks))
      << describeError(ranks.takeError()).message << "\n"
      << toText(*module);
  ASSERT_EQ(ranks->size(), whole->size());
  for (size_t i = 0; i < ranks->size(); ++i) {
    double largest = 0, difference = 0;
    for (int64_t e = 0; e < (*whole)[i].numElements(); ++e) {
      double value = (*whole)[i].getDouble(e);
      largest = std::max(largest, std::fabs(value));
      double d = std::fabs(value - (*ranks)[i].getDouble(e));
      difference = std::isnan(d) ? INFINITY : std::max(difference, d);
    }
    EXPECT_LE(difference, 1e-5 * largest) << toText(*module);
  }
}

const Model models[] = {{"GPT", buildGPT},
                        {"OddGPT", buildOddGPT},
                        {"Llama", buildLlama},
                        {"ConvNet", buildConvNet}};
const Layout layouts[] = {
    {"One", "1", 1, 1, 1, false},
    {"Tensor2", "2", 1, 1, 1, false},
    {"Tensor4", "4", 1, 1, 1, false},
    {"Tensor2x2x1", "2x2x1", 1, 1, 1, false},
    {"Tensor1x2x2", "1x2x2", 1, 1, 1, false},
    {"Tensor2x2x2", "2x2x2", 1, 1, 1, false},
    {"Tensor3", "3", 1, 1, 1, false},
    {"Data2", "1", 2, 1, 1, false},
    {"Sequence2", "2", 1, 1, 1, true},
    {"Sequence4", "4", 1, 1, 1, true},
    {"Pipe2", "1", 1, 2, 1, false},
    {"Pipe2Micro2", "1", 1, 2, 2, false},
    {"Tensor2Pipe2", "2", 1, 2, 1, false},
    {"Data2Tensor2Pipe2Micro2", "2", 2, 2, 2, false},
};

INSTANTIATE_TEST_SUITE_P(Small, Plans,
                         testing::Combine(testing::ValuesIn(models),
                                          testing::ValuesIn(layouts)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  "_" + std::get<1>(info.param).name;
                         });

} // namespace
} // namespace ax::test
