//===- PlanText.h - Plans of one stage, as text -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_CODEGEN_PLANTEXT_H
#define AX_TEST_UNIT_CODEGEN_PLANTEXT_H

#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <random>

namespace ax::codegen {

inline mlir::MLIRContext &testContext() {
  static mlir::MLIRContext *context = [] {
    auto *made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<AxDialect>();
    return made;
  }();
  return *context;
}

/// A plan with one stage on all ranks. `inputs` are the types of %x0, %x1, ...;
/// `body` defines %r of type `result`.
inline std::string planText(const std::string &mesh,
                            const std::vector<std::string> &inputs,
                            const std::string &body, const std::string &result,
                            const std::string &states = "") {
  std::string text = "ax.plan @p version 1 {\nax.mesh " + mesh + "\n" + states +
                     "ax.program @main(";
  for (size_t i = 0; i < inputs.size(); ++i)
    text += (i ? ", %a" : "%a") + std::to_string(i) + ": " + inputs[i];
  text += ") -> " + result + " {\n%s = ax.stage @forward on 0 (";
  for (size_t i = 0; i < inputs.size(); ++i)
    text += (i ? ", %x" : "%x") + std::to_string(i) + " = %a" +
            std::to_string(i) + " : " + inputs[i];
  text += ") -> (" + result + ") {\n" + body + "\nax.yield %r : " + result +
          "\n}\nax.schedule \"once\" { stage 0: \"F0\" }\nax.return %s : " +
          result + "\n}\n}\n";
  return text;
}

inline mlir::OwningOpRef<mlir::ModuleOp> parsePlan(const std::string &text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &testContext());
  EXPECT_TRUE(module) << text;
  return module;
}

template <typename Op>
Op findOp(mlir::Operation *root) {
  Op found;
  root->walk([&](Op op) { found = op; });
  return found;
}

/// Values that depend on the seed: floats in [-1, 1), integers in [0, limit).
inline HostTensor randomTensor(mlir::Type type, unsigned seed,
                               int64_t limit = 10) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  HostTensor made(*interpreter::toDType(tensor.getElementType()),
                  Shape(tensor.getShape()));
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int64_t> whole(0, limit - 1);
  for (int64_t i = 0; i < made.numElements(); ++i)
    if (isFloat(made.getType()))
      made.setDouble(i, real(generator));
    else
      made.setInt(i, whole(generator));
  return made;
}

inline void expectClose(const HostTensor &got, const HostTensor &wanted,
                        double tolerance = 2e-6) {
  ASSERT_EQ(got.typeToString(), wanted.typeToString());
  double largest = 0;
  for (int64_t i = 0; i < wanted.numElements(); ++i)
    largest = std::max(largest, std::abs(wanted.getDouble(i)));
  for (int64_t i = 0; i < wanted.numElements(); ++i) {
    double difference = std::abs(got.getDouble(i) - wanted.getDouble(i));
    ASSERT_TRUE(difference <= tolerance * std::max(largest, 1e-3))
        << "element " << i << ": " << got.getDouble(i) << ", wanted "
        << wanted.getDouble(i);
  }
}

} // namespace ax::codegen

#endif // AX_TEST_UNIT_CODEGEN_PLANTEXT_H
