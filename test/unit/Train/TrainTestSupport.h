//===- TrainTestSupport.h - Programs and their gradients --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_TRAIN_TRAINTESTSUPPORT_H
#define AX_TEST_UNIT_TRAIN_TRAINTESTSUPPORT_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace ax::test {

/// A state that is trained: f64 of the shape (`2x3`, empty for a scalar), with
/// distinct values spread over (low, high).
struct Operand {
  const char *name;
  std::string shape;
  double low = -2, high = 2;
};

/// One operation whose gradients are compared with differences. In `body`, $a
/// is the type of %a, and $r of the result %r, whose shape is `result`.
struct Case {
  const char *op;
  std::string name;
  std::vector<Operand> operands;
  std::string body;
  std::string result;
};
inline void PrintTo(const Case &c, std::ostream *stream) {
  *stream << "ax." << c.op << " " << c.name;
}

// Of each file in Cases/, which the build finds there.
#define AX_FILE(Name) void add##Name##Cases(std::vector<Case> &cases);
#include "Cases.inc"
#undef AX_FILE

/// A context in which gradients are registered.
mlir::MLIRContext &context();

using States = std::map<std::string, HostTensor>;

mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
ProgramOp programOf(mlir::ModuleOp module);
/// Runs the passes of a textual pipeline; what went wrong, or nothing.
std::string runPasses(mlir::ModuleOp module, const std::string &pipeline);
/// Results by their names; those without one are `0`, `1`, ....
States interpret(mlir::ModuleOp module, const States &inputs,
                 const States &states);

/// The case as a program that returns the sum of its result, each element
/// times its own number.
std::string programText(const Case &c);
States stateValues(const Case &c);

} // namespace ax::test

#endif // AX_TEST_UNIT_TRAIN_TRAINTESTSUPPORT_H
