//===- RecomputeMode.cpp - What to compute again, as it is written --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Training.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/GlobPattern.h"

using namespace ax;

llvm::Expected<RecomputeMode> RecomputeMode::parse(llvm::StringRef text) {
  if (text.empty())
    return makeError(ExitCode::Usage, "give none, selective, full, budget:SIZE "
                                      "or a pattern of nodes' names");
  RecomputeMode mode;
  mode.text = text.str();
  mode.kind = llvm::StringSwitch<Kind>(text)
                  .Case("none", None)
                  .Case("selective", Selective)
                  .Case("full", Full)
                  .StartsWith("budget:", Budget)
                  .Default(Matching);
  if (mode.kind == Budget) {
    std::optional<int64_t> bytes = parseBytes(text.split(':').second);
    if (!bytes)
      return makeError(ExitCode::Usage,
                       llvm::Twine("give a size, as budget:2GiB or "
                                   "budget:500MB (units: ") +
                           byteUnits + ")");
    mode.budget = *bytes;
  }
  if (mode.kind == Matching)
    if (auto glob = llvm::GlobPattern::create(text); !glob)
      return makeError(ExitCode::Usage, llvm::toString(glob.takeError()));
  return mode;
}
