//===- Prepare.h - A model ready to be walked -------------------*- C++ -*-===//
//
// What the onnx library does for us: check, inline model-local functions,
// convert to the newest operator set.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_PREPARE_H
#define AX_LIB_IMPORT_PREPARE_H

#include "Weights.h"

#include <onnx/onnx_pb.h>

#include <set>

namespace ax::import {

struct PreparedModel {
  /// Checked, without local functions, at operator set `opset`. Initializers
  /// that are only in `weights` are graph inputs in it.
  onnx::ModelProto proto;
  WeightMap weights;
  /// Single floats, in a list. They are constants, but for the biases of
  /// layers with one feature, if these are to be trained.
  WeightMap numbers;
  /// Inputs of which not even the rank is known.
  std::set<std::string> unranked;
  /// Exporter's scope (`encoder.layer.0.attention`) by a node's first output.
  std::map<std::string, std::string> scopes;
};

/// Larger programs are refused: loops and functions write them cheaply.
inline constexpr int64_t maxNodes = 1000000;

/// The operator set that everything is converted to.
int newestOpset();

/// Makes weights of `numbers` that are biases.
void takeSingleBiases(PreparedModel &model);

llvm::Expected<PreparedModel> prepareModel(ModelFolder &folder);

} // namespace ax::import

#endif // AX_LIB_IMPORT_PREPARE_H
