//===- AxEnums.h - Kinds of operations --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The enums alone, for code that does not need the operation classes.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_AXENUMS_H
#define AX_DIALECT_AXENUMS_H

#include "mlir/IR/OpImplementation.h"

#include "ax/Dialect/AxEnums.h.inc"

#endif // AX_DIALECT_AXENUMS_H
