//===- ModelsTest.cpp - PyTorch's loss and gradient norm ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Training-mode exports, through import, Normalize and Raise, with a loss and
// its gradients: step 0 of PyTorch's own training run.
//
//===----------------------------------------------------------------------===//

#include "TrainTestSupport.h"

#include "ax/Compile/Compile.h"
#include "ax/Import/Import.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Passes/Passes.h"
#include "ax/Runtime/Npy.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;
using namespace ax;
using namespace ax::test;

namespace {

struct Model {
  const char *name;
  int linears = 0, convs = 0, attentions = 0, norms = 0, activations = 0;
  std::vector<std::string> statistics = {};
};

void PrintTo(const Model &model, std::ostream *stream) {
  *stream << model.name;
}

std::string folderOf(const Model &model) {
  const char *tests = std::getenv("AX_TEST_DIR");
  return std::string(tests ? tests : "test") + "/data/training/" + model.name;
}

/// Loss and gradient norm of step 0, the same for every optimizer.
std::pair<double, double> reference(const std::string &folder) {
  auto buffer = llvm::MemoryBuffer::getFile(folder + "/reference.json");
  auto json = llvm::cantFail(llvm::json::parse((*buffer)->getBuffer()));
  const llvm::json::Array &step = *(*json.getAsObject()
                                         ->getObject("optimizers")
                                         ->getObject("sgd")
                                         ->getArray("steps"))[0]
                                       .getAsArray();
  return {*step[0].getAsNumber(), *step[1].getAsNumber()};
}

/// Step 0 of a tensor [steps, ...].
HostTensor firstStep(const HostTensor &all) {
  Shape shape(all.getShape().begin() + 1, all.getShape().end());
  HostTensor step(all.getType(), shape);
  return llvm::cantFail(HostTensor::fromBytes(
      all.getType(), shape, all.rawBytes().take_front(step.numBytes())));
}

States readStates(ModuleOp module, const std::string &folder) {
  States states;
  module.walk([&](StateOp state) {
    auto file =
        llvm::cantFail(MappedFile::open(folder + "/" + state.getFile().str()));
    RankedTensorType type = state.getTensorType();
    states[state.getSymName().str()] = llvm::cantFail(HostTensor::fromBytes(
        *interpreter::toDType(type.getElementType()), Shape(type.getShape()),
        llvm::cantFail(file->range(state.getOffset(), state.getLength()))));
  });
  return states;
}

class TrainingModels : public testing::TestWithParam<Model> {};

TEST_P(TrainingModels, FirstStepIsPyTorchs) {
  registerPipelines();
  const Model &model = GetParam();
  std::string folder = folderOf(model);
  States inputs;
  for (auto &[name, tensor] : llvm::cantFail(rt::readNpz(folder + "/data.npz")))
    inputs[name] = firstStep(tensor);
  import::ImportOptions options;
  options.training = true;
  options.shapes["input"] = inputs["input"].getShape();
  auto module = import::importModel(folder + "/model.onnx", options, context());
  if (!module)
    FAIL() << describeError(module.takeError()).message;
  // Evaluation and prediction have no gradients.
  for (auto plan : (*module)->getOps<PlanOp>())
    for (const char *name : {"eval", "predict"})
      plan.lookupSymbol<ProgramOp>(name).erase();
  ASSERT_EQ(runPasses(**module, "ax-phase-normalize,"
                                "ax-phase-raise"),
            "");

  Model found{model.name};
  (*module)->walk([&](Operation *op) {
    found.linears += isa<LinearOp>(op);
    found.convs += isa<ConvOp>(op);
    found.attentions += isa<AttentionOp>(op);
    found.norms += isa<LayerNormOp, RMSNormOp>(op);
    if (auto unary = dyn_cast<UnaryOp>(op))
      found.activations += unary.getKind() == UnaryKind::gelu ||
                           unary.getKind() == UnaryKind::gelu_tanh ||
                           unary.getKind() == UnaryKind::silu;
    bool isLeftOver = isa<DotOp, SoftmaxOp>(op);
    EXPECT_FALSE(isLeftOver) << getNodeName(op).str();
  });
  EXPECT_EQ(found.linears, model.linears);
  EXPECT_EQ(found.convs, model.convs);
  EXPECT_EQ(found.attentions, model.attentions);
  EXPECT_EQ(found.norms, model.norms);
  EXPECT_EQ(found.activations, model.activations);

  size_t numTrained = 0;
  (*module)->walk([&](StateOp state) {
    bool isStatistic = llvm::is_contained(model.statistics, state.getSymName());
    state.setTrainable(!isStatistic);
    numTrained += !isStatistic;
  });
  ASSERT_EQ(runPasses(**module, "ax-add-loss{loss=cross_entropy(logits,"
                                "labels)},ax-differentiate{loss=loss_sum}"),
            "");
  States results = interpret(**module, inputs, readStates(**module, folder));
  double count = results["loss_count"].getDouble(0), squares = 0;
  size_t numGradients = 0;
  for (auto &[name, tensor] : results) {
    if (!llvm::StringRef(name).starts_with("gradient of "))
      continue;
    ++numGradients;
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      squares += std::pow(tensor.getDouble(i) / count, 2);
  }
  EXPECT_EQ(numGradients, numTrained);
  for (const std::string &name : model.statistics)
    EXPECT_TRUE(results.count(name)) << name;
  auto [loss, norm] = reference(folder);
  EXPECT_NEAR(results["loss_sum"].getDouble(0) / count, loss, 1e-4 * loss);
  EXPECT_NEAR(std::sqrt(squares), norm, 1e-4 * norm);
}

INSTANTIATE_TEST_SUITE_P(
    Shared, TrainingModels,
    testing::Values(Model{"fc_net", 10, 0, 0, 4, 4},
                    Model{"convnet", 1, 3, 0, 0, 0},
                    Model{"batchnorm",
                          1,
                          2,
                          0,
                          0,
                          0,
                          {"b1.running_mean", "b1.running_var",
                           "b2.running_mean", "b2.running_var"}},
                    Model{"gpt2_tied", 17, 0, 4, 9, 4},
                    Model{"llama", 29, 0, 4, 9, 4}),
    [](const testing::TestParamInfo<Model> &info) {
      return std::string(info.param.name);
    });

} // namespace
