//===- Diagnostics.cpp - What a compiler says beside errors ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Driver/Diagnostics.h"

using namespace ax::driver;

Diagnostics::Diagnostics(mlir::MLIRContext &context)
    : context(context), handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          return mlir::failure();
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
          addWarning(diagnostic.str());
        else
          notes.push_back(diagnostic.str());
        return mlir::success();
      }) {}

void Diagnostics::tellWarnings(const Tell &tell) const {
  for (const auto &[what, nodes] : warnings) {
    std::string text = nodes.front;
    if (nodes.others)
      text += " and " + std::to_string(nodes.others) + " more";
    tell(text + (text.empty() ? "" : ": ") + what);
  }
}

void Diagnostics::tellNotes(const Tell &tell) const {
  for (const std::string &note : notes)
    tell(note);
}

void Diagnostics::addWarning(llvm::StringRef text) {
  auto [node, what] = text.split("': ");
  bool isOfNode = text.starts_with("'") && !what.empty();
  auto [known, isNew] = warnings.try_emplace(
      (isOfNode ? what : text).str(),
      Nodes{isOfNode ? node.str() + "'" : std::string(), 0});
  known->second.others += !isNew && isOfNode;
}
