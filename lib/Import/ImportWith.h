//===- ImportWith.h - A model with these sizes ------------------*- C++ -*-===//
#ifndef AX_LIB_IMPORT_IMPORTWITH_H
#define AX_LIB_IMPORT_IMPORTWITH_H

#include "ax/Import/Import.h"

namespace ax::import {

/// `importModel` without asking, where it fails, whether sizes are at fault.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importWith(const ImportOptions &options, llvm::StringRef path,
           mlir::MLIRContext &context);

} // namespace ax::import

#endif // AX_LIB_IMPORT_IMPORTWITH_H
