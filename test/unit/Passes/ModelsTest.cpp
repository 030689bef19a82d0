//===- ModelsTest.cpp - Whole models through Normalize and Raise ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every layer is found, nothing of one is left over, and the program computes
// what it computed before.
//
//===----------------------------------------------------------------------===//

#include "ax/Compile/Compile.h"
#include "ax/Import/Import.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>

using namespace ax;

namespace {

struct Expectation {
  const char *model;
  int linears = 0;
  int attentions = 0;
  int layerNorms = 0;
  int rmsNorms = 0;
  int activations = 0;
};

void PrintTo(const Expectation &expectation, std::ostream *stream) {
  *stream << expectation.model;
}

/// Models are in test/models; those whose weights are downloaded, in the cache
/// of tools/dev.
std::string modelFolder(const Expectation &expectation) {
  if (llvm::StringRef(expectation.model) == "minilm") {
    const char *cache = std::getenv("AXOPT_CACHE");
    const char *home = std::getenv("HOME");
    return (cache ? std::string(cache)
                  : std::string(home ? home : "") + "/.cache/axopt") +
           "/minilm";
  }
  const char *tests = std::getenv("AX_TEST_DIR");
  return std::string(tests ? tests : "test") + "/models/" + expectation.model;
}

std::vector<import::NamedTensor> readInputs(const std::string &folder) {
  std::vector<import::NamedTensor> tensors;
  for (int i = 0;; ++i) {
    std::string path =
        folder + "/test_data_set_0/input_" + std::to_string(i) + ".pb";
    if (!llvm::sys::fs::exists(path))
      return tensors;
    tensors.push_back(llvm::cantFail(import::readTensorProto(path)));
  }
}

llvm::Expected<HostTensor> readState(LoadOp load) {
  auto plan = load->getParentOfType<PlanOp>();
  auto state = plan.lookupSymbol<StateOp>(load.getState());
  auto folder = plan->getAttrOfType<mlir::StringAttr>("ax.model_dir");
  auto file =
      MappedFile::open((folder.getValue() + "/" + state.getFile()).str());
  if (!file)
    return file.takeError();
  auto bytes = (*file)->range(state.getOffset(), state.getLength());
  if (!bytes)
    return bytes.takeError();
  mlir::RankedTensorType type = state.getTensorType();
  return HostTensor::fromBytes(*interpreter::toDType(type.getElementType()),
                               Shape(type.getShape()), *bytes);
}

/// The largest difference as a part of the largest magnitude.
double relativeDifference(const HostTensor &actual,
                          const HostTensor &expected) {
  double difference = 0, magnitude = 1e-30;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    double a = actual.getDouble(i), e = expected.getDouble(i);
    if (std::isnan(a) != std::isnan(e))
      return INFINITY;
    if (a == e || std::isnan(e))
      continue;
    difference = std::max(difference, std::abs(a - e));
    magnitude = std::max(magnitude, std::abs(e));
  }
  return difference / magnitude;
}

/// A mask of other padding: in front, and in one row of the batch everywhere.
/// There finite mask values decide what the model computes.
HostTensor padInFront(const HostTensor &mask) {
  HostTensor padded = mask;
  int64_t length = mask.getShape().back();
  for (int64_t i = 0; i < mask.numElements(); ++i)
    padded.setInt(i, i / length == 1 || i % length < 3 ? 0 : 1);
  return padded;
}

using Results = llvm::Expected<llvm::SmallVector<HostTensor>>;

void expectSame(Results &actual, Results &expected) {
  if (!actual || !expected) {
    ADD_FAILURE() << describeError(llvm::joinErrors(actual.takeError(),
                                                    expected.takeError()))
                         .message;
    return;
  }
  for (size_t i = 0; i < expected->size(); ++i)
    EXPECT_LT(relativeDifference((*actual)[i], (*expected)[i]), 2e-6);
}

class Models : public testing::TestWithParam<Expectation> {};

