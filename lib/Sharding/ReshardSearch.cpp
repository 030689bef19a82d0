//===- ReshardSearch.cpp - Shortest paths over layouts --------------------===//
//
// A* over layouts: Hart, Nilsson, Raphael, A formal basis for the heuristic
// determination of minimum cost paths, 1968. Only axes whose role differs
// between the two ends move, cut into pieces that both ends agree on ("atoms"),
// and only dimensions that differ are touched: mostly one or two atoms and
// dimensions, so the graph is small. Why what it finds is the cheapest, and
// what that asks of the cost function: docs/rationale/sharding.md.
//
//===----------------------------------------------------------------------===//

#include "ReshardSearch.h"

#include "Interner.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>

namespace ax::sharding::detail {

namespace {

/// Every non-empty subset of up to 8 atoms, in a fixed order.
std::vector<SubAxes> subsetsOf(const SubAxes &atoms) {
  std::vector<SubAxes> subsets;
  size_t count = std::min<size_t>(atoms.size(), 8);
  for (unsigned mask = 1; mask < 1u << count; ++mask) {
    SubAxes subset;
    for (size_t i = 0; i < count; ++i)
      if (mask >> i & 1)
        subset.push_back(atoms[i]);
    subsets.push_back(std::move(subset));
  }
  return subsets;
}

/// Puts `axis` into `digits` where `model` has it: with as many elements minor
/// to it. Nothing when `model` lacks it or another digit stands there.
std::optional<Digits> insertAsIn(const Digits &model, const Digits &digits,
                                 const SubAxis &axis) {
  int64_t weight = 0, minor = 1;
  for (size_t i = model.size(); i-- > 0; minor *= model[i].size) {
    const SubAxis &other = model[i].axis;
    if (model[i].isSplit() && overlap(axis, other))
      weight = minor * (other.pre * other.size / (axis.pre * axis.size));
  }
  if (weight == 0)
    return std::nullopt;
  minor = 1;
  for (size_t i = digits.size(); i-- > 0; minor *= digits[i].size) {
    const Digit host = digits[i];
    if (minor * host.size <= weight)
      continue;
    bool fits = !host.isSplit() && weight % minor == 0 &&
                host.size % (weight / minor * axis.size) == 0;
    if (!fits)
      return std::nullopt;
    int64_t tail = weight / minor;
    Digits edited(digits.begin(), digits.begin() + i);
    edited.push_back({host.size / tail / axis.size, {}});
    edited.push_back({axis.size, axis});
    edited.push_back({tail, {}});
    edited.insert(edited.end(), digits.begin() + i + 1, digits.end());
    return edited;
  }
  return std::nullopt;
}

class Search {
public:
  Search(const Layout &from, const Layout &to, const Pricer &priceOf)
      : from(from), to(to), priceOf(priceOf) {}

  std::optional<std::vector<Step>> run(Price bound);

private:
  bool findAtoms();
  void priceGathers();
  Price leastFrom(const Layout &layout) const;
  SubAxes atomsIn(const SubAxes &axes) const;
  std::vector<DimLayout> findInsertions(const DimLayout &base, int dim,
                                        const SubAxes &axes) const;
  /// The same, remembered: many layouts have this dimension in common.
  const std::vector<DimLayout> &insertions(const DimLayout &base, int dim,
                                           const SubAxes &axes) {
    auto [at, isNew] = inserted[dim][base].try_emplace(axes);
    if (isNew)
      at->second = findInsertions(base, dim, axes);
    return at->second;
  }
  void expand(const Layout &layout);
  void expandPartial(const Layout &layout);
  void expandSplit(const Layout &layout);
  void expandRenamed(const Layout &layout);
  void offer(const Layout &layout, StepKind kind, SubAxes axes, int dim,
             int toDim, Layout result);

  static constexpr size_t maxVisited = 500;

  struct Node {
    Price price;
    Layout layout;
    const Node *parent = nullptr;
    Step step;
    bool done = false;
  };

