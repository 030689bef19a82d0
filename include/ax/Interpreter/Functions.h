//===- Functions.h - Functions of numbers -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERPRETER_FUNCTIONS_H
#define AX_INTERPRETER_FUNCTIONS_H

#include "ax/Dialect/AxEnums.h"

namespace ax::interpreter {

/// The function of `kind` on doubles, truth values as 0 and 1; null for those
/// that are of integers only.
using UnaryFn = double (*)(double);
UnaryFn unaryFunction(UnaryKind kind);

} // namespace ax::interpreter

#endif // AX_INTERPRETER_FUNCTIONS_H
