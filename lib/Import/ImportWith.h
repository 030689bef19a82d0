//===- ImportWith.h - A model with these sizes ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_IMPORTWITH_H
#define AX_LIB_IMPORT_IMPORTWITH_H

#include "Weights.h"

#include "ax/Dialect/Ax.h"
#include "ax/Import/Import.h"

namespace ax::import {

/// `importModel` without asking, where it fails, whether sizes are at fault.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importWith(const ImportOptions &options, llvm::StringRef path,
           mlir::MLIRContext &context);

/// Returns that by which a plan knows the files again that it was made from
/// (`ax.files`).
llvm::Expected<mlir::DictionaryAttr> fingerprints(PlanOp plan,
                                                  ModelFolder &folder);

} // namespace ax::import

#endif // AX_LIB_IMPORT_IMPORTWITH_H
