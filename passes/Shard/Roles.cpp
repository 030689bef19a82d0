//===- Roles.cpp - Two-colouring of feature dimensions --------------------===//
#include "Roles.h"

#include <numeric>

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

Roles::Roles(const ShardGraph &graph, ArrayRef<WeightOp> weightOps) {
  int nodes = 0;
  for (const GraphTensor &tensor : graph.graph.tensors) {
    firstNode.push_back(nodes);
    nodes += tensor.shape.size();
  }
  colourParent.resize(nodes);
  std::iota(colourParent.begin(), colourParent.end(), 0);
  segmentParent = colourParent;
  flipsToParent.assign(nodes, 0);

  llvm::DenseMap<int, const WeightOp *> weightOf;
  for (const WeightOp &weight : weightOps)
    weightOf[weight.op] = &weight;

  auto isValue = [&](int tensor) {
    TensorRole role = graph.graph.tensors[tensor].role;
    return role == TensorRole::Value || role == TensorRole::Input;
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp &op = graph.graph.ops[i];
    const WeightOp *weight = weightOf.lookup(i);
    // For each factor, one dimension seen so far that has it.
    std::vector<int> seen(op.rule.factors.size(), -1);
    auto visit = [&](int tensor, const TensorMap &map) {
      if (!isValue(tensor))
        return;
      for (size_t dim = 0; dim < map.size(); ++dim)
        for (int factor : map[dim]) {
          int at = node(tensor, dim);
          if (seen[factor] < 0)
            seen[factor] = at;
          else if (relate(seen[factor], at, false))
            segmentParent[findSegment(at)] = findSegment(seen[factor]);
        }
    };
    for (size_t o = 0; o < op.operands.size(); ++o)
      if (!weight || static_cast<int>(o) != weight->weight)
        visit(op.operands[o], op.rule.operands[o]);
    for (size_t r = 0; r < op.results.size(); ++r)
      visit(op.results[r], op.rule.results[r]);
    if (weight && seen[weight->k] >= 0 && seen[weight->n] >= 0)
      relate(seen[weight->k], seen[weight->n], true);
    // A dimension cut or joined where no factor fits is still the same kind of
    // dimension.
    if (isa<SliceOp, PadOp, ConcatOp>(graph.ops[i]))
      for (size_t dim = 0; dim < op.rule.results[0].size(); ++dim)
        for (int operand : op.operands)
          if (isValue(operand) &&
              op.rule.operands[0].size() == op.rule.results[0].size() &&
              graph.graph.tensors[operand].shape.size() ==
                  op.rule.results[0].size())
            if (relate(node(operand, dim), node(op.results[0], dim), false))
              segmentParent[findSegment(node(operand, dim))] =
                  findSegment(node(op.results[0], dim));
  }

  // Anchors: attention heads go over col, what embeddings give over row, and
  // else the first contraction sums over row.
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (isa<AttentionOp>(graph.ops[i]))
      setRole(node(graph.graph.ops[i].results[0], 1), Role::Col);
  for (bool embeddings : {true, false})
    for (const WeightOp &weight : weightOps) {
      if (embeddings != (weight.x < 0))
        continue;
      const GraphOp &op = graph.graph.ops[weight.op];
      int dim = dimOfFactor(op.rule.results[0], weight.n);
      setRole(node(op.results[0], dim), embeddings ? Role::Row : Role::Col);
    }
}

int Roles::findColour(int n, bool &flips) {
  while (colourParent[n] != n) {
    flips ^= flipsToParent[n];
    n = colourParent[n];
  }
  return n;
}

int Roles::findSegment(int n) {
  while (segmentParent[n] != n)
    n = segmentParent[n] = segmentParent[segmentParent[n]];
  return n;
}

bool Roles::relate(int a, int b, bool flipped) {
  bool flips = flipped;
  int rootA = findColour(a, flips), rootB = findColour(b, flips);
  if (rootA == rootB)
    return !flips;
  // The earlier node stays root, so paths stay short in program order.
  if (rootA > rootB)
    std::swap(rootA, rootB);
  colourParent[rootB] = rootA;
  flipsToParent[rootB] = flips;
  return true;
}

void Roles::setRole(int n, Role role) {
  bool flips = false;
  int root = findColour(n, flips);
  rootRole.try_emplace(root, flips ? opposite(role) : role);
}

Role Roles::role(int tensor, int dim) {
  bool flips = false;
  int root = findColour(node(tensor, dim), flips);
  auto it = rootRole.find(root);
  Role role = it == rootRole.end() ? Role::Row : it->second;
  return flips ? opposite(role) : role;
}

int Roles::segment(int tensor, int dim) {
  return findSegment(node(tensor, dim));
}
