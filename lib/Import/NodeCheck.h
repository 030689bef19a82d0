//===- NodeCheck.h - Nodes held against their operators' schemas *- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_NODECHECK_H
#define AX_LIB_IMPORT_NODECHECK_H

#include "Node.h"
#include "Schemas.h"

namespace ax::import {

/// The type of a tensor or of a sequence; none of nothing.
onnx::TypeProto toTypeProto(const Entry &entry);

/// The element types of a node's inputs are among those that its operator
/// takes, and equal where they must be. False, and a failure, when not.
bool checkInputTypes(Node &node, const onnx::OpSchema &schema);

/// ONNX's own inference finds no fault with the node's shapes and attributes,
/// and the same types and shapes as `outputs` have. False, and a failure, when
/// not.
bool checkOutputTypes(Node &node, const onnx::OpSchema &schema,
                      ArrayRef<Entry> outputs);

} // namespace ax::import

#endif // AX_LIB_IMPORT_NODECHECK_H
