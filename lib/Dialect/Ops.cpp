//===- Ops.cpp - Generated definitions of the operations ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/AxesSyntax.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace ax;

#define GET_OP_CLASSES
#include "ax/Dialect/AxOps.cpp.inc"
