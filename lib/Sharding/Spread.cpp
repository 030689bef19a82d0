//===- Spread.cpp - Pins flow through the graph ---------------------------===//
//
// Rounds of two halves: every op takes what its tensors offer, then every
// tensor what its ops offer. Each half reads only what the other wrote, so the
// order of visits does not matter. Splits only ever grow.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ax::sharding::detail {

namespace {

struct Offer {
  int target = 0; // factor or dimension
  Split split;
  /// Larger first.
  int side = 0;
  double weight = 0;
};

void sortOffers(std::vector<Offer> &offers, const LayoutTable &table) {
  std::stable_sort(offers.begin(), offers.end(),
                   [&](const Offer &a, const Offer &b) {
                     auto key = [](const Offer &o) {
                       return std::tuple(-static_cast<int>(o.split.level),
                                         -o.side, -o.weight, o.target);
                     };
                     if (key(a) != key(b))
                       return key(a) < key(b);
                     return a.split.dim != b.split.dim &&
                            table[a.split.dim].rank < table[b.split.dim].rank;
                   });
}

class Spreader {
public:
  explicit Spreader(State &state)
      : state(state), graph(state.graph), table(state.table),
        opIsTouched(graph.ops.size()), tensorIsTouched(graph.tensors.size()) {
    for (const GraphTensor &tensor : graph.tensors) {
      double bytes = static_cast<double>(tensor.elementBytes.whole);
      for (int64_t size : tensor.shape)
        bytes *= static_cast<double>(size);
      tensorBytes.push_back(bytes);
    }
  }

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
  void offerDims(int tensor, const TensorMap &map,
                 const std::vector<SizesId> &sizes, PinLevel least);
  void offerFactors(int op, const TensorMap &map, int side, PinLevel least);
  bool tellOp(int op, PinLevel least);
  bool tellTensor(int tensor, PinLevel least);

