//===- Faults.cpp - Diagnostics as one error ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Faults.h"

#include "ax/Support/Error.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace ax::plan {

/// More faults than these only repeat one cause; longer ones quote types.
static constexpr unsigned maxShown = 10;
static constexpr size_t maxLetters = 600;

static std::string placeOf(Location location) {
  if (auto at = location->findInstanceOf<FileLineColLoc>())
    return (at.getFilename().getValue() + ":" + Twine(at.getLine()) + ":" +
            Twine(at.getColumn()) + ": ")
        .str();
  if (auto at = location->findInstanceOf<NameLoc>())
    return ("node '" + at.getName().getValue() + "': ").str();
  return "";
}

/// The value's name that stands there, as `%12` or `%0#1`.
static StringRef valueAt(StringRef text, Location location) {
  auto at = location->findInstanceOf<FileLineColLoc>();
  if (!at)
    return {};
  for (unsigned line = 1; line < at.getLine(); ++line)
    text = text.split('\n').second;
  StringRef rest = text.split('\n').first.substr(at.getColumn() - 1);
  if (!rest.starts_with("%"))
    return {};
  return rest.take_while([](char c) {
    return llvm::isAlnum(c) || StringRef("%$._-#").contains(c);
  });
}

Faults::Faults(MLIRContext *context, StringRef text)
    : context(context), text(text),
      printedOp(context->shouldPrintOpOnDiagnostic()),
      handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        add(diagnostic);
        return success();
      }) {
  // The file and line say where it is.
  context->printOpOnDiagnostic(false);
}

void Faults::add(Diagnostic &diagnostic) {
  std::string place = placeOf(diagnostic.getLocation());
  std::string message = diagnostic.str();
  // MLIR's own words, and notes, are for who writes dialects.
  StringRef rest = message;
  bool isUnknown = rest.consume_front("Dialect `") &&
                   rest.contains("' not found for custom op");
  if (isUnknown) {
    StringRef name = rest.split("custom op ").second.split(' ').first;
    // 'axl.program', as `axrun --dump-after` prints it.
    StringRef why = name.starts_with("'axl.")
                        ? "this is what a plan becomes on a rank, for axopt-opt"
                        : "the plan is damaged or cut off";
    message = ("there is no operation " + name + ": " + why).str();
  }
  // The place is looked for in the text: of what is shown alone.
  if (message == "use of undeclared SSA value name" && count < maxShown)
    if (StringRef name = valueAt(text, diagnostic.getLocation()); !name.empty())
      message = (name + " is used here, and nothing makes it").str();
  // MLIR says which op has failed after the op has said why.
  StringRef op = message;
  if (op.consume_back("op failed to infer returned types") && !texts.empty() &&
      StringRef(texts.back()).starts_with(place)) {
    texts.back().insert(place.size(), op.str() + "op ");
    return;
  }
  if (++count > maxShown)
    return;
  texts.push_back(place + shorten(message, maxLetters));
  for (Diagnostic &note : diagnostic.getNotes())
    if (!isUnknown)
      texts.back() += "\n  " + shorten(note.str(), maxLetters);
}

Faults::~Faults() { context->printOpOnDiagnostic(printedOp); }

llvm::Error Faults::take() {
  if (!any())
    return llvm::Error::success();
  if (count > maxShown)
    texts.push_back("and " + std::to_string(count - maxShown) + " more faults");
  return makeError(ExitCode::BadPlan, llvm::join(texts, "\n"));
}

} // namespace ax::plan
