//===- SlimModel.h - A model's bytes without its weights --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_SLIMMODEL_H
#define AX_LIB_IMPORT_SLIMMODEL_H

#include "WeightKinds.h"
#include "Weights.h"

namespace ax::import {

struct SlimModel {
  /// A serialised ModelProto in which no initializer is external: those of more
  /// than `maxInlineBytes` are gone, smaller ones hold their data. Weights that
  /// the main graph has as nodes (`Constant`) are initializers in it.
  std::string bytes;
  /// Where the data of every external or float initializer lies, by name; those
  /// that are gone, and the small ones that are in `bytes` too.
  WeightMap weights;
  /// The data of single floats likewise, which are no weights by themselves
  /// unless the exporter says so.
  WeightMap numbers;
  /// Initializers that are in `weights` and no longer in `bytes`, in order.
  std::vector<std::string> removed;
  /// The kinds of initializers that say theirs themselves.
  WeightKinds kinds;
  /// Initializers that were Constant nodes; none where all weights were, as of
  /// a program that writes them so.
  std::set<std::string> constants;
};

llvm::Expected<SlimModel> slimModel(ModelFolder &folder);

/// The model that `slim.bytes` are.
llvm::Error parseSlim(const SlimModel &slim, onnx::ModelProto &model);

} // namespace ax::import

#endif // AX_LIB_IMPORT_SLIMMODEL_H
