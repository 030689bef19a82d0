//===- Roles.cpp - Two-colouring of feature dimensions --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example, a block of a transformer:
//
//   a = attention(linear(x))  z = x + linear(a)  h = linear(z)  y = z +
//   linear(h)
//
// Heads go over col. The k of the Linear behind them is that of the heads, so
// its n goes over row; the addition relates that to x, and so x, z and y go
// over row, and the hidden dimension of h, one flip away from z, over col.
// Every Linear then finds its input as it wants it: nothing is exchanged but
// sums.
//
// Two structures of union-find hold what is known. *Colours* join dimensions
// with the parity of flips between them, a bit on each edge, so that a relation
// that contradicts the others is found when it is added. *Segments* join only
// dimensions without a flip in between: they are what can be turned alone, at
// the price of exchanges at the weights around them.
//
// The order counts, as what is joined first holds: the forward pass before
// weights, so that dimensions that an addition meets never part, then weights,
// then the backward pass, which follows: what it says against the others is not
// heard.
//
//===----------------------------------------------------------------------===//
#include "Roles.h"

#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

namespace {
/// An exchange takes as long as one of so many elements more.
constexpr double latencyElements = 4096;
/// Exchanging an element takes as long as so many operations.
constexpr double elementFlops = 32;
} // namespace

Roles::Roles(const ShardGraph &graph, ArrayRef<WeightOp> weightOps,
             const Mesh &mesh)
    : graph(graph), rowParts(mesh.axisSize(meshAxis::row)),
      colParts(mesh.axisSize(meshAxis::col)) {
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
  // Weights flip what the rest of the forward pass has joined; the backward
  // pass follows.
  auto isForward = [&](int op) {
    return markedAction(graph.ops[op]) == Action::Forward;
  };
  int numOps = graph.ops.size();
  for (int op = 0; op < numOps; ++op)
    if (isForward(op))
      joinDims(op, weightOf.lookup(op));
  llvm::DenseSet<int> odd;
  for (const WeightOp &weight : weightOps)
    if (weight.x >= 0 &&
        !relate(inputNode(weight), outputNode(weight), /*flipped=*/true))
      odd.insert(outputNode(weight));
  for (int op = 0; op < numOps; ++op)
    if (!isForward(op))
      joinDims(op, nullptr);

  // Anchors: attention heads and groups of convolutions go over col, what
  // embeddings give over row, and else the first contraction sums over row. Up
  // to here colours are relative; the first anchor of a component says which is
  // which, and later ones find that it is said.
  llvm::DenseSet<int> fixed;
  auto anchor = [&](int n, Role role) {
    setRole(n, role);
    fixed.insert(findSegment(n));
  };
  // Behind an odd number of flips (a Linear that merges patches) the colour is
  // the other one, and little would be split.
  auto goesOverCol = [&](int n) {
    setRole(n, Role::Col);
    if (roleOfNode(n) == Role::Col)
      return;
    turn(findSegment(n));
    odd.insert(n);
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    bool isAttention = isa<AttentionOp>(graph.ops[i]);
    if (!isAttention && !contractsInGroups(graph.ops[i]))
      continue;
    int n = node(graph.graph.ops[i].results[0], 1);
    goesOverCol(n);
    // Groups stay there unless that is dearer.
    if (isAttention)
      fixed.insert(findSegment(n));
    else
      groupElements[findSegment(n)] += graph.graph.ops[i].flops / elementFlops;
  }
  for (bool embeddings : {true, false})
    for (const WeightOp &weight : weightOps) {
      if (embeddings != (weight.x < 0))
        continue;
      if (embeddings)
        anchor(outputNode(weight), Role::Row);
      else
        setRole(outputNode(weight), Role::Col);
    }
  improve(weightOps, odd, fixed);
}

/// Joins the dimensions that an op, beside its weight, relates: those with one
/// factor of its rule. E.g. an addition's rule has the factor d in the last
/// dimension of both operands and of the result, so these three have one role.
void Roles::joinDims(int i, const WeightOp *weight) {
  const GraphOp &op = graph.graph.ops[i];
  auto isValue = [&](int tensor) {
    TensorRole role = graph.graph.tensors[tensor].role;
    return role == TensorRole::Value || role == TensorRole::Input;
  };
  auto join = [&](int a, int b) {
    if (relate(a, b, /*flipped=*/false))
      segmentParent[findSegment(b)] = findSegment(a);
  };
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
        else
          join(seen[factor], at);
      }
  };
  for (size_t o = 0; o < op.operands.size(); ++o)
    if (!weight || static_cast<int>(o) != weight->weight)
      visit(op.operands[o], op.rule.operands[o]);
  for (size_t r = 0; r < op.results.size(); ++r)
    visit(op.results[r], op.rule.results[r]);
  // A dimension cut or joined where no factor fits is still the same kind of
  // dimension.
  size_t rank = op.rule.results.empty() ? 0 : op.rule.results[0].size();
  if (isa<SliceOp, PadOp, ConcatOp>(graph.ops[i]) &&
      op.rule.operands[0].size() == rank)
    for (size_t dim = 0; dim < rank; ++dim)
      for (int operand : op.operands)
        if (isValue(operand) &&
            graph.graph.tensors[operand].shape.size() == rank)
          join(node(op.results[0], dim), node(operand, dim));
}

