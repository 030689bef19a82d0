//===- Files.cpp - Files that a plan is made of ---------------------------===//

#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace mlir;

namespace ax::plan {

std::string modelFolder(PlanOp plan, llvm::StringRef planPath) {
  llvm::SmallString<256> folder(llvm::sys::path::parent_path(planPath));
  if (auto named = plan->getAttrOfType<StringAttr>("ax.model_dir")) {
    if (llvm::sys::path::is_absolute(named.getValue()))
      return named.str();
    llvm::sys::path::append(folder, named.getValue());
  }
  return folder.empty() ? "." : folder.str().str();
}

/// Whether `folder` has the files of all states, and each is the one that the
/// plan was made from.
static bool hasModel(PlanOp plan, const std::string &folder) {
  auto known = plan->getAttrOfType<DictionaryAttr>("ax.files");
  std::set<StringRef> names;
  for (auto state : plan.getBody().getOps<StateOp>())
    if (!state.getFile().empty())
      names.insert(state.getFile());
  return llvm::all_of(names, [&](StringRef name) {
    auto wanted = known ? known.getAs<StringAttr>(name) : StringAttr();
    if (!wanted || !findEscape(folder, name).empty())
      return false;
    auto file = MappedFile::open(folder + "/" + name.str());
    if (file)
      return (*file)->fingerprint() == wanted.getValue();
    llvm::consumeError(file.takeError());
    return false;
  });
}

std::string findModelFolder(PlanOp plan, llvm::StringRef planPath) {
  std::string named = modelFolder(plan, planPath);
  llvm::StringRef parent = llvm::sys::path::parent_path(planPath);
  std::string own = parent.empty() ? "." : parent.str();
  return !hasModel(plan, named) && hasModel(plan, own) ? own : named;
}

llvm::Error checkModelFolder(PlanOp plan, llvm::StringRef planPath) {
  std::string folder = modelFolder(plan, planPath);
  llvm::StringRef parent = llvm::sys::path::parent_path(planPath);
  llvm::SmallString<256> there, own;
  // What is not there cannot be read.
  if (llvm::sys::fs::real_path(folder, there) ||
      llvm::sys::fs::real_path(parent.empty() ? "." : parent, own))
    return llvm::Error::success();
  llvm::StringRef rest = there;
  bool isBelow = rest.consume_front(own) &&
                 (rest.empty() || rest.front() == '/' || own == "/");
  auto files = plan->getAttrOfType<DictionaryAttr>("ax.files");
  for (auto state : plan.getBody().getOps<StateOp>()) {
    auto known =
        files ? files.getAs<StringAttr>(state.getFile()) : StringAttr();
    if (isBelow || state.getFile().empty() || (known && !known.empty()))
      continue;
    return makeErrorf(ExitCode::BadPlan,
                      "{0}: state @{1} is in '{2}', outside of the plan's "
                      "folder, and the plan has no fingerprint (ax.files) of "
                      "'{3}': give --model-dir if that folder is meant",
                      planPath, state.getSymName(), folder, state.getFile());
  }
  return llvm::Error::success();
}

std::vector<std::string> filesOf(PlanOp plan, llvm::StringRef planPath,
                                 llvm::StringRef folder) {
  std::set<std::string> names;
  if (auto files = plan->getAttrOfType<DictionaryAttr>("ax.files"))
    for (NamedAttribute file : files)
      names.insert(file.getName().str());
  for (auto state : plan.getBody().getOps<StateOp>())
    if (!state.getFile().empty())
      names.insert(state.getFile().str());
  std::vector<std::string> paths{planPath.str()};
  if (std::string constants = constantsFile(plan, planPath); !constants.empty())
    paths.push_back(constants);
  for (const std::string &name : names)
    paths.push_back((folder + "/" + name).str());
  return paths;
}

} // namespace ax::plan
