//===- MatchedNodes.cpp - The nodes of what is replaced -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MatchedNodes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;

/// No pattern takes so many.
static constexpr size_t maxOps = 64;

/// Whether `op`, or what it is made of, is made of `input`.
static bool leadsFrom(Value input, Operation *op,
                      llvm::SmallDenseMap<Operation *, bool> &known) {
  auto [it, isNew] = known.try_emplace(op, false);
  if (!isNew || known.size() > maxOps)
    return it->second;
  bool found = false;
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    found |= operand == input || (maker && leadsFrom(input, maker, known));
  }
  return known[op] = found;
}

void ax::mergeMatched(Operation *root, Value input) {
  llvm::SmallDenseMap<Operation *, bool> known;
  if (Operation *maker = input.getDefiningOp())
    known[maker] = false;
  leadsFrom(input, root, known);
  SetVector<Operation *> ops;
  ops.insert(root);
  SmallVector<Location> locations;
  for (size_t i = 0; i < ops.size(); ++i) {
    locations.push_back(ops[i]->getLoc());
    for (Value operand : ops[i]->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && known.lookup(maker))
        ops.insert(maker);
  }
  root->setLoc(FusedLoc::get(root->getContext(), locations));
}
