//===- ModelsTest.cpp - Whole models against PyTorch's outputs ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestModel.h"

#include "llvm/Support/FileSystem.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace ax;
using namespace ax::test;

namespace {

struct Case {
  const char *name;
  std::map<std::string, int64_t> dims;
};

class Models : public testing::TestWithParam<Case> {};

} // namespace

TEST_P(Models, AgreeWithPyTorch) {
  const char *tests = std::getenv("AX_TEST_DIR");
  if (!tests)
    GTEST_SKIP() << "AX_TEST_DIR does not name the folder test/";
  std::string folder = std::string(tests) + "/models/" + GetParam().name;
  std::string data = folder + "/test_data_set_0";
  import::ImportOptions options;
  options.dims = GetParam().dims;
  mlir::MLIRContext context;
  auto module = import::importModel(folder + "/model.onnx", options, context);
  ASSERT_TRUE(bool(module)) << llvm::toString(module.takeError());
  llvm::SmallVector<HostTensor> inputs;
  for (int i = 0;; ++i) {
    std::string path = data + "/input_" + std::to_string(i) + ".pb";
    if (!llvm::sys::fs::exists(path))
      break;
    auto tensor = import::readTensorProto(path);
    ASSERT_TRUE(bool(tensor)) << llvm::toString(tensor.takeError());
    inputs.push_back(tensor->tensor);
  }
  auto expected = import::readTensorProto(data + "/output_0.pb");
  ASSERT_TRUE(bool(expected)) << llvm::toString(expected.takeError());
  auto results = interpretModule(**module, inputs);
  ASSERT_TRUE(bool(results)) << llvm::toString(results.takeError());
  const HostTensor &actual = results->front(), &wanted = expected->tensor;
  ASSERT_EQ(actual.typeToString(), wanted.typeToString());
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < wanted.numElements(); ++i) {
    largest = std::max(largest, std::abs(wanted.getDouble(i)));
    difference = std::max(difference,
                          std::abs(wanted.getDouble(i) - actual.getDouble(i)));
  }
  EXPECT_LE(difference, 2e-5 * largest);
}

using Dims = std::map<std::string, int64_t>;
static const Dims none;
static const Dims batch = {{"batch", 4}};
static const Dims text = {{"batch", 4}, {"sequence", 32}};
static const Dims symbol = {{"s77", 4}};

INSTANTIATE_TEST_SUITE_P(
    All, Models,
    testing::Values(Case{"bert_eager_ts14_dyn", text},
                    Case{"bert_sdpa_dynamo23_static", none},
                    Case{"bert_sdpa_ts20_dyn", text},
                    Case{"convnet_eager_ts17_dyn", batch},
                    Case{"fc_net_eager_dynamo18_static", none},
                    Case{"fc_net_eager_ts17_dyn", batch},
                    Case{"gpt2_eager_dynamo18_static", none},
                    Case{"gpt2_eager_ts17_dyn", text},
                    Case{"gpt2_sdpa_dynamo18_static", none},
                    Case{"llama_eager_dynamo18_static", none},
                    Case{"llama_sdpa_dynamo23_static", none},
                    Case{"llama_sdpa_ts17_dyn", text},
                    Case{"mlp_eager_ts13_dyn", batch},
                    Case{"resnet_eager_dynamo18_static", none},
                    Case{"resnet_eager_ts17_dyn", batch},
                    Case{"swiglu_eager_dynamo18_dyn", symbol},
                    Case{"vit_eager_ts17_dyn", batch},
                    Case{"vit_sdpa_dynamo18_static", none}),
    [](const auto &info) { return std::string(info.param.name); });
