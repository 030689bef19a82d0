//===- Spread.cpp - Pins flow through the graph ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounds of two halves: every op takes what its tensors offer, then every
// tensor what its ops offer. Each half reads only what the other wrote, so the
// order of visits does not matter.
//
// It ends: a split is only ever replaced by one that refines it, whose parts
// are a multiple of its own and no more than the mesh has places, and a round
// that changes nothing is the last of its stage. What was taken too early would
// stay, so stages go from what is most certain to what is least: splits that
// users asked for before all others, those that are asked for weakly behind all
// others, and within these ops that only pass splits on before those that sum
// over one, and these before those that make dimensions of their own.
//
// Whoever would be told what it was told before, and took nothing then, is not
// visited: a round visits neighbours of what the one before changed, and a new
// stage those that something has changed for since their last visit.
//
// An example: a Linear whose factor n is pinned to {col}, a Relu behind it, and
// a Linear behind that. The first Linear offers {col} to the dimension of its
// result, which takes it; the Relu's factor takes it from there, and the Relu's
// result from the Relu. In the stage of contractions the second Linear's factor
// k, over which it sums, takes it, too, and its result becomes a partial sum,
// which PartialSums and ReshardTree deal with. Had a pin said {row} for that k,
// it would have kept this, and the tensor between would be resharded.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <tuple>

namespace ax::sharding::detail {

namespace {

/// What a neighbour says: this factor (of an op) or dimension (of a tensor) is
/// split so.
struct Offer {
  int target = 0; // factor or dimension
  Split split;
  /// Offers with a larger side come first.
  int side = 0;
  double weight = 0;
};

/// The order in which offers are looked at, which decides where two exclude
/// each other: the stronger pin, what a tensor's producer says (`side`), the
/// larger (a tensor's bytes, an op's FLOPs), the first factor, the axes that
/// the mesh has first. None of these is a number of a visit, or of a name.
/// Mostly they are few, and put in their places one by one: the library's sort
/// takes memory for each call.
void sortOffers(std::vector<Offer> &offers, const LayoutTable &table) {
  auto isBefore = [&](const Offer &a, const Offer &b) {
    auto key = [](const Offer &o) {
      return std::tuple(-static_cast<int>(o.split.level), -o.side, -o.weight,
                        o.target);
    };
    if (key(a) != key(b))
      return key(a) < key(b);
    return a.split.dim != b.split.dim &&
           table[a.split.dim].rank < table[b.split.dim].rank;
  };
  constexpr size_t few = 16;
  if (offers.size() > few) {
    std::stable_sort(offers.begin(), offers.end(), isBefore);
    return;
  }
  for (auto at = offers.begin(); at != offers.end(); ++at)
    std::rotate(std::upper_bound(offers.begin(), at, *at, isBefore), at,
                std::next(at));
}

class Spreader {
public:
  explicit Spreader(State &state)
      : state(state), graph(state.graph), table(state.table),
        opIsVisited(graph.ops.size()), tensorIsVisited(graph.tensors.size()) {
    for (const GraphTensor &tensor : graph.tensors) {
      double bytes = static_cast<double>(tensor.elementBytes.whole);
      for (int64_t size : tensor.shape)
        bytes *= static_cast<double>(size);
      tensorBytes.push_back(bytes);
    }
  }

