//===- Faults.cpp - Diagnostics as one error ------------------------------===//
#include "Faults.h"

#include "ax/Support/Error.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace ax::plan {

/// More faults than these only repeat one cause.
static constexpr unsigned maxShown = 20;

static std::string placeOf(Location location) {
  if (auto at = location->findInstanceOf<FileLineColLoc>())
    return (at.getFilename().getValue() + ":" + Twine(at.getLine()) + ":" +
            Twine(at.getColumn()) + ": ")
        .str();
  if (auto at = location->findInstanceOf<NameLoc>())
    return ("node '" + at.getName().getValue() + "': ").str();
  return "";
}

Faults::Faults(MLIRContext *context)
    : context(context), printedOp(context->shouldPrintOpOnDiagnostic()),
      handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        if (++count > maxShown)
          return success();
        if (!text.empty())
          text += '\n';
        text += placeOf(diagnostic.getLocation()) + diagnostic.str();
        for (Diagnostic &note : diagnostic.getNotes())
          text += "\n  " + note.str();
        return success();
      }) {
  // The file and line say where it is.
  context->printOpOnDiagnostic(false);
}

Faults::~Faults() { context->printOpOnDiagnostic(printedOp); }

llvm::Error Faults::take() {
  if (!any())
    return llvm::Error::success();
  if (count > maxShown)
    text += "\n(" + std::to_string(count - maxShown) + " more)";
  return makeError(ExitCode::BadPlan, text);
}

} // namespace ax::plan
