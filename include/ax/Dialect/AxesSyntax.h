//===- AxesSyntax.h - `{col}` in the assembly of ops ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_AXESSYNTAX_H
#define AX_DIALECT_AXESSYNTAX_H

#include "ax/Dialect/Ax.h"

#include "mlir/IR/OpImplementation.h"

namespace ax {

/// The attribute without its `#ax.axes<>`, for `custom<Axes>`.
mlir::ParseResult parseAxes(mlir::OpAsmParser &parser, AxesAttr &axes);
void printAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op, AxesAttr axes);

} // namespace ax

#endif // AX_DIALECT_AXESSYNTAX_H
