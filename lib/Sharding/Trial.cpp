//===- Trial.cpp - Changes of assignments, weighed ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Trial.h"

#include <algorithm>
#include <utility>

namespace ax::sharding::detail {

Trial::Trial(State &state)
    : state(state), graph(state.graph), movesOf(graph.ops.size()),
      places(graph.ops.size(), -1), readIn(graph.ops.size()) {
  for (size_t op = 0; op < graph.ops.size(); ++op)
    secondsOfOp.push_back(state.opSeconds(static_cast<int>(op)));
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    secondsOfTree.push_back(treeSeconds(state, static_cast<int>(t)));
}

void Trial::beginReading() {
  ++numLists;
  read.clear();
}

void Trial::readOp(int op) {
  if (op < 0 || readIn[op] == numLists)
    return;
  readIn[op] = numLists;
  read.push_back(op);
}

void Trial::readTensor(int tensor) {
  readOp(state.producers[tensor].op);
  for (const Use &use : state.uses[tensor])
    readOp(use.op);
}

/// Sums that an op does not pass any more are reduced before it; all are
/// decided anew in the end.
void Trial::change(int op, std::vector<Split> factors, const Passing *passing) {
  places[op] = static_cast<int>(saved.size());
  saved.push_back({op, std::exchange(state.factors[op], std::move(factors)),
                   state.passing[op], state.layouts[op]});
  if (passing)
    state.passing[op] = *passing;
  if (state.splitsOver(op, state.passing[op].axes))
    state.passing[op] = {};
  state.updateLayouts(op);
  readOp(op);
}

/// Leaves in `saved` what it takes back.
void Trial::takeBack() {
  for (Saved &entry : saved) {
    std::swap(state.factors[entry.op], entry.factors);
    std::swap(state.passing[entry.op], entry.passing);
    state.layouts[entry.op] = entry.layouts;
    places[entry.op] = -1;
  }
}

void Trial::undo() {
  takeBack();
  saved.clear();
}

/// Tensors that the changed ops lay out otherwise than before, in order.
const std::vector<int> &Trial::changedTensors() {
  tensorsOfMove.clear();
  for (const Saved &entry : saved) {
    const GraphOp &op = graph.ops[entry.op];
    const OpLayouts &before = *entry.layouts, &now = *state.layouts[entry.op];
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (before.operands[i] != now.operands[i])
        tensorsOfMove.push_back(op.operands[i]);
    for (size_t i = 0; i < op.results.size(); ++i)
      if (before.results[i] != now.results[i])
        tensorsOfMove.push_back(op.results[i]);
  }
  std::sort(tensorsOfMove.begin(), tensorsOfMove.end());
  tensorsOfMove.erase(std::unique(tensorsOfMove.begin(), tensorsOfMove.end()),
                      tensorsOfMove.end());
  return tensorsOfMove;
}

/// The gain is summed over the same tensors before and after, and over ops in
/// the order of their numbers, so that it does not depend on the order of
/// changes.
void Trial::weigh(Move &best) {
  ++numWeighed;
  opsOfMove.clear();
  for (const Saved &entry : saved)
    opsOfMove.emplace_back(entry.op, places[entry.op]);
  std::sort(opsOfMove.begin(), opsOfMove.end());
  double gain = 0;
  for (auto [changed, place] : opsOfMove)
    gain -= state.opSeconds(changed);
  for (int t : changedTensors()) {
    readTensor(t);
    gain += secondsOfTree[t] - treeSeconds(state, t);
  }
  takeBack();
  for (auto [changed, place] : opsOfMove)
    gain += secondsOfOp[changed];
  if (gain > best.gain + leastGain) {
    best.gain = gain;
    best.changes.clear();
    for (auto [changed, place] : opsOfMove)
      best.changes.push_back(
          {changed, std::move(saved[place].factors), saved[place].passing});
  }
  saved.clear();
}

void Trial::make(const Move &move) {
  ++numMoves;
  for (const auto &[op, factors, passing] : move.changes) {
    change(op, factors, &passing);
    movesOf[op] = numMoves;
    secondsOfOp[op] = state.opSeconds(op);
  }
  for (int t : changedTensors())
    secondsOfTree[t] = treeSeconds(state, t);
  for (const Saved &entry : saved)
    places[entry.op] = -1;
  saved.clear();
}

} // namespace ax::sharding::detail
