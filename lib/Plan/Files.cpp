//===- Files.cpp - Files that a plan is made of ---------------------------===//

#include "ax/Plan/Plan.h"

#include "llvm/ADT/SmallString.h"
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
  for (const std::string &name : names)
    paths.push_back((folder + "/" + name).str());
  return paths;
}

} // namespace ax::plan
