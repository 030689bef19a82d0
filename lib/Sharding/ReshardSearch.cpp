//===- ReshardSearch.cpp - Shortest paths over layouts --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A* over layouts: Hart, Nilsson, Raphael, A formal basis for the heuristic
// determination of minimum cost paths, 1968. Layouts are nodes, and collectives
// are edges.
//
// Only axes whose role differs between the two ends move, cut into pieces that
// both ends agree on ("atoms"), and only dimensions that differ are touched:
// mostly one or two atoms and dimensions, so the graph is small. An axis that
// both ends use alike never moves, even if a detour over it were cheaper.
//
// The estimate of what is left to pay never exceeds it (it is admissible): when
// the target comes up as the node of the lowest estimate, no path is cheaper.
// It may fall by more than a step costs (it is not consistent): a layout that
// was left is visited again when it is reached more cheaply.
//
// For that the cost function must not fall when a payload grows; must not price
// one gather (or reduce-scatter) over several axes above several over some of
// them each; must not price an all-reduce below a reduce-scatter of the same
// payload, nor a padded all-to-all below an all-gather. One that breaks this
// still gets paths that are right, of which some are not the cheapest. Proofs,
// and an example of the inconsistency: docs/rationale/sharding.md.
//
// An example: no single step leads from `[{a}, {b}]` to `[{b}, {a}]`, where
// a = 4 and b = 2. The cheapest path has three, all-to-alls on which no block
// grows: b moves to dimension 0, `[{a, b}, {}]`; a to dimension 1, which with
// 1024 rows leaves `[4 * 256{b}, {a}]`; and b to the major end of dimension 0.
//
// It ends: a node is only taken again for a lower price, there are finitely
// many layouts, and no more than maxVisited are expanded.
//
//===----------------------------------------------------------------------===//

#include "ReshardSearch.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_set>

namespace ax::sharding::detail {

namespace {

/// What of a layout differs on the way: the touched dimensions, and the sums.
/// It is all that two nodes of one search can differ in. From `[{a}, {}, {c}]`
/// to `[{}, {a}, {c}]` a place is the first two dimensions; the third one has
/// an axis that never moves, and only counts in the size of a block.
struct Place {
  std::vector<DimId> dims;
  AxesId partial = LayoutTable::noAxes;
  ReduceKind kind = ReduceKind::Sum;

  bool isPartial() const { return partial != LayoutTable::noAxes; }
  bool operator==(const Place &o) const {
    return dims == o.dims && partial == o.partial &&
           (!isPartial() || kind == o.kind);
  }
};

/// The edge that led to a node: a step, whose layouts before and after are
/// those of the two nodes.
struct Move {
  StepKind kind = StepKind::AllReduce;
  AxesId set = LayoutTable::noAxes;
  int dim = -1, toDim = -1;
};

struct Node {
  Place place;
  /// Elements of a rank's block.
  int64_t elements = 1;
  Price price;
  /// What is left to pay is estimated as this.
  Price least;
  int parent = -1;
  Move move;
  bool done = false;
};

class Search {
public:
  Search(LayoutId from, LayoutId to, ElementBytes elementBytes,
         SearchTables tables)
      : from(tables.table[from]), to(tables.table[to]),
        elementBytes(elementBytes), table(tables.table), moves(tables.moves),
        prices(tables.prices), ids(0, Hash{*this}, Same{*this}) {}

  std::optional<std::vector<Step>> run(Price bound);

private:
  bool findAtoms();
  Place placeOf(const LayoutEntry &layout) const;
  int64_t elementsOf(const Place &place) const;
  int64_t bytesOf(const Place &place, int64_t elements) const;
  Layout layoutOf(const Place &place) const;
  AxesId unusedAt(const Place &place);
  /// The sums of `place` that the target lacks.
  AxesId reducible(const Place &place);
  void priceGathers();
  Price leastFrom(const Place &place, int64_t elements);

  void expand();
  void expandPartial();
  void expandSplit();
  void expandRenamed();
  /// Takes `next` as what the move makes of `here`: as a new node, or as a
  /// cheaper way to a known one; or drops it.
  void offer(Move move);
  const std::vector<DimId> &insertions(DimId base, size_t d, AxesId axes) {
    return moves.insertions(base, axes, target.dims[d]);
  }

  /// Over 3 atoms the searches of ResNet-50 visit 447 layouts at most, so the
  /// best path is found. Over 4 some do not end before; over 8 there are
  /// millions of layouts, of which the most promising are visited.
  static constexpr size_t maxVisited = 500;

  const LayoutEntry &from, &to;
  const ElementBytes elementBytes;
  LayoutTable &table;
  ReshardMoves &moves;
  StepPrices &prices;

