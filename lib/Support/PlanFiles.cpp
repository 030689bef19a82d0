//===- PlanFiles.cpp - Files that a plan's states come from ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/PlanFiles.h"

#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace ax;

static std::string ownFolder(llvm::StringRef planPath) {
  llvm::StringRef parent = llvm::sys::path::parent_path(planPath);
  return parent.empty() ? "." : parent.str();
}

std::string PlanFiles::named(llvm::StringRef planPath) const {
  if (llvm::sys::path::is_absolute(folder))
    return folder;
  llvm::SmallString<256> path(llvm::sys::path::parent_path(planPath));
  if (!folder.empty())
    llvm::sys::path::append(path, folder);
  return path.empty() ? "." : path.str().str();
}

/// Whether the folder has the files of all states, and each is the one that the
/// plan was made from.
static bool hasModel(const PlanFiles &files, const std::string &folder) {
  std::set<std::string> names;
  for (const auto &[state, file] : files.ofStates)
    names.insert(file);
  return llvm::all_of(names, [&](const std::string &name) {
    auto wanted = files.fingerprints.find(name);
    if (wanted == files.fingerprints.end() || !findEscape(folder, name).empty())
      return false;
    auto file = MappedFile::open(folder + "/" + name);
    if (file)
      return (*file)->fingerprint() == wanted->second;
    llvm::consumeError(file.takeError());
    return false;
  });
}

std::string PlanFiles::find(llvm::StringRef planPath) const {
  std::string there = named(planPath), own = ownFolder(planPath);
  return !hasModel(*this, there) && hasModel(*this, own) ? own : there;
}

llvm::Error PlanFiles::check(llvm::StringRef planPath) const {
  std::string path = named(planPath);
  llvm::SmallString<256> there, own;
  // What is not there cannot be read.
  if (llvm::sys::fs::real_path(path, there) ||
      llvm::sys::fs::real_path(ownFolder(planPath), own))
    return llvm::Error::success();
  llvm::StringRef rest = there;
  bool isBelow = rest.consume_front(own) &&
                 (rest.empty() || rest.front() == '/' || own == "/");
  for (const auto &[state, file] : ofStates) {
    auto known = fingerprints.find(file);
    if (isBelow || (known != fingerprints.end() && !known->second.empty()))
      continue;
    return makeErrorf(ExitCode::BadPlan,
                      "{0}: state @{1} is in '{2}', outside of the plan's "
                      "folder, and the plan has no fingerprint (ax.files) of "
                      "'{3}': give --model-dir if that folder is meant",
                      planPath, state, path, file);
  }
  return llvm::Error::success();
}

std::vector<std::string> PlanFiles::paths(llvm::StringRef inFolder) const {
  std::set<std::string> names;
  for (const auto &[name, fingerprint] : fingerprints)
    names.insert(name);
  for (const auto &[state, name] : ofStates)
    names.insert(name);
  std::vector<std::string> paths;
  for (const std::string &name : names)
    paths.push_back((inFolder + "/" + name).str());
  return paths;
}
