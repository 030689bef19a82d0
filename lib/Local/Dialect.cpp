//===- Dialect.cpp - Registration of axl ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/AxesSyntax.h"
#include "ax/Local/Local.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace ax;

#include "ax/Local/LocalDialect.cpp.inc"
#include "ax/Local/LocalInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "ax/Local/LocalOps.cpp.inc"

void AxlDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ax/Local/LocalOps.cpp.inc"
      >();
}
