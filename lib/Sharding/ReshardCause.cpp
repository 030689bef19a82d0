//===- ReshardCause.cpp - Why something is resharded ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands behind `because` in a plan: "k of h.0.mlp.c_proj is split
// (--tp=4)". It is found from the result of propagation, not noted on the way,
// which changes its mind: of a sum that is reduced, the factor that was summed
// over; of a split that is undone or made, the factor that wants it so.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

namespace ax::sharding::detail {

namespace {

std::string splitText(State &state, int op, size_t factor) {
  const GraphOp &graphOp = state.graph.ops[op];
  const Split &split = state.factors[op][factor];
  std::string text = factor < graphOp.factorNames.size()
                         ? graphOp.factorNames[factor]
                         : std::string();
  text = text.empty() ? graphOp.name + " is split"
                      : text + " of " + graphOp.name + " is split";
  if (split.cause >= 0)
    text += " (" + state.causes[split.cause] + ")";
  return text;
}

/// The op whose split reduction a partial sum over `axes` comes from: backwards
/// through the ops that passed it on, along an operand that is partial as it
/// was made rather than one that was made partial to meet it (a bias).
std::string partialCause(State &state, int tensor, AxesId axes) {
  auto overlaps = [&](LayoutId layout) {
    return state.table.overlap(state.table[layout].partial, axes);
  };
  for (;;) {
    const Use &producer = state.producers[tensor];
    if (producer.op < 0)
      return "";
    const GraphOp &op = state.graph.ops[producer.op];
    for (size_t f = 0; f < op.rule.factors.size(); ++f)
      if (op.rule.factors[f].kind == FactorKind::Reduction &&
          state.table.overlap(
              state.table.axesOf(state.factors[producer.op][f].dim), axes))
        return splitText(state, producer.op, f);
    int carrier = -1;
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (overlaps(state.wanted({producer.op, static_cast<int>(i)}))) {
        const Use &next = state.producers[op.operands[i]];
        if (carrier < 0 || (next.op >= 0 && overlaps(state.given(next))))
          carrier = op.operands[i];
      }
    if (carrier < 0)
      return "";
    tensor = carrier;
  }
}

/// The first factor of `op` that splits something over `axes`.
std::string factorCause(State &state, int op, AxesId axes) {
  for (size_t f = 0; op >= 0 && f < state.factors[op].size(); ++f)
    if (state.table.overlap(state.table.axesOf(state.factors[op][f].dim), axes))
      return splitText(state, op, f);
  return "";
}

} // namespace

std::string causeOf(State &state, const Reshard &reshard) {
  SubAxes reduced = withoutAxes(reshard.from.partial, reshard.to.partial);
  if (!reduced.empty()) {
    std::string text =
        partialCause(state, reshard.tensor, state.table.add(reduced));
    if (!text.empty())
      return text;
  }
  SubAxes before, after;
  for (size_t d = 0; d < reshard.from.dims.size(); ++d) {
    if (reshard.from.dims[d] == reshard.to.dims[d])
      continue;
    for (const SubAxis &axis : reshard.from.dims[d].axes())
      before.push_back(axis);
    for (const SubAxis &axis : reshard.to.dims[d].axes())
      after.push_back(axis);
  }
  // Who wants it otherwise: the consumer's split, else a pin of the tensor,
  // else the producer's split.
  for (const SubAxes &axes : {after, before}) {
    if (axes.empty())
      continue;
    for (const Use &use : reshard.uses) {
      std::string text = factorCause(state, use.op, state.table.add(axes));
      if (!text.empty())
        return text;
    }
  }
  int producer = state.producers[reshard.tensor].op;
  // Programs' operands have names of their own, and so have states.
  std::string name = state.graph.tensors[reshard.tensor].name;
  if (name.empty() && producer >= 0)
    name = "what " + state.graph.ops[producer].name + " gives";
  for (const Split &split : state.dims[reshard.tensor])
    if (split.pinned && split.cause >= 0)
      return name + " is pinned (" + state.causes[split.cause] + ")";
  std::string text = factorCause(state, producer, state.table.add(before));
  if (!text.empty())
    return text;
  return name + " is used in two layouts";
}

} // namespace ax::sharding::detail
