//===- Ops.cpp - Generated definitions of the operations ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/AxesSyntax.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace ax;

/// Nothing; what plans had there once is said.
static ParseResult parseNoEpilogue(OpAsmParser &parser,
                                   const OpAsmParser::UnresolvedOperand &) {
  for (StringRef what : {"bias", "residual"}) {
    llvm::SMLoc location = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalKeyword(what)))
      return parser.emitError(location)
             << "has a " << what
             << ", as plans had before they were ax.binary operations: make "
                "the plan again";
  }
  return success();
}

static void printNoEpilogue(OpAsmPrinter &, Operation *, Value) {}

#define GET_OP_CLASSES
#include "ax/Dialect/AxOps.cpp.inc"