  AxesId atoms = LayoutTable::noAxes;
  /// The dimensions that differ, and elements of a block in all others.
  std::vector<int> dims;
  int64_t otherElements = 1;
  Place target;
  int64_t targetElements = 1;
  /// By numbers of ranks that atoms make up: the cheapest all-gather over as
  /// many or more that ends at the target.
  std::map<int64_t, Price> gathers;
  Price bound;

  /// The nodes by their places; as a number of a node, `isNext` is none yet but
  /// `next`.
  std::vector<Node> nodes;
  static constexpr int isNext = -1;
  const Place &placeAt(int node) const {
    return node == isNext ? next : nodes[node].place;
  }
  struct Hash {
    const Search &search;
    size_t operator()(int node) const {
      const Place &place = search.placeAt(node);
      return mixHash(HashOfNumbers()(place.dims),
                     static_cast<size_t>(place.partial));
    }
  };
  struct Same {
    const Search &search;
    bool operator()(int a, int b) const {
      return search.placeAt(a) == search.placeAt(b);
    }
  };
  std::unordered_set<int, Hash, Same> ids;

  /// The estimate of a whole path, how many nodes there were when it was made
  /// (of equal ones the first comes first: the order is a fixed one), the node.
  using Entry = std::tuple<Price, size_t, int>;
  struct Later {
    bool operator()(const Entry &a, const Entry &b) const {
      if (std::get<0>(a) < std::get<0>(b) || std::get<0>(b) < std::get<0>(a))
        return std::get<0>(b) < std::get<0>(a);
      return std::get<1>(b) < std::get<1>(a);
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> queue;
  int goal = -1;

  /// What is expanded.
  int current = 0;
  Place here, next;
};

/// Finds which dimensions and axes differ. False when the search would be over
/// too many atoms, or the two ends cut an axis in ways that have no common
/// pieces (a 6-way axis into 2 * 3 and into 3 * 2): then there is no search,
/// and Resharder gathers and slices.
///
/// Atoms are the pieces of axes at whose boundaries either end cuts: if col = 4
/// splits a dimension before, and only its major half `col:(1)2` another one
/// afterwards, they are col:(1)2 and col:(2)2, each of which moves alone or
/// with the other. Mostly there are one or two. Eight of them have 255 subsets,
/// all of which are tried wherever axes can move.
bool Search::findAtoms() {
  SubAxes before, after;
  const Layout &start = from.value, &end = to.value;
  for (size_t d = 0; d < from.dims.size(); ++d) {
    if (from.dims[d] == to.dims[d]) {
      otherElements *= table[from.dims[d]].localSize;
      continue;
    }
    dims.push_back(static_cast<int>(d));
    for (auto [layout, axes] : {std::pair(&start, &before), {&end, &after}}) {
      SubAxes more = layout->dims[d].axes();
      axes->insert(axes->end(), more.begin(), more.end());
    }
  }
  // Sums that both ends have stay as they are. A sum and a maximum have nothing
  // in common, even over the same axes: one is reduced before the other is
  // made.
  bool sameKind = start.partialKind == end.partialKind;
  for (const SubAxis &axis :
       withoutAxes(start.partial, sameKind ? end.partial : SubAxes()))
    before.push_back(axis);
  for (const SubAxis &axis :
       withoutAxes(end.partial, sameKind ? start.partial : SubAxes()))
    after.push_back(axis);
  auto cutBefore = cutAxes(before, after), cutAfter = cutAxes(after, before);
  if (!cutBefore || !cutAfter)
    return false;
  SubAxes pieces = *cutBefore;
  pieces.insert(pieces.end(), cutAfter->begin(), cutAfter->end());
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  atoms = table.add(pieces);
  return pieces.size() <= 8;
}

Place Search::placeOf(const LayoutEntry &layout) const {
  Place place{{}, layout.partial, layout.value.partialKind};
  for (int d : dims)
    place.dims.push_back(layout.dims[d]);
  return place;
}

int64_t Search::elementsOf(const Place &place) const {
  int64_t elements = otherElements;
  for (DimId dim : place.dims)
    elements *= table[dim].localSize;
  return elements;
}

int64_t Search::bytesOf(const Place &place, int64_t elements) const {
  bool isAddend = place.isPartial() && place.kind == ReduceKind::Sum;
  return elements * (isAddend ? elementBytes.addend : elementBytes.whole);
}

Layout Search::layoutOf(const Place &place) const {
  Layout layout = from.value;
  for (size_t d = 0; d < dims.size(); ++d)
    layout.dims[dims[d]] = table[place.dims[d]].value;
  layout.partial = table[place.partial];
  layout.partialKind = place.kind;
  return canonicalize(std::move(layout));
}

/// Atoms that neither split a dimension nor are summed over: what a slice or a
/// permute may take up.
AxesId Search::unusedAt(const Place &place) {
  AxesId used = place.partial;
  for (DimId dim : place.dims)
    used = table.concat(used, table.axesOf(dim));
  return table.without(atoms, used);
}

AxesId Search::reducible(const Place &place) {
  return place.kind == target.kind ? table.without(place.partial, to.partial)
                                   : place.partial;
}

/// Prices an all-gather that ends at the target's block, over each set of
/// atoms. With atoms of 4, 2 and 3 ranks there are entries for 2, 3, 4, 6, 8,
/// 12 and 24.
void Search::priceGathers() {
  // The payload of a gather is what it ends with. A path's last gather may end
  // with more, as slices can follow, but never with less.
  const int64_t payload = bytesOf(target, targetElements);
  for (const Movable &movable : moves.movables(atoms, atoms)) {
    Price price = prices.price(StepKind::AllGather, movable.set, payload);
    auto [at, isNew] = gathers.try_emplace(numParts(table[movable.set]), price);
    if (!isNew)
      at->second = std::min(at->second, price);
  }
  // Over more ranks it may be cheaper: they may leave out a slow axis, or time,
  // over which no gather is possible.
  for (auto at = gathers.rbegin(); at != gathers.rend(); ++at)
    if (auto more = std::next(at); more != gathers.rend())
      more->second = std::min(more->second, at->second);
}

/// An all-gather by as much as the blocks still grow, and a reduce-scatter of
/// what is partial, when all that could be sliced before it was.
///
/// Blocks grow by gathers alone, of which one over all axes is the cheapest
/// way; the last of them ends at a block that is no smaller than the target's.
/// As parts may be uneven, growth is no product of atoms: it counts as the next
/// smaller number of ranks that is one. Sums end by reductions alone, each of
/// which takes at least a reduce-scatter of its own block; no slice on the way
/// makes that smaller than what all unused atoms make of it. No step is counted
/// twice, as none both gathers and reduces.
///
/// For example, from `[{a}, {}], partial sum {b}` to `[{}, {}]`, with a = 4:
/// the block grows 4 times, so a gather over at least 4 ranks is left, and a
/// reduce-scatter over b of the block as it is now, as no atom is unused that
/// could slice it.
Price Search::leastFrom(const Place &place, int64_t elements) {
  int64_t local = std::max<int64_t>(elements, 1);
  Price least;
  auto above = gathers.upper_bound(targetElements / local);
  if (above != gathers.begin())
    least = std::prev(above)->second;
  AxesId reduced = reducible(place);
  if (reduced != LayoutTable::noAxes) {
    int64_t slices = numParts(table[unusedAt(place)]);
    int64_t sliced = std::max<int64_t>(local / slices, 1);
    least = least + prices.leastToReduce(reduced, sliced * elementBytes.whole);
  }
  // Each step's price is rounded to picoseconds, and a path has fewer than 16
  // steps. What the sum of rounded prices can lie below the exact one is taken
  // off, or the estimate would be above what is left by these.
  constexpr int64_t rounding = 16;
  least.picoseconds = std::max<int64_t>(least.picoseconds - rounding, 0);
  return least;
}

void Search::offer(Move move) {
  const int64_t elements = elementsOf(next);
  const int64_t payload =
      std::max(bytesOf(here, nodes[current].elements), bytesOf(next, elements));
  const Price price =
      nodes[current].price + prices.price(move.kind, move.set, payload);
  auto known = ids.find(isNext);
  const bool isNew = known == ids.end();
  // A place that was left is visited again when it is reached more cheaply,
  // which happens as the estimate is not consistent. What is left to pay does
  // not depend on the way, so its estimate stays.
  if (!isNew && !(price < nodes[*known].price))
    return;
  const Price least = isNew ? leastFrom(next, elements) : nodes[*known].least;
  const Price whole = price + least;
  // The bound is a path that is known, at first gather-then-slice: what cannot
  // end as cheaply is not looked at.
  if (bound < whole)
    return;
  const int id = isNew ? static_cast<int>(nodes.size()) : *known;
  if (isNew) {
    nodes.push_back({next, elements, price, least, current, move});
    ids.insert(id);
    if (next == target)
      goal = id;
  } else {
    nodes[id].price = price;
    nodes[id].parent = current;
    nodes[id].move = move;
    nodes[id].done = false;
  }
  // A node that was there with a higher price is in the queue twice, or more
  // often: run() passes over those that come up when it is done.
  queue.push({whole, nodes.size(), id});
}

/// Reductions, with a slice at once or without, and replicated -> partial. Sums
/// that the target lacks are only reduced: making others partial never helps,
/// as they must be reduced again and no step gets cheaper by them. What the
/// target sums over becomes partial in one step, for nothing, as soon as these
/// axes split no dimension.
void Search::expandPartial() {
  for (const Movable &movable : moves.movables(reducible(here), atoms)) {
    next.partial = table.without(here.partial, movable.axes);
    if (!next.isPartial())
      next.kind = ReduceKind::Sum;
    offer({StepKind::AllReduce, movable.set});
    for (size_t d = 0; d < dims.size(); ++d) {
      for (DimId split : insertions(here.dims[d], d, movable.axes)) {
        next.dims[d] = split;
        offer({StepKind::ReduceScatter, movable.set, -1, dims[d]});
      }
      next.dims[d] = here.dims[d];
    }
    next = here;
  }
  AxesId missing = table.without(to.partial, here.partial);
  if (missing == LayoutTable::noAxes ||
      (here.isPartial() && here.kind != target.kind))
    return;
  for (DimId dim : here.dims)
    if (table.overlap(table.axesOf(dim), missing))
      return;
  next.partial = moves.unite(here.partial, missing);
  next.kind = target.kind;
  offer({StepKind::ToPartial, missing});
  next = here;
}

/// Gathers, slices, and both at once: an all-to-all takes axes out of one
/// dimension and puts them into another, or into another place of the same.
void Search::expandSplit() {
  const AxesId unused = unusedAt(here);
  for (size_t d = 0; d < dims.size(); ++d) {
    const DimId split = here.dims[d];
    for (const Movable &movable : moves.movables(table.axesOf(split), atoms)) {
      std::optional<DimId> gathered = table.unsplit(split, movable.axes);
      if (!gathered)
        continue;
      next.dims[d] = *gathered;
      offer({StepKind::AllGather, movable.set, dims[d]});
      for (size_t e = 0; e < dims.size(); ++e) {
        const DimId base = next.dims[e];
        for (DimId moved : insertions(base, e, movable.axes)) {
          next.dims[e] = moved;
          if (e != d || moved != split)
            offer({StepKind::AllToAll, movable.set, dims[d], dims[e]});
        }
        next.dims[e] = base;
      }
      next.dims[d] = split;
    }
    for (const Movable &movable : moves.movables(unused, atoms)) {
      for (DimId sliced : insertions(split, d, movable.axes)) {
        next.dims[d] = sliced;
        offer({StepKind::AllSlice, movable.set, -1, dims[d]});
      }
      next.dims[d] = split;
    }
  }
}

/// Permutes: the pieces' names are dealt anew among the atoms, as from `{a, b}`
/// to `{b, a}`, or to `{c}` where c is unused and as large. The one that ends
/// at the target is always tried, however many atoms there are.
void Search::expandRenamed() {
  if (here.partial == target.partial &&
      (!here.isPartial() || here.kind == target.kind))
    if (auto set = moves.permutes(here.dims, target.dims)) {
      next.dims = target.dims;
      offer({StepKind::CollectivePermute, *set});
    }
  for (const Permuted &permuted :
       moves.permutations(here.dims, unusedAt(here), atoms)) {
    next.dims = permuted.dims;
    offer({StepKind::CollectivePermute, permuted.set});
  }
  next = here;
}

void Search::expand() {
  here = nodes[current].place;
  next = here;
  expandPartial();
  expandSplit();
  expandRenamed();
}

std::optional<std::vector<Step>> Search::run(Price limit) {
  bound = limit;
  if (!findAtoms())
    return std::nullopt;
  target = placeOf(to);
  targetElements = elementsOf(target);
  priceGathers();
  nodes.emplace_back().place = placeOf(from);
  nodes[0].elements = elementsOf(nodes[0].place);
  ids.insert(0);
  queue.push({Price(), 0, 0});
  for (size_t visited = 0; !queue.empty() && visited < maxVisited;) {
    int node = std::get<2>(queue.top());
    queue.pop();
    if (nodes[node].done)
      continue;
    // No estimate of what is still open is lower than this price, and none is
    // above what its paths will cost: no other path is cheaper.
    if (node == goal)
      break;
    nodes[node].done = true;
    ++visited;
    current = node;
    expand();
    // What cannot end below the best path that is known is not even offered.
    if (goal >= 0)
      bound = std::min(bound, nodes[goal].price);
  }
  // With maxVisited expanded there may be a path, the best one seen so far.
  if (goal < 0)
    return std::nullopt;
  std::vector<Step> steps;
  for (int at = goal; at != 0; at = nodes[at].parent) {
    const Move &move = nodes[at].move;
    steps.push_back({move.kind, table[move.set], move.dim, move.toDim,
                     layoutOf(nodes[at].place)});
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

} // namespace

std::optional<std::vector<Step>> findPath(LayoutId from, LayoutId to,
                                          ElementBytes elementBytes,
                                          SearchTables tables, Price bound) {
  return Search(from, to, elementBytes, tables).run(bound);
}

} // namespace ax::sharding::detail
