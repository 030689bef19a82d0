//===- KeptValues.h - Values to be given beside the outputs -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_KEPTVALUES_H
#define AX_LIB_IMPORT_KEPTVALUES_H

#include "Prepare.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace ax::import {

/// The values of the model's graph, outputs apart, that one of the globs names
/// by their own name, their node's, or that of the exporter's module around it;
/// in the graph's order. A Usage error names a glob that matches nothing, and
/// what is like it.
llvm::Expected<std::vector<std::string>>
findKeptValues(const PreparedModel &model,
               llvm::ArrayRef<std::string> patterns);

} // namespace ax::import

#endif // AX_LIB_IMPORT_KEPTVALUES_H