  /// Each time that something is placed, what follows from it spreads before
  /// the next is. It ends, as each pin is placed once.
  void run() {
    do {
      runStages(PinLevel::User);
      runStages(PinLevel::Recipe);
    } while (placeUntold());
    runStages(PinLevel::Weak);
  }

private:
  void runStages(PinLevel level) {
    // What nobody has cannot be offered.
    if (level != PinLevel::Recipe && !state.hasPins[static_cast<size_t>(level)])
      return;
    if (level != pendingLevel) {
      pendingLevel = level;
      opIsPending.assign(graph.ops.size(), true);
      tensorIsPending.assign(graph.tensors.size(), true);
    }
    for (OpClass upTo :
         {OpClass::Elementwise, OpClass::Reduction, OpClass::Broadcast})
      toFixedPoint(level, upTo);
  }
  bool placeUntold();
  void toFixedPoint(PinLevel least, OpClass upTo);
  bool tellOps(const std::vector<int> &ops, PinLevel least);
  bool tellTensors(const std::vector<int> &tensors, PinLevel least);
  std::vector<int> opsToTell(OpClass upTo);
  std::vector<int> tensorsToTell();
  void noteChangedOp(int op);
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
  std::vector<bool> opIsVisited, tensorIsVisited;
  /// What would perhaps take something of what it is offered at this level.
  std::optional<PinLevel> pendingLevel;
  std::vector<bool> opIsPending, tensorIsPending;
};

/// What a tensor's dimensions say about an op's factors. A dimension of 192
/// that is `3 * 64{col}` says to a reshape with the factors 3, 4 and 16 that
/// the 4 are split: 3 and 16 get no offer. One of 192{col}, 48 on each of 4
/// ranks, cannot be divided into 3, 4 and 16 at all, and says nothing.
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

/// What an op's factors say about the dimensions of one of its tensors: the
/// inverse. The first factor that is split gives the reason for all of them.
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

/// A factor takes an offer that refines what it has, without axes that other
/// factors of the op have (the first to be told keeps them; pins were there
/// before all), if the op can be split so.
bool Spreader::takeFactor(int op, const Offer &offer) {
  Split &current = state.factors[op][offer.target];
  if (current.closed || offer.split.dim == current.dim ||
      graph.ops[op].rule.factors[offer.target].kind == FactorKind::Whole)
    return false;
  // Axes that other factors of the op have stay with them, and a pin may
  // allow no others. What is left of the offer is taken: of {data, col} for a
  // dimension of samples {data}, where col splits the features.
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
  // A pinned factor that is split further (an open pin, reserved axes) keeps
  // its own reason.
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

/// A dimension takes an offer as a whole or not at all: less than an op offers
/// would tell the op's other neighbours of a layout that nobody has.
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

/// Shows the op what all of its tensors say, at this level of pins or above.
/// True when it has taken something.
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

/// Shows the tensor what its producer and its users say. True when it has taken
/// something.
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

/// What an op refused before may fit beside what it has taken now, and its
/// tensors have not heard of that.
void Spreader::noteChangedOp(int op) {
  opIsPending[op] = true;
  for (auto *tensors : {&graph.ops[op].operands, &graph.ops[op].results})
    for (int tensor : *tensors)
      tensorIsPending[tensor] = true;
}

/// The half of a round in which ops read tensors. Changes are noted after all
/// have read, so that no op sees what another one did in the same half.
bool Spreader::tellOps(const std::vector<int> &ops, PinLevel least) {
  touchedOps.clear();
  for (int op : ops) {
    opIsPending[op] = false;
    if (tellOp(op, least))
      touchedOps.push_back(op);
  }
  for (int op : touchedOps)
    noteChangedOp(op);
  return !touchedOps.empty();
}

/// The other half: tensors read ops.
bool Spreader::tellTensors(const std::vector<int> &tensors, PinLevel least) {
  touchedTensors.clear();
  for (int tensor : tensors) {
    tensorIsPending[tensor] = false;
    if (tellTensor(tensor, least))
      touchedTensors.push_back(tensor);
  }
  for (int tensor : touchedTensors) {
    tensorIsPending[tensor] = true;
    if (int op = state.producers[tensor].op; op >= 0)
      opIsPending[op] = true;
    for (const Use &use : state.uses[tensor])
      if (use.op >= 0)
        opIsPending[use.op] = true;
  }
  return !touchedTensors.empty();
}

/// Neighbours of the tensors that the last half changed.
std::vector<int> Spreader::opsToTell(OpClass upTo) {
  std::vector<int> visits;
  auto visit = [&](int op) {
    if (op >= 0 && !opIsVisited[op] && graph.ops[op].rule.opClass <= upTo) {
      opIsVisited[op] = true;
      visits.push_back(op);
    }
  };
  for (int tensor : touchedTensors) {
    visit(state.producers[tensor].op);
    for (const Use &use : state.uses[tensor])
      visit(use.op);
  }
  for (int op : visits)
    opIsVisited[op] = false;
  return visits;
}

/// Neighbours of the ops that the last half changed. Consumers of what comes
/// from outside do not tell one another.
std::vector<int> Spreader::tensorsToTell() {
  std::vector<int> visits;
  for (int op : touchedOps)
    for (auto *tensors : {&graph.ops[op].operands, &graph.ops[op].results})
      for (int tensor : *tensors)
        if (!tensorIsVisited[tensor] &&
            graph.tensors[tensor].role == TensorRole::Value) {
          tensorIsVisited[tensor] = true;
          visits.push_back(tensor);
        }
  for (int tensor : visits)
    tensorIsVisited[tensor] = false;
  return visits;
}

/// Places pins whose place no neighbour told. Those of the smallest factors
/// take their own: what a slice or concat connects them with is a multiple of
/// them, and follows (a fused gate and up the layer after them: 2 * n{col}).
bool Spreader::placeUntold() {
  int64_t smallest = 0;
  std::vector<std::pair<int, Split *>> untold;
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
        untold.emplace_back(op, &split);
    }
  for (auto [op, split] : untold) {
    split->dim = *split->ifUntold;
    noteChangedOp(op);
  }
  return !untold.empty();
}

/// Rounds until one changes nothing, among ops of these classes and pins of
/// this level. Begins with what may have something to take at all.
void Spreader::toFixedPoint(PinLevel least, OpClass upTo) {
  std::vector<int> visits;
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (tensorIsPending[t] && graph.tensors[t].role == TensorRole::Value)
      visits.push_back(static_cast<int>(t));
  tellTensors(visits, least);
  visits.clear();
  for (int op : state.order)
    if (opIsPending[op] && graph.ops[op].rule.opClass <= upTo)
      visits.push_back(op);
  while (tellOps(visits, least) && tellTensors(tensorsToTell(), least))
    visits = opsToTell(upTo);
}

} // namespace

void spread(State &state) { Spreader(state).run(); }

} // namespace ax::sharding::detail
