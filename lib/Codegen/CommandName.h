//===- CommandName.h - What commands are called -----------------*- C++ -*-===//
#ifndef AX_LIB_CODEGEN_COMMANDNAME_H
#define AX_LIB_CODEGEN_COMMANDNAME_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// Its node, or what it does.
std::string nameOf(mlir::Operation *op);
/// What it does, and the last node that it does it for.
std::string nameOf(FusionOp fusion);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_COMMANDNAME_H
