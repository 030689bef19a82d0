//===- InterpreterTestSupport.h - Interpreting a line of IR -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_INTERPRETER_INTERPRETERTESTSUPPORT_H
#define AX_TEST_UNIT_INTERPRETER_INTERPRETERTESTSUPPORT_H

#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <gtest/gtest.h>

namespace ax::interpreter {

inline mlir::MLIRContext &testContext() {
  static mlir::MLIRContext *context = [] {
    auto *made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<AxDialect, AxlDialect>();
    return made;
  }();
  return *context;
}

inline std::string typeText(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// A program with the operands as %0, %1, ... and the given body, which
/// defines %r of `resultType`.
inline mlir::OwningOpRef<mlir::ModuleOp>
parseProgram(llvm::StringRef body, llvm::ArrayRef<HostTensor> operands,
             llvm::StringRef resultType) {
  std::string text = "ax.plan @p version 1 {\n ax.program @main(";
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i ? ", %" : "%") + ("x" + std::to_string(i)) + ": " +
            typeText(toTensorType(operands[i], &testContext()));
  text += ") -> " + resultType.str() + " {\n" + body.str() +
          "\n ax.return %r : " + resultType.str() + "\n }\n}";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &testContext());
  EXPECT_TRUE(module) << text;
  return module;
}

inline ProgramOp programOf(mlir::ModuleOp module) {
  ProgramOp found;
  module.walk([&](ProgramOp program) { found = program; });
  return found;
}

/// %r of a program whose operands are %x0, %x1, ...; an empty f32 tensor, and
/// a failure, when it cannot be had.
inline HostTensor run(llvm::StringRef body, llvm::ArrayRef<HostTensor> operands,
                      llvm::StringRef resultType) {
  auto module = parseProgram(body, operands, resultType);
  if (!module)
    return {};
  auto results = interpretProgram(
      programOf(*module), operands, [](LoadOp) -> llvm::Expected<HostTensor> {
        return makeError(ExitCode::Internal, "no states");
      });
  if (!results) {
    ADD_FAILURE() << describeError(results.takeError()).message;
    return {};
  }
  return results->front();
}

inline HostTensor f32(Shape shape, std::vector<float> values) {
  return HostTensor::fromValues<float>(std::move(shape), values);
}
inline HostTensor i64(Shape shape, std::vector<int64_t> values) {
  return HostTensor::fromValues<int64_t>(std::move(shape), values);
}
inline HostTensor boolean(Shape shape, std::vector<int64_t> values) {
  return i64(std::move(shape), std::move(values)).cast(DType::Bool);
}

inline void expectValues(const HostTensor &tensor,
                         std::vector<double> expected) {
  ASSERT_EQ(tensor.numElements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    double value = tensor.getDouble(i);
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(value)) << "element " << i << " is " << value;
    else if (std::isinf(expected[i]))
      EXPECT_EQ(value, expected[i]) << "element " << i;
    else
      EXPECT_NEAR(value, expected[i], 1e-6 * (1 + std::fabs(expected[i])))
          << "element " << i;
  }
}

} // namespace ax::interpreter

#endif // AX_TEST_UNIT_INTERPRETER_INTERPRETERTESTSUPPORT_H
