//===- CommandName.cpp - What commands are called -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CommandName.h"

#include "Kernels/Staying.h"
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

/// Of a result in place that keeps old elements, how many are new is known to
/// the run alone. It is taken to be as many as what they are made of has: of a
/// cache the rows that are appended. If that is constants, all of them are.
static int64_t bytesWritten(Value result, const Staying &staying) {
  int64_t bytes = 0;
  for (BlockArgument argument : operandsOfNew(staying))
    bytes += bytesRead(argument);
  int64_t whole = byteSizeOf(result);
  return bytes > 0 ? std::min(whole, bytes) : whole;
}

static int64_t bytesMoved(FusionOp fusion) {
  int64_t bytes = 0;
  llvm::SmallDenseSet<Value> unread;
  for (auto [i, result] : llvm::enumerate(fusion.getResults())) {
    std::optional<Staying> staying = findStaying(fusion, i);
    bytes += staying ? bytesWritten(result, *staying) : byteSizeOf(result);
    if (staying)
      unread.insert(staying->old);
  }
  for (BlockArgument argument : fusion.getBody().getArguments())
    if (!unread.contains(argument))
      bytes += bytesRead(argument);
  return bytes;
}

int64_t bytesMoved(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return bytesMoved(fusion);
  int64_t bytes = 0;
  for (Value operand : op->getOperands())
    bytes += byteSizeOf(operand);
  for (Value result : op->getResults())
    bytes += byteSizeOf(result);
  return bytes;
}

} // namespace ax::codegen
