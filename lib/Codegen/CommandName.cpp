//===- CommandName.cpp - What commands are called -------------------------===//
#include "CommandName.h"

using namespace mlir;

namespace ax::codegen {

std::string nameOf(Operation *op) {
  StringRef node = getNodeName(op);
  return (node.empty() ? op->getName().stripDialect() : node).str();
}
std::string nameOf(FusionOp fusion) {
  std::string kinds;
  StringRef node;
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    if (isa<ConstantOp, ReshapeOp, BroadcastOp>(op))
      continue;
    StringRef kind = op.getName().stripDialect();
    if (auto unary = dyn_cast<UnaryOp>(op))
      kind = stringifyUnaryKind(unary.getKind());
    else if (auto binary = dyn_cast<BinaryOp>(op))
      kind = stringifyBinaryKind(binary.getKind());
    if (kinds.size() < 40)
      kinds += (kinds.empty() ? "" : "+") + kind.str();
    if (!getNodeName(&op).empty())
      node = getNodeName(&op);
  }
  return node.empty() ? kinds : node.str() + ": " + kinds;
}

} // namespace ax::codegen
