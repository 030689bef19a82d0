//===- Ops.cpp - Generated definitions of the operations ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/AxesSyntax.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace ax;

/// `bias %b : TYPE`, or nothing.
static ParseResult
parseBias(OpAsmParser &parser,
          std::optional<OpAsmParser::UnresolvedOperand> &bias, Type &type) {
  if (succeeded(parser.parseOptionalKeyword("bias")))
    if (parser.parseOperand(bias.emplace()) || parser.parseColonType(type))
      return failure();
  llvm::SMLoc location = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("residual")))
    return parser.emitError(
        location, "has a residual, as plans had before they were ax.binary "
                  "operations: make the plan again");
  return success();
}

static void printBias(OpAsmPrinter &printer, Operation *, Value bias,
                      Type type) {
  if (bias)
    printer << " bias " << bias << " : " << type;
}

#define GET_OP_CLASSES
#include "ax/Dialect/AxOps.cpp.inc"
