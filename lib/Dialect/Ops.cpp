//===- Ops.cpp - Generated definitions of the operations ------------------===//
#include "AxesSyntax.h"

#include "ax/Dialect/LocalOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace ax;

#define GET_OP_CLASSES
#include "ax/Dialect/AxOps.cpp.inc"

#define GET_OP_CLASSES
#include "ax/Dialect/AxLocalOps.cpp.inc"
