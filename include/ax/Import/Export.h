//===- Export.h - Other weights in a user's model ---------------*- C++ -*-===//
#ifndef AX_IMPORT_EXPORT_H
#define AX_IMPORT_EXPORT_H

#include "ax/Support/HostTensor.h"

#include <map>
#include <string>
#include <vector>

namespace ax::import {

/// Writes the model again, its graph as it is, with the values of `weights` (by
/// the names of states) in place of the initializers'. Large models, and those
/// that had external data, get theirs in `output`.data. BadInput errors when a
/// weight has another type or shape, when one of `required` is no initializer,
/// or when none is.
llvm::Error exportModel(llvm::StringRef model, const std::string &output,
                        const std::map<std::string, HostTensor> &weights,
                        const std::vector<std::string> &required);

} // namespace ax::import

#endif // AX_IMPORT_EXPORT_H
