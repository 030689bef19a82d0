//===- Unsupported.cpp - Errors that no strategy helps --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Passes.h"

using namespace mlir;
using namespace ax;

static constexpr llvm::StringLiteral unsupportedMark = "ax.unsupported";

InFlightDiagnostic ax::emitUnsupported(Operation *op) {
  InFlightDiagnostic error = op->emitError();
  error.getUnderlyingDiagnostic()->getMetadata().push_back(
      DiagnosticArgument(unsupportedMark));
  return error;
}

bool ax::isUnsupported(Diagnostic &diagnostic) {
  return llvm::any_of(
      diagnostic.getMetadata(), [](const DiagnosticArgument &argument) {
        return argument.getKind() ==
                   DiagnosticArgument::DiagnosticArgumentKind::String &&
               argument.getAsString() == unsupportedMark;
      });
}
