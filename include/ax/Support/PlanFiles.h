//===- PlanFiles.h - Files that a plan's states come from -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_PLANFILES_H
#define AX_SUPPORT_PLANFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace ax {

/// The end of the name of a compiled plan's file: what is code says so.
inline constexpr llvm::StringLiteral compiledPlanEnding = ".axc";

/// What a plan says of the files that its states come from.
struct PlanFiles {
  /// `ax.model_dir`: their folder, itself relative to the plan's own; empty:
  /// that.
  std::string folder;
  /// `ax.files`: what they are known by (MappedFile::fingerprint).
  std::map<std::string, std::string> fingerprints;
  /// The file that each state comes from.
  std::map<std::string, std::string> ofStates;

  /// That folder.
  std::string named(llvm::StringRef planPath) const;

  /// Where the files are now: that folder, or the plan's own when they are not
  /// (all) there, but here, each as the plan knows it.
  std::string find(llvm::StringRef planPath) const;

  /// A BadPlan error when that folder is neither the plan's own nor below it,
  /// and there is a file in it that the plan would read without knowing what is
  /// in it: of which it has no fingerprint. So nobody's file is read because a
  /// plan names it.
  llvm::Error check(llvm::StringRef planPath) const;

  /// All of them, in the folder.
  std::vector<std::string> paths(llvm::StringRef inFolder) const;
};

} // namespace ax

#endif // AX_SUPPORT_PLANFILES_H
