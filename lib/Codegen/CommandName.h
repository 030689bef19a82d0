//===- CommandName.h - What commands are called -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_COMMANDNAME_H
#define AX_LIB_CODEGEN_COMMANDNAME_H

#include "ax/Local/Local.h"

#include <string>
#include <vector>

namespace ax::codegen {

/// Its node, or what it does.
std::string nameOf(mlir::Operation *op);
/// What it does, and the last node that it does it for.
std::string nameOf(FusionOp fusion);
/// `add+add+layer_norm`.
std::string kindsOf(FusionOp fusion);
/// All nodes that it does something for; of a fusion, those of what it
/// computes.
std::vector<std::string> nodesOf(mlir::Operation *op);

/// Bytes that a command reads and writes. Of a table that a kernel looks up
/// rows in, or takes a part of, no more than it takes; of what it changes in
/// place no more than is new.
int64_t bytesMoved(mlir::Operation *op);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_COMMANDNAME_H
