//===- Spread.cpp - Pins flow through the graph ---------------------------===//
//
// Rounds of two halves: every op takes what its tensors offer, then every
// tensor what its ops offer. Each half reads only what the other wrote, so the
// order of visits does not matter. Splits only ever grow.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <tuple>

namespace ax::sharding::detail {

bool refines(const DimLayout &finer, const DimLayout &coarser) {
  if (finer == coarser || !coarser.isSplit())
    return true;
  SubAxes extra = withoutAxes(finer.axes(), coarser.axes());
  if (numParts(extra) * numParts(coarser.axes()) != numParts(finer.axes()))
    return false;
  std::optional<DimLayout> without = unsplit(finer, extra);
  return without && *without == coarser;
}

namespace {

struct Offer {
  int target = 0; // factor or dimension
  Split split;
  /// Larger first.
  int side = 0;
  double weight = 0;

  /// Sub-axes as numbers in mesh order, for ties.
  std::vector<int64_t> rank(const Mesh &mesh) const {
    std::vector<int64_t> result;
    const std::vector<Axis> &axes = mesh.getAxes();
    for (const Factor &factor : split.dim.factors) {
      result.push_back(factor.size);
      for (const SubAxis &sub : factor.axes) {
        for (size_t i = 0; i < axes.size(); ++i)
          if (axes[i].name == sub.axis)
            result.push_back(static_cast<int64_t>(i));
        result.push_back(sub.pre);
        result.push_back(sub.size);
      }
    }
    return result;
  }
};

void sortOffers(std::vector<Offer> &offers, const Mesh &mesh) {
  std::stable_sort(offers.begin(), offers.end(),
                   [&](const Offer &a, const Offer &b) {
                     auto key = [](const Offer &o) {
                       return std::tuple(-static_cast<int>(o.split.level),
                                         -o.side, -o.weight, o.target);
                     };
                     if (key(a) != key(b))
                       return key(a) < key(b);
                     return a.rank(mesh) < b.rank(mesh);
                   });
}

class Spreader {
public:
  explicit Spreader(State &state)
      : state(state), graph(state.graph), opTouched(graph.ops.size(), true),
        tensorTouched(graph.tensors.size(), true) {}

  void run() {
    runStages();
    while (placeUntold())
      runStages();
  }

private:
  void runStages() {
    for (PinLevel level : {PinLevel::User, PinLevel::Recipe})
      for (OpClass upTo :
           {OpClass::Elementwise, OpClass::Reduction, OpClass::Broadcast})
        toFixedPoint(level, upTo);
  }
  bool placeUntold();
  void toFixedPoint(PinLevel least, OpClass upTo);
  bool opHalf(PinLevel least, OpClass upTo);
  bool tensorHalf(PinLevel least);
  bool takeFactor(int op, const Offer &offer);
  bool takeDim(int tensor, const Offer &offer);
  void offerDims(int tensor, const TensorMap &map, const Rule &rule,
                 PinLevel least, std::vector<Offer> &offers);
  void offerFactors(int op, const TensorMap &map, int side, PinLevel least,
                    std::vector<Offer> &offers);