  State &state;
  const Graph &graph;
  LayoutTable &table;
  std::vector<double> tensorBytes;
  std::vector<Offer> offers;
  std::vector<DimId> parts;
  /// What the last half changed.
  std::vector<int> touchedOps, touchedTensors;
  /// What the next half visits.
  std::vector<bool> opIsTouched, tensorIsTouched;
};

/// What a tensor's dimensions say about an op's factors.
void Spreader::offerDims(int tensor, const TensorMap &map,
                         const std::vector<SizesId> &sizes, PinLevel least) {
  for (size_t d = 0; d < map.size(); ++d) {
    const Split &split = state.dims[tensor][d];
    if (!table.isSplit(split.dim) || split.level < least || !split.spreads)
      continue;
    const std::vector<DimId> *parts = table.divide(split.dim, sizes[d]);
    for (size_t i = 0; parts && i < map[d].size(); ++i) {
      if (!table.isSplit((*parts)[i]))
        continue;
      Offer offer{map[d][i], split, 0, tensorBytes[tensor]};
      offer.split.dim = (*parts)[i];
      offers.push_back(offer);
    }
  }
}

/// What an op's factors say about the dimensions of one of its tensors.
void Spreader::offerFactors(int op, const TensorMap &map, int side,
                            PinLevel least) {
  for (size_t d = 0; d < map.size(); ++d) {
    Split split{};
    parts.clear();
    bool first = true;
    for (int factor : map[d]) {
      const Split &from = state.factors[op][factor];
      bool counts = from.level >= least && table.isSplit(from.dim);
      parts.push_back(counts ? from.dim : table.whole(from.dim));
      if (counts && first) {
        split.level = from.level;
        split.cause = from.cause;
        first = false;
      }
    }
    if (first)
      continue;
    split.dim = table.compose(parts);
    offers.push_back({static_cast<int>(d), split, side, graph.ops[op].flops});
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
  AxesId others = state.axesOfOthers(op, offer.target);
  DimId dim = offer.split.dim;
  if (current.waits())
    others =
        table.concat(others, table.without(table.axesOf(dim),
                                           table.axesOf(*current.ifUntold)));
  AxesId taken = table.common(table.axesOf(dim), others);
  if (taken != LayoutTable::noAxes) {
    std::optional<DimId> rest = table.unsplit(dim, taken);
    if (!rest || !table.isSplit(*rest))
      return false;
    dim = *rest;
  }
  if (dim == current.dim || !table.refines(dim, current.dim))
    return false;
  const Split before = current;
  if (!current.pinned) {
    current.level = offer.split.level;
    current.cause = offer.split.cause;
  }
  current.dim = dim;
  if (state.canHave(op, state.factors[op]))
    return true;
  current = before;
  return false;
}

bool Spreader::takeDim(int tensor, const Offer &offer) {
  Split &current = state.dims[tensor][offer.target];
  if (current.closed || offer.split.dim == current.dim ||
      !table.refines(offer.split.dim, current.dim))
    return false;
  for (size_t d = 0; d < state.dims[tensor].size(); ++d)
    if (static_cast<int>(d) != offer.target &&
        table.overlap(table.axesOf(state.dims[tensor][d].dim),
                      table.axesOf(offer.split.dim)))
      return false;
  if (!current.pinned) {
    current.level = offer.split.level;
    current.cause = offer.split.cause;
  }
  current.dim = offer.split.dim;
  return true;
}

/// True when the op has taken something.
bool Spreader::tellOp(int op, PinLevel least) {
  const GraphOp &graphOp = graph.ops[op];
  const RuleEntry &rule = *state.rules[op];
  offers.clear();
  for (size_t i = 0; i < graphOp.operands.size(); ++i)
    offerDims(graphOp.operands[i], graphOp.rule.operands[i],
              rule.operandSizes[i], least);
  for (size_t i = 0; i < graphOp.results.size(); ++i)
    offerDims(graphOp.results[i], graphOp.rule.results[i], rule.resultSizes[i],
              least);
  sortOffers(offers, table);
  bool changed = false;
  for (const Offer &offer : offers)
    changed |= takeFactor(op, offer);
  return changed;
}

/// True when the tensor has taken something.
bool Spreader::tellTensor(int tensor, PinLevel least) {
  const Use &producer = state.producers[tensor];
  offers.clear();
  if (producer.op >= 0)
    offerFactors(producer.op,
                 graph.ops[producer.op].rule.results[producer.operand], 1,
                 least);
  for (const Use &use : state.uses[tensor])
    if (use.op >= 0)
      offerFactors(use.op, graph.ops[use.op].rule.operands[use.operand], 0,
                   least);
  sortOffers(offers, table);
  bool changed = false;
  for (const Offer &offer : offers)
    changed |= takeDim(tensor, offer);
  return changed;
}

bool Spreader::opHalf(PinLevel least, OpClass upTo) {
  std::vector<int> visits;
  auto visit = [&](int op) {
    if (op >= 0 && !opIsTouched[op] && graph.ops[op].opClass <= upTo) {
      opIsTouched[op] = true;
      visits.push_back(op);
    }
  };
  for (int tensor : touchedTensors) {
    visit(state.producers[tensor].op);
    for (const Use &use : state.uses[tensor])
      visit(use.op);
  }
  touchedOps.clear();
  for (int op : visits) {
    opIsTouched[op] = false;
    if (tellOp(op, least))
      touchedOps.push_back(op);
  }
  return !touchedOps.empty();
}

bool Spreader::tensorHalf(PinLevel least) {
  std::vector<int> visits;
  auto visit = [&](int tensor) {
    // Consumers of what comes from outside do not tell one another.
    if (!tensorIsTouched[tensor] &&
        graph.tensors[tensor].role == TensorRole::Value) {
      tensorIsTouched[tensor] = true;
      visits.push_back(tensor);
    }
  };
  for (int op : touchedOps) {
    for (int tensor : graph.ops[op].operands)
      visit(tensor);
    for (int tensor : graph.ops[op].results)
      visit(tensor);
  }
  touchedTensors.clear();
  for (int tensor : visits) {
    tensorIsTouched[tensor] = false;
    if (tellTensor(tensor, least))
      touchedTensors.push_back(tensor);
  }
  return !touchedTensors.empty();
}

/// Of the pins whose place no neighbour told, those of the smallest factors
/// take their own: what a slice or concat connects them with is a multiple of
/// them, and follows (a fused gate and up the layer after them: 2 * n{col}).
bool Spreader::placeUntold() {
  int64_t smallest = 0;
  std::vector<Split *> untold;
  for (int op : state.order)
    for (Split &split : state.factors[op]) {
      if (!split.waits() || split.elseWhole || table.isSplit(split.dim))
        continue;
      int64_t size = table[*split.ifUntold].value.size();
      if (untold.empty() || size < smallest) {
        smallest = size;
        untold.clear();
      }
      if (size == smallest)
        untold.push_back(&split);
    }
  for (Split *split : untold)
    split->dim = *split->ifUntold;
  return !untold.empty();
}

void Spreader::toFixedPoint(PinLevel least, OpClass upTo) {
  touchedOps = state.order;
  tensorHalf(least);
  touchedTensors.resize(graph.tensors.size());
  std::iota(touchedTensors.begin(), touchedTensors.end(), 0);
  while (opHalf(least, upTo) && tensorHalf(least))
    ;
}

} // namespace

void spread(State &state) { Spreader(state).run(); }

} // namespace ax::sharding::detail
