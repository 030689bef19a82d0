//===- SortNodes.h - Nodes after those that they read -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_SORTNODES_H
#define AX_LIB_IMPORT_SORTNODES_H

#include "llvm/Support/Error.h"

#include <onnx/onnx_pb.h>

namespace ax::import {

/// Puts every node of a model's graphs and functions after those whose outputs
/// it reads, and leaves those alone that already are. An error when nodes read
/// each other in a circle.
llvm::Error sortNodes(onnx::ModelProto &model);

} // namespace ax::import

#endif // AX_LIB_IMPORT_SORTNODES_H