TEST_P(Models, EveryLayerIsFoundAndMeansTheSame) {
  std::string folder = modelFolder(GetParam());
  if (!llvm::sys::fs::exists(folder))
    GTEST_SKIP() << folder << " is not there";
  std::vector<import::NamedTensor> inputs = readInputs(folder);
  import::ImportOptions options;
  for (const import::NamedTensor &input : inputs)
    options.shapes[input.name] = input.tensor.getShape();

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = import::importModel(folder + "/model.onnx", options, context);
  if (!module)
    FAIL() << describeError(module.takeError()).message;

  auto interpret = [&](bool padded) {
    ProgramOp program;
    (*module)->walk([&](ProgramOp op) { program = op; });
    llvm::SmallVector<HostTensor> arguments;
    for (unsigned i = 0; i < program.getArgumentTypes().size(); ++i)
      for (const import::NamedTensor &input : inputs)
        if (program.getArgName(i) == input.name)
          arguments.push_back(padded && input.name == "attention_mask"
                                  ? padInFront(input.tensor)
                                  : input.tensor);
    return interpreter::interpretProgram(program, arguments, readState);
  };
  auto before = interpret(false), beforePadded = interpret(true);

  CompileOptions layers;
  layers.last = "raise";
  if (llvm::Error error = compile(**module, layers))
    FAIL() << describeError(std::move(error)).message;
  if (std::getenv("AX_TEST_PRINT_IR")) {
    mlir::OpPrintingFlags flags;
    (*module)->print(llvm::errs(), flags.elideLargeElementsAttrs(16));
  }

  Expectation found{GetParam().model};
  (*module)->walk([&](mlir::Operation *op) {
    found.linears += mlir::isa<LinearOp>(op);
    found.attentions += mlir::isa<AttentionOp>(op);
    found.layerNorms += mlir::isa<LayerNormOp>(op);
    found.rmsNorms += mlir::isa<RMSNormOp>(op);
    if (auto unary = mlir::dyn_cast<UnaryOp>(op))
      found.activations += unary.getKind() == UnaryKind::gelu ||
                           unary.getKind() == UnaryKind::gelu_tanh ||
                           unary.getKind() == UnaryKind::silu;
    bool leftOver = mlir::isa<DotOp, SoftmaxOp>(op);
    EXPECT_FALSE(leftOver) << getNodeName(op).str();
  });
  EXPECT_EQ(found.linears, GetParam().linears);
  EXPECT_EQ(found.attentions, GetParam().attentions);
  EXPECT_EQ(found.layerNorms, GetParam().layerNorms);
  EXPECT_EQ(found.rmsNorms, GetParam().rmsNorms);
  EXPECT_EQ(found.activations, GetParam().activations);

  auto after = interpret(false), afterPadded = interpret(true);
  expectSame(after, before);
  expectSame(afterPadded, beforePadded);
}

INSTANTIATE_TEST_SUITE_P(
    Shared, Models,
    testing::Values(

        Expectation{"bert_eager_ts14_dyn", 12, 2, 5, 0, 2},
        Expectation{"bert_sdpa_dynamo23_static", 12, 2, 5, 0, 2},
        Expectation{"bert_sdpa_ts20_dyn", 12, 2, 5, 0, 2},
        Expectation{"convnet_eager_ts17_dyn", 1, 0, 0, 0, 0},
        Expectation{"fc_net_eager_dynamo18_static", 10, 0, 4, 0, 4},
        Expectation{"fc_net_eager_ts17_dyn", 10, 0, 4, 0, 4},
        Expectation{"gpt2_eager_dynamo18_static", 17, 4, 9, 0, 4},
        Expectation{"gpt2_eager_ts17_dyn", 17, 4, 9, 0, 4},
        Expectation{"gpt2_sdpa_dynamo18_static", 17, 4, 9, 0, 4},
        Expectation{"llama_eager_dynamo18_static", 29, 4, 0, 9, 4},
        Expectation{"llama_sdpa_dynamo23_static", 29, 4, 0, 9, 4},
        Expectation{"llama_sdpa_ts17_dyn", 29, 4, 0, 9, 4},
        Expectation{"minilm", 36, 6, 13, 0, 6},
        Expectation{"mlp_eager_ts13_dyn", 3, 0, 0, 0, 0},
        Expectation{"resnet_eager_dynamo18_static", 1, 0, 0, 0, 0},
        Expectation{"resnet_eager_ts17_dyn", 1, 0, 0, 0, 0},
        Expectation{"swiglu_eager_dynamo18_dyn", 3, 0, 0, 0, 1},
        Expectation{"vit_eager_ts17_dyn", 13, 2, 5, 0, 2},
        Expectation{"vit_sdpa_dynamo18_static", 13, 2, 5, 0, 2}),
    [](const testing::TestParamInfo<Expectation> &info) {
      return std::string(info.param.model);
    });

} // namespace
