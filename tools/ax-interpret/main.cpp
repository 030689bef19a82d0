//===- main.cpp - ax-interpret: a model by the reference interpreter ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The oracle of tests: imports a model and interprets it, slowly and without a
// plan, on an ONNX test case's inputs, and compares.
//
//===----------------------------------------------------------------------===//

#include "ax/Import/Import.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "mlir/IR/AsmState.h"
#include "llvm/Support/CommandLine.h"

#include <cmath>

using namespace ax;
namespace cl = llvm::cl;

static cl::opt<std::string> modelPath(cl::Positional, cl::Required,
                                      cl::desc("MODEL.onnx"));
static cl::list<std::string> dims("dim", cl::desc("NAME=SIZE"));
static cl::list<std::string> shapes("shape", cl::desc("INPUT=AxBxC"));
static cl::list<std::string>
    constantInputs("const-input",
                   cl::desc("input of the test case that becomes a constant"));
static cl::opt<std::string>
    testData("test-data", cl::desc("folder input_N.pb, output_N.pb"));
static cl::opt<bool> printIR("print-ir", cl::desc("print the imported module"));
static cl::opt<double> relTol("rtol", cl::init(1e-3));
static cl::opt<double> absTol("atol", cl::init(1e-5));

static llvm::Error parseFlags(import::ImportOptions &options) {
  for (const std::string &flag : dims) {
    auto [name, size] = llvm::StringRef(flag).rsplit('=');
    if (size.getAsInteger(10, options.dims[name.str()]))
      return makeErrorf(ExitCode::Usage, "--dim {0}: give NAME=SIZE", flag);
  }
  for (const std::string &flag : shapes) {
    auto [name, sizes] = llvm::StringRef(flag).rsplit('=');
    llvm::SmallVector<llvm::StringRef> parts;
    sizes.split(parts, 'x', -1, /*KeepEmpty=*/false);
    Shape &shape = options.shapes[name.str()];
    for (llvm::StringRef part : parts)
      if (part.getAsInteger(10, shape.emplace_back()))
        return makeErrorf(ExitCode::Usage, "--shape {0}: give INPUT=AxBxC",
                          flag);
  }
  return llvm::Error::success();
}

/// An error that says where two tensors differ most.
static llvm::Error compare(const std::string &name, const HostTensor &actual,
                           const HostTensor &expected) {
  if (actual.getType() != expected.getType() ||
      actual.getShape() != expected.getShape())
    return makeErrorf(ExitCode::Differs, "output '{0}' is {1}, expected {2}",
                      name, actual.typeToString(), expected.typeToString());
  double worst = 0;
  int64_t at = -1;
  for (int64_t i = 0; i < actual.numElements(); ++i) {
    double a = actual.getDouble(i), e = expected.getDouble(i);
    if (a == e || (std::isnan(a) && std::isnan(e)))
      continue;
    double excess = std::abs(a - e) - (absTol + relTol * std::abs(e));
    if (std::isnan(excess))
      excess = INFINITY;
    if (excess > worst) {
      worst = excess;
      at = i;
    }
  }
  if (at < 0)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Differs,
                    "output '{0}' differs: element {1} is {2}, expected {3}",
                    name, at, actual.getDouble(at), expected.getDouble(at));
}

static llvm::Expected<HostTensor> readState(LoadOp load) {
  auto plan = load->getParentOfType<PlanOp>();
  auto state = mlir::cast<StateOp>(
      mlir::SymbolTable::lookupNearestSymbolFrom(load, load.getStateAttr()));
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

static llvm::Error run() {
  import::ImportOptions options;
  if (llvm::Error error = parseFlags(options))
    return error;
  std::vector<import::NamedTensor> given;
  if (!constantInputs.empty()) {
    auto inputs = import::readTestData(testData, "input");
    if (!inputs)
      return inputs.takeError();
    given = std::move(*inputs);
  }
  for (const std::string &name : constantInputs)
    for (const import::NamedTensor &tensor : given)
      if (tensor.name == name)
        options.constants[name] = tensor.tensor;

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = import::importModel(modelPath, options, context);
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
  auto readInputs = import::readTestData(testData, "input"),
       expected = import::readTestData(testData, "output");
  if (!readInputs || !expected)
    return llvm::joinErrors(readInputs.takeError(), expected.takeError());
  given = std::move(*readInputs);
  ProgramOp program;
  (*module)->walk([&](ProgramOp op) { program = op; });
  std::vector<std::string> names;
  for (unsigned i = 0; i < program.getArgumentTypes().size(); ++i)
    names.push_back(program.getArgName(i).str());
  import::nameByPosition(given, names);
  llvm::SmallVector<HostTensor> inputs;
  for (unsigned i = 0; i < program.getArgumentTypes().size(); ++i) {
    llvm::StringRef name = names[i];
    auto found = llvm::find_if(given, [&](const import::NamedTensor &tensor) {
      return tensor.name == name;
    });
    if (found == given.end())
      return makeErrorf(ExitCode::BadInput, "input '{0}' is missing", name);
    inputs.push_back(found->tensor);
  }
  auto results = interpreter::interpretProgram(program, inputs, readState);
  if (!results)
    return results.takeError();
  llvm::Error differences = llvm::Error::success();
  for (size_t i = 0; i < std::min(results->size(), expected->size()); ++i)
    differences = llvm::joinErrors(
        std::move(differences), compare(program.getResultName(i).str(),
                                        (*results)[i], (*expected)[i].tensor));
  return differences;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "reference interpretation of a model\n");
  if (llvm::Error error = run())
    return reportError("ax-interpret", std::move(error));
  return 0;
}