  const Layout &from, &to;
  const Pricer &priceOf;
  SubAxes atoms;
  std::vector<int> dims;
  /// By the number of ranks: the cheapest all-gather that ends at `to`.
  std::map<int64_t, Price> gathers;
  std::unordered_map<Layout, Node, HashOfLayout> nodes;
  using Entry = std::tuple<Price, size_t, Node *>;
  struct Later {
    bool operator()(const Entry &a, const Entry &b) const {
      if (std::get<0>(a) < std::get<0>(b) || std::get<0>(b) < std::get<0>(a))
        return std::get<0>(b) < std::get<0>(a);
      return std::get<1>(b) < std::get<1>(a);
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> queue;
  const Node *current = nullptr;
  using OfAxes =
      std::unordered_map<SubAxes, std::vector<DimLayout>, HashOfAxes>;
  std::map<int, std::unordered_map<DimLayout, OfAxes, HashOfDim>> inserted;
  Price bound;
};

bool Search::findAtoms() {
  SubAxes before, after;
  for (size_t d = 0; d < from.dims.size(); ++d) {
    if (from.dims[d] == to.dims[d])
      continue;
    dims.push_back(static_cast<int>(d));
    for (auto [layout, axes] : {std::pair(&from, &before), {&to, &after}}) {
      SubAxes more = layout->dims[d].axes();
      axes->insert(axes->end(), more.begin(), more.end());
    }
  }
  bool sameKind = from.partialKind == to.partialKind;
  for (const SubAxis &axis :
       withoutAxes(from.partial, sameKind ? to.partial : SubAxes()))
    before.push_back(axis);
  for (const SubAxis &axis :
       withoutAxes(to.partial, sameKind ? from.partial : SubAxes()))
    after.push_back(axis);
  auto cutBefore = cutAxes(before, after), cutAfter = cutAxes(after, before);
  if (!cutBefore || !cutAfter)
    return false;
  atoms = *cutBefore;
  atoms.insert(atoms.end(), cutAfter->begin(), cutAfter->end());
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  return atoms.size() <= 8;
}

void Search::priceGathers() {
  for (const SubAxes &axes : subsetsOf(atoms)) {
    Price price = priceOf({StepKind::AllGather, axes, 0, -1, to}, to);
    auto [at, isNew] = gathers.try_emplace(numParts(axes), price);
    if (!isNew)
      at->second = std::min(at->second, price);
  }
}

static int64_t numLocal(const Layout &layout) {
  int64_t elements = 1;
  for (const DimLayout &dim : layout.dims)
    elements *= dim.localSize();
  return elements;
}

/// An all-gather by as much as the parts still grow, and a reduce-scatter of
/// what is partial, when all that could be sliced before it was.
Price Search::leastFrom(const Layout &layout) const {
  int64_t local = std::max<int64_t>(numLocal(layout), 1);
  Price least;
  auto above = gathers.upper_bound(numLocal(to) / local);
  if (above != gathers.begin())
    least = std::prev(above)->second;
  bool sameKind = layout.partialKind == to.partialKind;
  SubAxes reduced =
      sameKind ? withoutAxes(layout.partial, to.partial) : layout.partial;
  if (!reduced.empty()) {
    int64_t slices = numParts(withoutAxes(atoms, layout.usedAxes()));
    Layout sliced = Layout::replicated({std::max<int64_t>(local / slices, 1)});
    least = least +
            priceOf({StepKind::ReduceScatter, reduced, -1, 0, sliced}, sliced);
  }
  // Sums of several steps are rounded.
  constexpr int64_t rounding = 16;
  least.picoseconds = std::max<int64_t>(least.picoseconds - rounding, 0);
  return least;
}

/// The atoms of `axes`, in the order of `axes`.
SubAxes Search::atomsIn(const SubAxes &axes) const {
  SubAxes result;
  for (const SubAxis &axis : axes)
    for (const SubAxis &atom : atoms)
      if (overlap(atom, axis))
        result.push_back(atom);
  return result;
}

/// Places where `axes` can go into `base`: where the target has them, or at
/// either end of any digit counted locally, in any order.
std::vector<DimLayout> Search::findInsertions(const DimLayout &base, int dim,
                                              const SubAxes &axes) const {
  std::vector<DimLayout> found;
  auto add = [&](DimLayout candidate) {
    candidate = canonicalize(std::move(candidate));
    auto without = unsplit(candidate, axes);
    if (without && *without == base &&
        std::find(found.begin(), found.end(), candidate) == found.end())
      found.push_back(std::move(candidate));
  };
  std::optional<Digits> digits = digitsOf(base);
  std::optional<Digits> wanted = digitsOf(to.dims[dim]);
  if (digits && wanted) {
    std::optional<Digits> edited = digits;
    for (const SubAxis &axis : axes)
      if (edited)
        edited = insertAsIn(*wanted, *edited, axis);
    if (edited)
      add(dimOf(*edited));
  }
  SubAxes order = axes;
  std::sort(order.begin(), order.end());
  int64_t parts = numParts(axes);
  do {
    if (base.factors.size() == 1) {
      DimLayout appended = base;
      SubAxes &all = appended.factors[0].axes;
      all.insert(all.end(), order.begin(), order.end());
      add(std::move(appended));
    }
    if (!digits)
      continue;
    for (size_t i = 0; i < digits->size(); ++i) {
      const Digit host = (*digits)[i];
      if (host.isSplit() || host.size % parts != 0)
        continue;
      for (bool major : {true, false}) {
        Digits edited(digits->begin(), digits->begin() + i);
        edited.push_back({major ? 1 : host.size / parts, {}});
        for (const SubAxis &axis : order)
          edited.push_back({axis.size, axis});
        edited.push_back({major ? host.size / parts : 1, {}});
        edited.insert(edited.end(), digits->begin() + i + 1, digits->end());
        add(dimOf(edited));
      }
    }
  } while (order.size() <= 3 &&
           std::next_permutation(order.begin(), order.end()));
  return found;
}

void Search::offer(const Layout &layout, StepKind kind, SubAxes axes, int dim,
                   int toDim, Layout result) {
  Step step{kind, sortAxes(std::move(axes)), dim, toDim,
            canonicalize(std::move(result))};
  Price price = current->price + priceOf(step, layout);
  Price whole = price + leastFrom(step.result);
  if (bound < whole)
    return;
  auto [at, isNew] = nodes.try_emplace(step.result);
  // Also when it was left before: what is left may be estimated higher from a
  // place behind than from the one before it.
  if (!isNew && !(price < at->second.price))
    return;
  at->second = {price, step.result, current, step, false};
  queue.push({whole, nodes.size(), &at->second});
}

/// Reductions, and replicated -> partial.
void Search::expandPartial(const Layout &layout) {
  bool sameKind = layout.partialKind == to.partialKind;
  SubAxes reducible =
      sameKind ? withoutAxes(layout.partial, to.partial) : layout.partial;
  for (const SubAxes &axes : subsetsOf(atomsIn(reducible))) {
    Layout reduced = layout;
    reduced.partial = withoutAxes(layout.partial, axes);
    offer(layout, StepKind::AllReduce, axes, -1, -1, reduced);
    for (int d : dims)
      for (const DimLayout &split : insertions(layout.dims[d], d, axes)) {
        Layout scattered = reduced;
        scattered.dims[d] = split;
        offer(layout, StepKind::ReduceScatter, axes, -1, d, scattered);
      }
  }
  SubAxes missing = withoutAxes(to.partial, layout.partial);
  if (!missing.empty())
    if (auto partial = toPartial(layout, missing, to.partialKind))
      offer(layout, StepKind::ToPartial, missing, -1, -1, *partial);
}

/// Gathers, slices, and both at once.
void Search::expandSplit(const Layout &layout) {
  for (int d : dims) {
    for (const SubAxes &axes : subsetsOf(atomsIn(layout.dims[d].axes()))) {
      auto gathered = unsplit(layout.dims[d], axes);
      if (!gathered)
        continue;
      Layout whole = layout;
      whole.dims[d] = *gathered;
      offer(layout, StepKind::AllGather, axes, d, -1, whole);
      for (int e : dims)
        for (const DimLayout &split : insertions(whole.dims[e], e, axes)) {
          Layout moved = whole;
          moved.dims[e] = split;
          if (!(moved == layout))
            offer(layout, StepKind::AllToAll, axes, d, e, moved);
        }
    }
    SubAxes unused = withoutAxes(atoms, layout.usedAxes());
    for (const SubAxes &axes : subsetsOf(atomsIn(unused)))
      for (const DimLayout &split : insertions(layout.dims[d], d, axes)) {
        Layout sliced = layout;
        sliced.dims[d] = split;
        offer(layout, StepKind::AllSlice, axes, -1, d, sliced);
      }
  }
}

/// Permutes: the pieces' names are dealt anew among the atoms.
void Search::expandRenamed(const Layout &layout) {
  auto offerPermute = [&](const Layout &result) {
    auto step = identifyStep(layout, result);
    if (step && step->kind == StepKind::CollectivePermute)
      offer(layout, step->kind, step->axes, -1, -1, result);
  };
  offerPermute(to);
  SubAxes pool;
  for (int d : dims)
    for (const SubAxis &atom : atomsIn(layout.dims[d].axes()))
      pool.push_back(atom);
  const size_t numNamed = pool.size();
  for (const SubAxis &atom : atomsIn(withoutAxes(atoms, layout.usedAxes())))
    pool.push_back(atom);
  // The factors of the canonical form are the runs of pieces to be named.
  auto rename = [&](const SubAxes &dealt) {
    Layout renamed = layout;
    size_t next = 0;
    for (int d : dims)
      for (Factor &factor : renamed.dims[d].factors) {
        int64_t parts = numParts(factor.axes);
        factor.axes.clear();
        while (numParts(factor.axes) < parts && next < dealt.size())
          factor.axes.push_back(dealt[next++]);
        if (numParts(factor.axes) != parts)
          return;
      }
    renamed = canonicalize(std::move(renamed));
    if (!(renamed == layout))
      offerPermute(renamed);
  };
  if (pool.size() <= 4) {
    SubAxes dealt = pool;
    std::sort(dealt.begin(), dealt.end());
    do
      rename(dealt);
    while (std::next_permutation(dealt.begin(), dealt.end()));
    return;
  }
  for (size_t i = 0; i < numNamed; ++i)
    for (size_t j = i + 1; j < pool.size(); ++j) {
      SubAxes dealt = pool;
      std::swap(dealt[i], dealt[j]);
      rename(dealt);
    }
}

void Search::expand(const Layout &layout) {
  expandPartial(layout);
  expandSplit(layout);
  expandRenamed(layout);
}

std::optional<std::vector<Step>> Search::run(Price limit) {
  bound = limit;
  if (!findAtoms())
    return std::nullopt;
  priceGathers();
  Node *start = &nodes[from];
  start->layout = from;
  queue.push({Price(), 0, start});
  const Node *goal = nullptr;
  for (size_t visited = 0; !queue.empty() && visited < maxVisited;) {
    Node *node = std::get<2>(queue.top());
    queue.pop();
    if (node->done)
      continue;
    if (node == goal)
      break;
    node->done = true;
    ++visited;
    current = node;
    const Layout layout = node->layout;
    expand(layout);
    if (auto reached = nodes.find(to); reached != nodes.end()) {
      goal = &reached->second;
      bound = std::min(bound, goal->price);
    }
  }
  if (!goal)
    return std::nullopt;
  std::vector<Step> steps;
  for (const Node *at = goal; at != start; at = at->parent)
    steps.push_back(at->step);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

} // namespace

std::optional<std::vector<Step>> findPath(const Layout &from, const Layout &to,
                                          const Pricer &priceOf, Price bound) {
  return Search(from, to, priceOf).run(bound);
}

} // namespace ax::sharding::detail