double Roles::elements(int tensor) const {
  double result = 1;
  for (int64_t size : graph.graph.tensors[tensor].shape)
    result *= size;
  return result;
}

int Roles::inputNode(const WeightOp &weight) const {
  const GraphOp &op = graph.graph.ops[weight.op];
  return node(op.operands[weight.x],
              dimOfFactor(op.rule.operands[weight.x], weight.k));
}

int Roles::outputNode(const WeightOp &weight) const {
  const GraphOp &op = graph.graph.ops[weight.op];
  return node(op.results[0], dimOfFactor(op.rule.results[0], weight.n));
}

/// Turns segments of the components where some relation in `odd` is broken, as
/// long as that makes the exchanges cheaper (iterated conditional modes, Besag
/// 1986). Those of `fixed` stay.
///
/// E.g. y = x + conv(conv(conv(x))): three flips lead from x to y, and the
/// addition says none. One of the convolutions has to find both of its sides
/// over one role, and pay for it; which is cheapest depends on how large the
/// values between them are. Where nothing is broken, all is as each weight
/// wants it.
///
/// It ends, since each turn that is kept lowers the sum of all costs: a
/// segment's own weights are all that its turn changes. What it finds is a
/// local optimum.
void Roles::improve(ArrayRef<WeightOp> weightOps,
                    const llvm::DenseSet<int> &odd,
                    const llvm::DenseSet<int> &fixed) {
  auto colour = [&](int n) {
    bool flips = false;
    return findColour(n, flips);
  };
  llvm::DenseSet<int> components;
  for (int n : odd)
    components.insert(colour(n));
  llvm::MapVector<int, llvm::SetVector<const WeightOp *>> weightsOf;
  for (const WeightOp &weight : weightOps)
    if (weight.x >= 0 && components.contains(colour(outputNode(weight))))
      for (int n : {inputNode(weight), outputNode(weight)})
        if (int segment = findSegment(n); !fixed.contains(segment))
          weightsOf[segment].insert(&weight);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[segment, weights] : weightsOf) {
      auto cost = [&, segment = segment, &weights = weights] {
        double result = 0;
        for (const WeightOp *weight : weights)
          result += sides(*weight).elements;
        return result +
               groupElements.lookup(segment) / parts(roleOfNode(segment));
      };
      double before = cost();
      turn(segment);
      if (cost() < before)
        changed = true;
      else
        turn(segment);
    }
  }
}

void Roles::turn(int segment) {
  if (!turned.erase(segment))
    turned.insert(segment);
}

/// What reduce-scatter or all-gather of `elements` over `parts` exchanges; an
/// all-reduce is two.
double Roles::exchange(double parts, double elements) {
  return parts > 1 ? (parts - 1) / parts * elements + latencyElements : 0;
}

/// E.g. an output of 1000 elements, on row x col = 4 x 2: with k over row and n
/// over col, parts of 1000 / 2 are all-reduced over 4 ranks. If both are to be
/// over row, the sum is made so, too, but scattered over row and then gathered
/// over col; or the input is gathered over row, and its k is split over col.
WeightSides Roles::sides(const WeightOp &weight) {
  Role n = roleOfNode(outputNode(weight));
  if (weight.x < 0)
    return {opposite(n), n, 0};
  Role k = roleOfNode(inputNode(weight));
  const GraphOp &op = graph.graph.ops[weight.op];
  double input = elements(op.operands[weight.x]);
  double output = elements(op.results[0]);
  double p = parts(k), q = parts(opposite(k));
  if (k != n)
    return {k, n, 2 * exchange(p, output / q)};
  // Both ask for the same axes. Either the output is resharded, or the input.
  WeightSides sum{k, opposite(n),
                  exchange(p, output / q) + exchange(q, output / p)};
  WeightSides gathered{opposite(k), n,
                       exchange(p, input / q) + 2 * exchange(q, output / p)};
  return gathered.elements < sum.elements ? gathered : sum;
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

/// `flips` becomes the parity on the way from a to b by way of their roots: of
/// one component, that is whether the new relation is broken; of two, what the
/// edge between the roots has to say so that it holds.
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

/// Does nothing where the component has its role: the first anchor holds.
void Roles::setRole(int n, Role role) {
  bool flips = false;
  int root = findColour(n, flips);
  rootRole.try_emplace(root, flips ? opposite(role) : role);
}

Role Roles::roleOfNode(int n) {
  bool flips = turned.contains(findSegment(n));
  int root = findColour(n, flips);
  auto it = rootRole.find(root);
  Role role = it == rootRole.end() ? Role::Row : it->second;
  return flips ? opposite(role) : role;
}

Role Roles::role(int tensor, int dim) { return roleOfNode(node(tensor, dim)); }

int Roles::segment(int tensor, int dim) {
  return findSegment(node(tensor, dim));
}
