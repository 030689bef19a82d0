//===- AttributeRules.h - Which values attributes may have ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_ATTRIBUTERULES_H
#define AX_LIB_IMPORT_ATTRIBUTERULES_H

#include "Node.h"
#include "Schemas.h"

namespace ax::import {

/// Checks every attribute of a node: it is of the type that its operator asks
/// for, and numbers and names are among those that ONNX gives a meaning. False,
/// and a failure, when not; importers see no others.
bool checkAttributes(Node &node, const onnx::OpSchema &schema);

} // namespace ax::import

#endif // AX_LIB_IMPORT_ATTRIBUTERULES_H
