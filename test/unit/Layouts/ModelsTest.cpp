//===- ModelsTest.cpp - Plans of the shared models, rank by rank ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As PlansTest, with the models of test/models: against their own expected
// outputs, without kernels or runtime.
//
//===----------------------------------------------------------------------===//

#include "PlanOnRanks.h"

#include "ax/Import/Import.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"
#include "llvm/Support/FileSystem.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace mlir;

namespace ax::test {
namespace {

std::string modelsFolder() {
  const char *tests = std::getenv("AX_TEST_DIR");
  return std::string(tests ? tests : "test") + "/models";
}

/// Those whose weights are in the tree.
std::vector<std::string> models() {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(modelsFolder(), error), end;
       it != end && !error; it.increment(error)) {
    std::string name = llvm::StringRef(it->path()).rsplit('/').second.str();
    if (name != "minilm" &&
        llvm::sys::fs::exists(it->path() + "/test_data_set_0"))
      names.push_back(name);
  }
  llvm::sort(names);
  return names;
}

std::vector<import::NamedTensor> readTensors(const std::string &prefix) {
  std::vector<import::NamedTensor> tensors;
  for (int i = 0;; ++i) {
    std::string path = prefix + std::to_string(i) + ".pb";
    if (!llvm::sys::fs::exists(path))
      return tensors;
    tensors.push_back(llvm::cantFail(import::readTensorProto(path)));
  }
}

class Models
    : public testing::TestWithParam<std::tuple<std::string, NamedStrategy>> {};

TEST_P(Models, RanksGiveTheExpectedOutputs) {
  auto [name, strategy] = GetParam();
  std::string folder = modelsFolder() + "/" + name;
  auto given = readTensors(folder + "/test_data_set_0/input_");
  auto expected = readTensors(folder + "/test_data_set_0/output_");
  import::ImportOptions options;
  for (const import::NamedTensor &tensor : given)
    options.shapes[tensor.name] = tensor.tensor.getShape();

  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto module = import::importModel(folder + "/model.onnx", options, context);
  ASSERT_TRUE(static_cast<bool>(module))
      << describeError(module.takeError()).message;
  ASSERT_TRUE(succeeded(runPhases(**module, strategy)));

  ProgramOp program = firstProgram(**module);
  std::vector<HostTensor> inputs;
  for (unsigned i = 0; i < program.getArgumentTypes().size(); ++i)
    for (const import::NamedTensor &tensor : given)
      if (tensor.name == program.getArgName(i))
        inputs.push_back(tensor.tensor);
  ASSERT_EQ(inputs.size(), program.getArgumentTypes().size());
  auto plan = program->getParentOfType<PlanOp>();
  auto outputs = interpretOnRanks(program, inputs, [&](llvm::StringRef state) {
    return readState(plan, state);
  });
  ASSERT_TRUE(static_cast<bool>(outputs))
      << describeError(outputs.takeError()).message;
  ASSERT_EQ(outputs->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LE(relativeDifference((*outputs)[i], expected[i].tensor), 2e-5)
        << "output " << program.getResultName(i).str();
}

INSTANTIATE_TEST_SUITE_P(Shared, Models,
                         testing::Combine(testing::ValuesIn(models()),
                                          testing::ValuesIn(strategies())),
                         [](const auto &info) {
                           return std::get<0>(info.param) + "_" +
                                  std::get<1>(info.param).name;
                         });

} // namespace
} // namespace ax::test
