//===- ValueNumbers.h - Which values of a program are the same --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_PLAN_VALUENUMBERS_H
#define AX_LIB_PLAN_VALUENUMBERS_H

#include "ax/Dialect/Ax.h"

#include <map>
#include <vector>

namespace ax::plan {

/// Two values are the same if the same operations make them of the same values,
/// on whichever stage.
class ValueNumbers {
public:
  explicit ValueNumbers(ProgramOp program);

  int64_t of(mlir::Value value) const { return numbers.lookup(value); }

private:
  void add(StageOp stage);
  void add(mlir::Operation *op);
  void add(mlir::Operation *op, mlir::ValueRange operands,
           mlir::ValueRange results);

  int64_t next = 1;
  llvm::DenseMap<mlir::Value, int64_t> numbers;
  std::map<std::vector<uintptr_t>, int64_t> known;
};

} // namespace ax::plan

#endif // AX_LIB_PLAN_VALUENUMBERS_H
