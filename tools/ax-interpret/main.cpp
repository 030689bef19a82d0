//===- main.cpp - ax-interpret: a model by the reference interpreter ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The oracle of tests: imports a model and interprets it, slowly and without a
// plan, on an ONNX test case's inputs, and compares.
//
//===----------------------------------------------------------------------===//
#include "TestCase.h"
#include "ax/Import/Import.h"
#include "ax/Support/Error.h"

#include "llvm/Support/CommandLine.h"

using namespace ax;
namespace cl = llvm::cl;

static cl::OptionCategory category("Options");

static cl::opt<std::string> model(cl::Positional, cl::Required,
                                  cl::desc("MODEL.onnx"), cl::cat(category));
static cl::list<std::string> dims("dim", cl::desc("NAME=SIZE"),
                                  cl::cat(category));
static cl::list<std::string> shapes("shape", cl::desc("INPUT=AxBxC"),
                                    cl::cat(category));
static cl::list<std::string>
    constants("const-input",
              cl::desc("input of the test case that becomes a constant"),
              cl::cat(category));
static cl::opt<std::string> testData("test-data",
                                     cl::desc("folder input_N.pb, output_N.pb"),
                                     cl::cat(category));
static cl::opt<bool> printIR("print-ir", cl::desc("print the imported module"),
                             cl::cat(category));
static cl::opt<double> relTol("rtol", cl::init(1e-3), cl::cat(category));
static cl::opt<double> absTol("atol", cl::init(1e-5), cl::cat(category));

static llvm::Error run() {
  import::ImportOptions options;
  for (const std::string &dim : dims)
    if (llvm::Error error = import::addDim(options, dim))
      return error;
  for (const std::string &shape : shapes)
    if (llvm::Error error = import::addShape(options, shape))
      return error;
  if (!constants.empty()) {
    auto given = import::readTestData(testData, "input");
    if (!given)
      return given.takeError();
    for (import::NamedTensor &tensor : *given)
      if (llvm::is_contained(constants, tensor.name))
        options.constants[tensor.name] = std::move(tensor.tensor);
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = import::importModel(model, options, context);
  if (!module)
    return module.takeError();
  if (printIR) {
    mlir::OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(16);
    (*module)->print(llvm::outs(), flags);
    llvm::outs() << "\n";
  }
  if (testData.empty())
    return llvm::Error::success();
  return checkTestCase(**module, testData, relTol, absTol);
}

int main(int argc, char **argv) {
  // LLVM has some for each of its own parts.
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "reference interpretation of a model\n");
  if (llvm::Error error = run())
    return reportError("ax-interpret", std::move(error));
  return 0;
}
