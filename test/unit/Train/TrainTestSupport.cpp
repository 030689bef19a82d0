//===- TrainTestSupport.cpp - Programs, their gradients, differences ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TrainTestSupport.h"

#include "ax/Gradients/GradientBuilder.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace mlir;

namespace ax::test {

MLIRContext &context() {
  static MLIRContext *context = [] {
    registerAddLossPass();
    registerDifferentiatePass();
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    DialectRegistry registry;
    registry.insert<AxDialect>();
    registerGradients(registry);
    made->appendDialectRegistry(registry);
    made->loadDialect<AxDialect>();
    return made;
  }();
  return *context;
}

OwningOpRef<ModuleOp> parse(const std::string &text) {
  auto module = parseSourceString<ModuleOp>(text, &context());
  EXPECT_TRUE(module) << text;
  return module;
}

ProgramOp programOf(ModuleOp module) {
  ProgramOp found;
  module.walk([&](ProgramOp program) { found = program; });
  return found;
}

std::string runPasses(ModuleOp module, const std::string &pipeline) {
  std::string message;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      message += diagnostic.str();
    return success();
  });
  PassManager manager(&context());
  if (failed(parsePassPipeline(pipeline, manager)))
    return "no such pipeline: " + pipeline;
  bool failedToRun = failed(manager.run(module));
  return failedToRun && message.empty() ? "failed" : message;
}

States interpret(ModuleOp module, const States &inputs, const States &states) {
  ProgramOp program = programOf(module);
  llvm::SmallVector<HostTensor> arguments;
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    arguments.push_back(inputs.at(program.getArgName(i).str()));
  auto results = interpreter::interpretProgram(
      program, arguments, [&](LoadOp load) -> llvm::Expected<HostTensor> {
        return states.at(load.getState().str());
      });
  States named;
  if (!results) {
    ADD_FAILURE() << describeError(results.takeError()).message;
    return named;
  }
  for (auto [i, tensor] : llvm::enumerate(*results)) {
    llvm::StringRef name = program.getResultName(i);
    named[name.empty() ? std::to_string(i) : name.str()] = tensor;
  }
  return named;
}

static Shape parseShape(llvm::StringRef text) {
  Shape shape;
  for (llvm::StringRef size : llvm::split(text, 'x'))
    if (!size.empty())
      shape.push_back(std::stoll(size.str()));
  return shape;
}

static std::string typeText(const std::string &shape) {
  return "tensor<" + shape + (shape.empty() ? "" : "x") + "f64>";
}

static int64_t count(const std::string &shape) {
  return *checkedNumElements(parseShape(shape));
}

std::string programText(const Case &c) {
  std::string text = "ax.plan @p version 1 {\n", body = c.body;
  auto replace = [&](const std::string &name, const std::string &type) {
    for (size_t at; (at = body.find("$" + name)) != std::string::npos;)
      body.replace(at, name.size() + 1, type);
  };
  std::string loads;
  for (const Operand &operand : c.operands) {
    std::string type = typeText(operand.shape), name = operand.name;
    text += "  ax.state @" + name + " : " + type +
            " from \"f\" offset 0 length " +
            std::to_string(8 * count(operand.shape)) + " {trainable}\n";
    loads += "    %" + name + " = ax.load @" + name + " : " + type + "\n";
    replace(name, type);
  }
  std::string type = typeText(c.result), dims;
  replace("r", type);
  int64_t rank = parseShape(c.result).size();
  for (int64_t dim = 0; dim < rank; ++dim)
    dims += (dim ? ", " : "") + std::to_string(dim);
  // Weights that no symmetry hides behind: 1.3, 1.61, 1.92, ...
  std::string weights =
      "%one = ax.constant dense<1.3> : tensor<f64> -> tensor<f64>\n"
      "    %step = ax.constant dense<0.31> : tensor<f64> -> tensor<f64>\n";
  std::string flat = typeText(std::to_string(count(c.result)));
  weights += "    %number = ax.iota dim 0 : " + flat +
             "\n    %scaled = ax.binary mul %number, %step : " + flat +
             ", tensor<f64> -> " + flat +
             "\n    %shifted = ax.binary add %scaled, %one : " + flat +
             ", tensor<f64> -> " + flat +
             "\n    %weights = ax.reshape %shifted : " + flat + " -> " + type +
             "\n";
  return text +
         "  ax.program @main() -> (tensor<f64> {ax.name = \"loss\"}) {\n" +
         loads + "    " + body + "\n    " + weights +
         "    %weighted = ax.binary mul %r, %weights : " + type + ", " + type +
         " -> " + type + "\n    %loss = ax.reduce sum %weighted dims [" + dims +
         "] : " + type +
         " -> tensor<f64>\n    ax.return %loss : tensor<f64>\n  }\n}\n";
}

States stateValues(const Case &c) {
  States values;
  std::mt19937 random(7);
  for (const Operand &operand : c.operands) {
    HostTensor tensor(DType::F64, parseShape(operand.shape));
    std::vector<int64_t> order(tensor.numElements());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    // Off the middle of the cell: two operands have no value in common.
    double offset = 0.37 + 0.11 * static_cast<double>(values.size());
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      tensor.setDouble(i, operand.low +
                              (operand.high - operand.low) *
                                  (static_cast<double>(order[i]) + offset) /
                                  static_cast<double>(order.size()));
    values[operand.name] = tensor;
  }
  return values;
}

} // namespace ax::test
