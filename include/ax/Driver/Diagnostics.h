//===- Diagnostics.h - What a compiler says beside errors -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DRIVER_DIAGNOSTICS_H
#define AX_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ax::driver {

using Tell = std::function<void(const std::string &)>;

/// Keeps warnings and notes of import and passes while it lives.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext &context);

  mlir::MLIRContext &getContext() const { return context; }

  /// Tells all warnings; what was said of several nodes, or by several passes,
  /// once.
  void tellWarnings(const Tell &tell) const;
  /// Tells all notes, which belong to a summary: of what is wrong, an error
  /// says all.
  void tellNotes(const Tell &tell) const;

private:
  /// `'NODE': what`, or something else.
  void addWarning(llvm::StringRef text);

  struct Nodes {
    std::string front;
    int64_t others = 0;
  };
  llvm::MapVector<std::string, Nodes, std::map<std::string, unsigned>> warnings;
  std::vector<std::string> notes;
  mlir::MLIRContext &context;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ax::driver

#endif // AX_DRIVER_DIAGNOSTICS_H
