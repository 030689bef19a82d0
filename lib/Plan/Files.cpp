//===- Files.cpp - Files that a plan is made of ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Dialect/PlanAttrs.h"
#include "ax/Plan/Plan.h"

using namespace mlir;

namespace ax::plan {

PlanFiles filesOf(PlanOp plan) {
  PlanFiles files;
  if (auto folder = plan->getAttrOfType<StringAttr>(kModelDir))
    files.folder = folder.str();
  if (auto known = plan->getAttrOfType<DictionaryAttr>(kFiles))
    for (NamedAttribute file : known)
      if (auto fingerprint = dyn_cast<StringAttr>(file.getValue()))
        files.fingerprints[file.getName().str()] = fingerprint.str();
  for (auto state : plan.getBody().getOps<StateOp>())
    if (!state.getFile().empty())
      files.ofStates[state.getSymName().str()] = state.getFile().str();
  return files;
}

std::vector<std::string> pathsOf(PlanOp plan, llvm::StringRef planPath,
                                 llvm::StringRef folder) {
  std::vector<std::string> paths{planPath.str()};
  if (std::string constants = constantsFile(plan, planPath); !constants.empty())
    paths.push_back(constants);
  for (std::string &path : filesOf(plan).paths(folder))
    paths.push_back(std::move(path));
  return paths;
}

} // namespace ax::plan
