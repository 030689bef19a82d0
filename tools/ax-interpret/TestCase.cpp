//===- TestCase.cpp - A model beside an ONNX test case --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestCase.h"

#include "ax/Import/Import.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Interpreter/States.h"
#include "ax/Support/Compare.h"
#include "ax/Support/Error.h"

using namespace ax;

static llvm::Error check(llvm::StringRef name, const HostTensor &got,
                         const HostTensor &wanted, double rtol, double atol) {
  if (got.getType() != wanted.getType() || got.getShape() != wanted.getShape())
    return makeErrorf(ExitCode::Differs, "output '{0}' is {1}, expected {2}",
                      name, got.typeToString(), wanted.typeToString());
  Difference difference = compare(got, wanted, rtol, atol);
  if (difference.numDiffering == 0)
    return llvm::Error::success();
  return makeError(ExitCode::Differs, describe(name, difference, got, wanted));
}

llvm::Error ax::checkTestCase(mlir::ModuleOp module, llvm::StringRef folder,
                              double rtol, double atol) {
  ProgramOp program;
  module.walk([&](ProgramOp op) { program = op; });
  std::vector<std::string> names;
  for (unsigned i = 0, e = program.getNumArguments(); i < e; ++i)
    names.push_back(program.getArgName(i).str());
  auto inputs = import::readTestData(folder, "input", names);
  if (!inputs)
    return inputs.takeError();
  auto expected = import::readTestData(folder, "output");
  if (!expected)
    return expected.takeError();
  auto results =
      interpreter::interpretProgram(program, *inputs, [](LoadOp load) {
        return interpreter::readState(
            load->getParentOfType<PlanOp>().lookupSymbol<StateOp>(
                load.getState()));
      });
  if (!results)
    return results.takeError();
  llvm::Error differences = llvm::Error::success();
  for (size_t i = 0; i < std::min(results->size(), expected->size()); ++i)
    differences = llvm::joinErrors(
        std::move(differences), check(program.getResultName(i), (*results)[i],
                                      (*expected)[i].tensor, rtol, atol));
  return differences;
}
