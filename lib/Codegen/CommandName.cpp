//===- CommandName.cpp - What commands are called -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CommandName.h"

#include "StageBuffers.h"
#include "ax/Local/Local.h"

using namespace mlir;

namespace ax::codegen {

std::string nameOf(Operation *op) {
  StringRef node = getNodeName(op);
  if (auto library = dyn_cast<LibraryOp>(op); library && node.empty())
    op = library.getCore();
  return (node.empty() ? op->getName().stripDialect() : node).str();
}

/// What only arranges is not what a kernel is for.
static bool isComputation(Operation &op) {
  return !isa<ConstantOp, ReshapeOp, BroadcastOp>(op);
}

std::string kindsOf(FusionOp fusion) {
  std::string kinds;
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    if (!isComputation(op))
      continue;
    StringRef kind = op.getName().stripDialect();
    if (auto unary = dyn_cast<UnaryOp>(op))
      kind = stringifyUnaryKind(unary.getKind());
    else if (auto binary = dyn_cast<BinaryOp>(op))
      kind = stringifyBinaryKind(binary.getKind());
    if (kinds.size() < 40)
      kinds += (kinds.empty() ? "" : "+") + kind.str();
  }
  return kinds;
}

std::string nameOf(FusionOp fusion) {
  std::vector<std::string> nodes = nodesOf(fusion);
  return nodes.empty() ? kindsOf(fusion)
                       : nodes.back() + ": " + kindsOf(fusion);
}

std::vector<std::string> nodesOf(Operation *op) {
  SmallVector<StringRef> nodes;
  if (auto fusion = dyn_cast<FusionOp>(op)) {
    for (Operation &inner : fusion.getBody().front().without_terminator())
      if (isComputation(inner))
        for (StringRef node : getMergedNodes(&inner))
          if (!llvm::is_contained(nodes, node))
            nodes.push_back(node);
  } else {
    nodes = getMergedNodes(op);
  }
  return {nodes.begin(), nodes.end()};
}

/// What a kernel takes of an operand.
static int64_t bytesRead(Value inside) {
  int64_t whole = byteSizeOf(inside), taken = 0;
  for (OpOperand &use : inside.getUses()) {
    Operation *user = use.getOwner();
    if (use.getOperandNumber() != 0 ||
        !isa<GatherOp, SliceOp, DynamicSliceOp>(user))
      return whole;
    taken += byteSizeOf(user->getResult(0));
  }
  return std::min(whole, taken);
}

int64_t bytesMoved(Operation *op) {
  int64_t bytes = 0;
  if (auto fusion = dyn_cast<FusionOp>(op)) {
    for (BlockArgument argument : fusion.getBody().getArguments())
      bytes += bytesRead(argument);
  } else {
    for (Value operand : op->getOperands())
      bytes += byteSizeOf(operand);
  }
  for (Value result : op->getResults())
    bytes += byteSizeOf(result);
  return bytes;
}

} // namespace ax::codegen
