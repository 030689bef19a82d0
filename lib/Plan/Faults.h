//===- Faults.h - Diagnostics as one error ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_PLAN_FAULTS_H
#define AX_LIB_PLAN_FAULTS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ax::plan {

/// Takes all errors that are reported while it lives. Warnings pass.
class Faults {
public:
  /// `text` is that of the file which is parsed, where one is.
  explicit Faults(mlir::MLIRContext *context, llvm::StringRef text = {});
  ~Faults();

  bool any() const { return count > 0; }
  /// BadPlan with `FILE:LINE:COLUMN: message` of each; success without faults.
  llvm::Error take();

private:
  void add(mlir::Diagnostic &diagnostic);

  mlir::MLIRContext *context;
  llvm::StringRef text;
  bool printedOp;
  std::vector<std::string> texts;
  unsigned count = 0;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ax::plan

#endif // AX_LIB_PLAN_FAULTS_H
