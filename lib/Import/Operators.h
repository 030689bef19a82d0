//===- Operators.h - Which operators a model uses ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_OPERATORS_H
#define AX_LIB_IMPORT_OPERATORS_H

#include "ax/Import/Describe.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

namespace ax::import {

/// `'name'`, or by what it makes.
std::string describe(const onnx::NodeProto &node);

/// A function of the model itself; null when `node` calls none.
const onnx::FunctionProto *findFunction(const onnx::ModelProto &model,
                                        const onnx::NodeProto &node);

/// A schema whose function says what a node means; null when there is none.
const onnx::OpSchema *findFunctionSchema(const onnx::NodeProto &node,
                                         int opset);

/// Returns the operators of the main graph, the graphs inside it, and
/// functions, as they are written; sorted by domain and name.
std::vector<OperatorUse> findOperators(const onnx::ModelProto &model,
                                       int opset);

/// Error that lists all operators that cannot be imported.
llvm::Error checkOperators(const onnx::ModelProto &model, int opset);

} // namespace ax::import

#endif // AX_LIB_IMPORT_OPERATORS_H
