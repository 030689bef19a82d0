//===- main.cpp - axrun: run a plan ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RunTool.h"
#include "ax/Codegen/Codegen.h"
#include "ax/Import/Import.h"

using namespace ax;

namespace {

class OnnxTestData : public TestData {
  std::vector<std::string> files(llvm::StringRef folder,
                                 llvm::StringRef prefix) const final {
    return import::filesOfTestData(folder, prefix);
  }
  llvm::Expected<rt::NamedTensors>
  read(llvm::StringRef folder, llvm::StringRef prefix,
       llvm::ArrayRef<std::string> names) const final {
    auto read = import::readTestData(folder, prefix);
    if (!read)
      return read.takeError();
    import::nameByPosition(*read, names);
    rt::NamedTensors tensors;
    for (import::NamedTensor &tensor : *read)
      tensors.emplace_back(tensor.name, std::move(tensor.tensor));
    return tensors;
  }
};

} // namespace

int main(int argc, char **argv) {
  OnnxTestData testCases;
  return runMain(
      argc, argv,
      {"axrun", "PLAN.mlir", &compileText, &testCases, codegen::stepNames()});
}
