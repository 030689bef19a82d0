//===- Diagnostics.cpp - What axopt says beside errors --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Diagnostics.h"

using namespace ax;

Diagnostics::Diagnostics(mlir::MLIRContext &context, bool withNotes)
    : handler(&context, [this, withNotes](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          return mlir::failure();
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
          addWarning(diagnostic.str());
        else if (withNotes)
          notes.push_back(diagnostic.str());
        return mlir::success();
      }) {}

void Diagnostics::showWarnings() {
  for (const auto &[what, nodes] : warnings) {
    llvm::errs() << "axopt: warning: " << nodes.front;
    if (nodes.others)
      llvm::errs() << " and " << nodes.others << " more";
    llvm::errs() << (nodes.front.empty() ? "" : ": ") << what << '\n';
  }
}

void Diagnostics::showNotes() {
  for (const std::string &note : notes)
    llvm::errs() << "axopt: note: " << note << '\n';
}

void Diagnostics::addWarning(llvm::StringRef text) {
  auto [node, what] = text.split("': ");
  bool isOfNode = text.starts_with("'") && !what.empty();
  auto [known, isNew] = warnings.try_emplace(
      (isOfNode ? what : text).str(),
      Nodes{isOfNode ? node.str() + "'" : std::string(), 0});
  known->second.others += !isNew && isOfNode;
}
