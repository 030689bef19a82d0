//===- Export.h - Other weights in a user's model ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_IMPORT_EXPORT_H
#define AX_IMPORT_EXPORT_H

#include "ax/Support/GivenWeights.h"

#include <string>
#include <vector>

namespace ax::import {

struct ExportWeights {
  /// What the file has, by the names of states.
  GivenWeights given;
  /// Those that must be the model's.
  std::vector<std::string> required;
  /// fingerprintOf each of the model's that are not among them and stay what
  /// they are.
  std::map<std::string, std::string> frozen;
  /// Others of the model's may stay what they are.
  bool isPartial = false;
};

/// The file that exportModel puts the data of large weights into: beside that
/// which takes the place of `output`, which may be a link.
std::string dataFileOf(const std::string &output);

/// Writes the model again, its graph as it is, with the values of `weights` in
/// place of the initializers'. Large models, and those that had external data,
/// get theirs in dataFileOf(output). BadInput errors when a weight has another
/// type (but for bf16 and f16 in place of f32) or shape, when a required one is
/// no initializer, when none is, or when some are not given that equal none
/// that is.
llvm::Error exportModel(llvm::StringRef model, const std::string &output,
                        ExportWeights weights);

} // namespace ax::import

#endif // AX_IMPORT_EXPORT_H
