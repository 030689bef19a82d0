//===- FoldedWeights.cpp - Weights that are constants of a plan -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Interpreter/FoldedWeights.h"

#include "ax/Support/GivenWeights.h"

using namespace mlir;
using namespace ax;

bool ax::mayBeWeight(DType type) {
  switch (type) {
  case DType::I64:
  case DType::U32:
  case DType::U64:
  case DType::Bool:
    return false;
  default:
    return true;
  }
}

void ax::addFolded(PlanOp plan, StringRef name, const HostTensor &tensor) {
  if (name.empty() || !mayBeWeight(tensor.getType()))
    return;
  NamedAttrList folded(plan->getAttrOfType<DictionaryAttr>(kFolded));
  folded.set(name, StringAttr::get(plan.getContext(), fingerprintOf(tensor)));
  plan->setAttr(kFolded, folded.getDictionary(plan.getContext()));
}

void ax::addFoldedParameters(PlanOp plan, std::set<std::string> names) {
  for (StringRef name : foldedParametersOf(plan))
    names.insert(name.str());
  auto folded = plan->getAttrOfType<DictionaryAttr>(kFolded);
  SmallVector<StringRef> kept;
  for (const std::string &name : names)
    if (folded && folded.contains(name))
      kept.push_back(name);
  if (!kept.empty())
    plan->setAttr(kFoldedParameters,
                  Builder(plan.getContext()).getStrArrayAttr(kept));
}

SmallVector<StringRef> ax::foldedParametersOf(PlanOp plan) {
  SmallVector<StringRef> names;
  if (auto list = plan->getAttrOfType<ArrayAttr>(kFoldedParameters))
    llvm::append_range(names, list.getAsValueRange<StringAttr>());
  return names;
}