  State &state;
  const Graph &graph;
  std::vector<bool> opTouched, tensorTouched;
};

/// What a tensor's dimensions say about an op's factors.
void Spreader::offerDims(int tensor, const TensorMap &map, const Rule &rule,
                         PinLevel least, std::vector<Offer> &offers) {
  double bytes = static_cast<double>(graph.tensors[tensor].elementBytes.whole);
  for (int64_t size : graph.tensors[tensor].shape)
    bytes *= static_cast<double>(size);
  for (size_t d = 0; d < map.size(); ++d) {
    const Split &split = state.dims[tensor][d];
    if (!split.dim.isSplit() || split.level < least || !split.spreads)
      continue;
    std::vector<int64_t> sizes;
    for (int factor : map[d])
      sizes.push_back(rule.factors[factor].size);
    auto parts = divide(split.dim, sizes);
    for (size_t i = 0; parts && i < map[d].size(); ++i) {
      if (!(*parts)[i].isSplit())
        continue;
      Offer offer{map[d][i], split, 0, bytes};
      offer.split.dim = (*parts)[i];
      offers.push_back(std::move(offer));
    }
  }
}

/// What an op's factors say about the dimensions of one of its tensors.
void Spreader::offerFactors(int op, const TensorMap &map, int side,
                            PinLevel least, std::vector<Offer> &offers) {
  for (size_t d = 0; d < map.size(); ++d) {
    Split split;
    std::vector<DimLayout> parts;
    bool first = true;
    for (int factor : map[d]) {
      const Split &from = state.factors[op][factor];
      bool counts = from.level >= least && from.dim.isSplit();
      parts.push_back(counts ? from.dim : DimLayout::whole(from.dim.size()));
      if (counts && first) {
        split.level = from.level;
        split.cause = from.cause;
        first = false;
      }
    }
    if (first)
      continue;
    split.dim = compose(parts);
    offers.push_back(
        {static_cast<int>(d), std::move(split), side, graph.ops[op].flops});
  }
}

bool Spreader::takeFactor(int op, const Offer &offer) {
  Split &current = state.factors[op][offer.target];
  FactorKind kind = graph.ops[op].rule.factors[offer.target].kind;
  if (current.closed || kind == FactorKind::Whole ||
      kind == FactorKind::Permutation || offer.split.dim == current.dim)
    return false;
  // Axes that other factors of the op have stay with them, and a pin may
  // allow no others.
  SubAxes others = state.axesOfOthers(op, offer.target);
  DimLayout dim = offer.split.dim;
  if (current.waits())
    for (const SubAxis &axis : withoutAxes(dim.axes(), current.ifUntold.axes()))
      others.push_back(axis);
  SubAxes all = dim.axes();
  SubAxes taken = withoutAxes(all, withoutAxes(all, others));
  if (!taken.empty()) {
    std::optional<DimLayout> rest = unsplit(dim, taken);
    if (!rest || !rest->isSplit())
      return false;
    dim = *rest;
  }
  if (dim == current.dim || !refines(dim, current.dim))
    return false;
  std::vector<Split> changed = state.factors[op];
  Split &target = changed[offer.target];
  if (!target.pinned) {
    target.level = offer.split.level;
    target.cause = offer.split.cause;
  }
  target.dim = dim;
  if (findFactorsFault(state, op, changed))
    return false;
  state.factors[op] = std::move(changed);
  return true;
}

bool Spreader::takeDim(int tensor, const Offer &offer) {
  Split &current = state.dims[tensor][offer.target];
  if (current.closed || offer.split.dim == current.dim ||
      !refines(offer.split.dim, current.dim))
    return false;
  for (size_t d = 0; d < state.dims[tensor].size(); ++d)
    if (static_cast<int>(d) != offer.target &&
        overlap(state.dims[tensor][d].dim.axes(), offer.split.dim.axes()))
      return false;
  if (!current.pinned) {
    current.level = offer.split.level;
    current.cause = offer.split.cause;
  }
  current.dim = offer.split.dim;
  return true;
}

bool Spreader::opHalf(PinLevel least, OpClass upTo) {
  bool changed = false;
  for (int op : state.order) {
    const GraphOp &graphOp = graph.ops[op];
    if (graphOp.opClass > upTo)
      continue;
    auto touched = [&](int tensor) { return tensorTouched[tensor]; };
    if (std::none_of(graphOp.operands.begin(), graphOp.operands.end(),
                     touched) &&
        std::none_of(graphOp.results.begin(), graphOp.results.end(), touched))
      continue;
    std::vector<Offer> offers;
    for (size_t i = 0; i < graphOp.operands.size(); ++i)
      offerDims(graphOp.operands[i], graphOp.rule.operands[i], graphOp.rule,
                least, offers);
    for (size_t i = 0; i < graphOp.results.size(); ++i)
      offerDims(graphOp.results[i], graphOp.rule.results[i], graphOp.rule,
                least, offers);
    sortOffers(offers, state.mesh);
    for (const Offer &offer : offers)
      if (takeFactor(op, offer))
        opTouched[op] = changed = true;
  }
  return changed;
}

bool Spreader::tensorHalf(PinLevel least) {
  bool changed = false;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    // Consumers of what comes from outside do not tell one another.
    if (graph.tensors[t].role != TensorRole::Value)
      continue;
    const Use &producer = state.producers[t];
    bool touched = producer.op >= 0 && opTouched[producer.op];
    for (const Use &use : state.uses[t])
      touched |= use.op >= 0 && opTouched[use.op];
    if (!touched)
      continue;
    std::vector<Offer> offers;
    if (producer.op >= 0)
      offerFactors(producer.op,
                   graph.ops[producer.op].rule.results[producer.operand], 1,
                   least, offers);
    for (const Use &use : state.uses[t])
      if (use.op >= 0)
        offerFactors(use.op, graph.ops[use.op].rule.operands[use.operand], 0,
                     least, offers);
    sortOffers(offers, state.mesh);
    for (const Offer &offer : offers)
      if (takeDim(static_cast<int>(t), offer))
        tensorTouched[t] = changed = true;
  }
  return changed;
}

/// Of the pins whose place no neighbour told, those of the smallest factors
/// take their own: what a slice or concat connects them with is a multiple of
/// them, and follows (a fused gate and up the layer after them: 2 * n{col}).
bool Spreader::placeUntold() {
  int64_t smallest = 0;
  std::vector<Split *> untold;
  for (int op : state.order)
    for (Split &split : state.factors[op]) {
      if (!split.waits() || split.elseWhole || split.dim.isSplit())
        continue;
      int64_t size = split.ifUntold.size();
      if (untold.empty() || size < smallest) {
        smallest = size;
        untold.clear();
      }
      if (size == smallest)
        untold.push_back(&split);
    }
  for (Split *split : untold)
    split->dim = split->ifUntold;
  return !untold.empty();
}

void Spreader::toFixedPoint(PinLevel least, OpClass upTo) {
  std::fill(opTouched.begin(), opTouched.end(), true);
  tensorHalf(least);
  std::fill(tensorTouched.begin(), tensorTouched.end(), true);
  for (;;) {
    std::fill(opTouched.begin(), opTouched.end(), false);
    if (!opHalf(least, upTo))
      return;
    std::fill(tensorTouched.begin(), tensorTouched.end(), false);
    if (!tensorHalf(least))
      return;
  }
}

} // namespace

void spread(State &state) { Spreader(state).run(); }

} // namespace ax::sharding::detail
