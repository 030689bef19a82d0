//===- Prepare.h - A model ready to be walked -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorted, checked by the onnx library, model-local functions inlined. Operators
// stay as their own operator set has them: onnx's version converter has holes,
// and what falls through them is silently wrong.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_PREPARE_H
#define AX_LIB_IMPORT_PREPARE_H

#include "ParameterRoles.h"
#include "WeightKinds.h"
#include "Weights.h"

#include <onnx/onnx_pb.h>

#include <set>

namespace ax::import {

struct PreparedModel {
  /// Checked. Its functions are those that are written at an operator set of
  /// their own. Initializers that are only in `weights` are graph inputs in it.
  onnx::ModelProto proto;
  /// The operator set of the default domain, from `oldestOpset` on.
  int opset = 0;
  WeightMap weights;
  /// Single floats. They are constants, but for parameters of layers with one
  /// feature and those that the exporter declares.
  WeightMap numbers;
  /// The kinds of initializers that say theirs, or of which the graph does.
  WeightKinds kinds;
  /// The roles, when the graph is what is imported.
  ParameterRoles roles;
  /// Inputs of which not even the rank is known.
  std::set<std::string> unranked;
  /// Exporter's scope (`encoder.layer.0.attention`) by a node's first output.
  std::map<std::string, std::string> scopes;
};

/// Larger programs are refused: loops and functions write them cheaply.
inline constexpr int64_t maxNodes = 1000000;

/// Older operator sets are converted to this.
inline constexpr int oldestOpset = 7;

llvm::Expected<PreparedModel> prepareModel(ModelFolder &folder);

} // namespace ax::import

#endif // AX_LIB_IMPORT_PREPARE_H
