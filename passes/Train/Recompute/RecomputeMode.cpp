//===- RecomputeMode.cpp - What to compute again, as it is written --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Training.h"
#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/GlobPattern.h"

using namespace ax;

/// `2GiB`, `1.5 GB`, `500MB`, `4096`.
static std::optional<int64_t> parseBytes(llvm::StringRef text) {
  size_t end = text.find_first_not_of("0123456789.");
  std::optional<double> number = parseNumber(text.take_front(end));
  double unit = llvm::StringSwitch<double>(end == llvm::StringRef::npos
                                               ? ""
                                               : text.drop_front(end).trim())
                    .Cases({"", "B"}, 1)
                    .Cases({"kB", "KB"}, 1e3)
                    .Case("MB", 1e6)
                    .Case("GB", 1e9)
                    .Case("KiB", 1 << 10)
                    .Case("MiB", 1 << 20)
                    .Case("GiB", 1 << 30)
                    .Default(0);
  double bytes = number.value_or(0) * unit;
  if (!(bytes >= 1 && bytes < 1e18))
    return std::nullopt;
  return static_cast<int64_t>(bytes);
}

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
                       "give a size, as budget:2GiB or budget:500MB (units: B, "
                       "kB, MB, GB, KiB, MiB, GiB)");
    mode.budget = *bytes;
  }
  if (mode.kind == Matching)
    if (auto glob = llvm::GlobPattern::create(text); !glob)
      return makeError(ExitCode::Usage, llvm::toString(glob.takeError()));
  return mode;
}
