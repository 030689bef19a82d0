//===- Ops.cpp - Generated definitions of the operations ------------------===//
#include "ax/Dialect/LocalOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

namespace ax {
mlir::ParseResult parseAxes(mlir::OpAsmParser &parser, AxesAttr &axes);
void printAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op, AxesAttr axes);
} // namespace ax

using namespace ax;

#define GET_OP_CLASSES
#include "ax/Dialect/AxOps.cpp.inc"

#define GET_OP_CLASSES
#include "ax/Dialect/AxLocalOps.cpp.inc"
