//===- Diagnostics.h - What axopt says beside errors ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXOPT_DIAGNOSTICS_H
#define AX_TOOLS_AXOPT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <string>
#include <vector>

namespace ax {

/// While it lives, warnings and notes of import and passes are the tool's own
/// messages on standard error.
class Diagnostics {
public:
  /// Without `withNotes` these are left out; they belong to the summary.
  Diagnostics(mlir::MLIRContext &context, bool withNotes);

  /// Prints all warnings; what was said of several nodes, or by several passes,
  /// once.
  void showWarnings();
  /// Prints all notes: of what is wrong, an error says all.
  void showNotes();

private:
  /// `'NODE': what`, or something else.
  void addWarning(llvm::StringRef text);

  struct Nodes {
    std::string front;
    int64_t others = 0;
  };
  llvm::MapVector<std::string, Nodes, std::map<std::string, unsigned>> warnings;
  std::vector<std::string> notes;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ax

#endif // AX_TOOLS_AXOPT_DIAGNOSTICS_H
