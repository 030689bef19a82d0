//===- Reshard.cpp - Single steps between layouts -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step is known by the layouts on either side of it and the axes that it is
// over. `matches` is the definition of every kind, in terms of one operation on
// dimensions: unsplit(), what an all-gather leaves. So the same lines plan a
// step, tell which step two layouts are apart, and verify a plan's collective.
//
//===----------------------------------------------------------------------===//

#include "ax/Sharding/Reshard.h"

#include "Renaming.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ax::sharding {

using detail::Renaming;
using detail::renamingOf;

const char *toString(StepKind kind) {
  switch (kind) {
  case StepKind::AllSlice:
    return "all_slice";
  case StepKind::AllGather:
    return "all_gather";
  case StepKind::AllToAll:
    return "all_to_all";
  case StepKind::ReduceScatter:
    return "reduce_scatter";
  case StepKind::AllReduce:
    return "all_reduce";
  case StepKind::CollectivePermute:
    return "collective_permute";
  case StepKind::ToPartial:
    return "to_partial";
  }
  return "";
}

bool communicates(StepKind kind) {
  return kind != StepKind::AllSlice && kind != StepKind::ToPartial;
}

namespace {

/// Elements of `a` that lie in `b`, as a sorted set.
SubAxes common(const SubAxes &a, const SubAxes &b) {
  return sortAxes(withoutAxes(a, withoutAxes(a, b)));
}

bool contains(const SubAxes &set, const SubAxes &axes) {
  return withoutAxes(axes, set).empty();
}

SubAxes splitAxes(const Layout &layout) {
  SubAxes axes;
  for (const DimLayout &dim : layout.dims) {
    SubAxes more = dim.axes();
    axes.insert(axes.end(), more.begin(), more.end());
  }
  return axes;
}

std::vector<int> differingDims(const Layout &from, const Layout &to) {
  std::vector<int> dims;
  for (size_t d = 0; d < from.dims.size(); ++d)
    if (!(from.dims[d] == to.dims[d]))
      dims.push_back(static_cast<int>(d));
  return dims;
}

bool samePartial(const Layout &a, const Layout &b) {
  return a.partial == b.partial &&
         (a.partial.empty() || a.partialKind == b.partialKind);
}

/// True when `less`'s partial sums are `more`'s without `axes`.
bool partialIsWithout(const Layout &more, const Layout &less,
                      const SubAxes &axes) {
  return contains(more.partial, axes) &&
         sortAxes(withoutAxes(more.partial, axes)) == less.partial &&
         (less.partial.empty() || less.partialKind == more.partialKind);
}

/// The axes of a collective permute, old and new names of pieces together;
/// nothing when it is none. They are a and b both from `[{a, b}]` to `[{b, a}]`
/// and, if these are of one size, from `[{a}]` to `[{b}]`.
std::optional<SubAxes> permuteAxes(const Layout &from, const Layout &to) {
  if (!samePartial(from, to))
    return std::nullopt;
  SubAxes axes;
  for (size_t d = 0; d < from.dims.size(); ++d) {
    auto renaming = renamingOf(from.dims[d], to.dims[d]);
    if (!renaming)
      return std::nullopt;
    for (const SubAxes &side : {renaming->before, renaming->after}) {
      SubAxes more = withoutAxes(side, axes);
      axes.insert(axes.end(), more.begin(), more.end());
    }
  }
  return sortAxes(axes);
}

/// True when an all-gather of `split` over `axes` gives `whole`.
bool gathersTo(const DimLayout &split, const SubAxes &axes,
               const DimLayout &whole) {
  std::optional<DimLayout> gathered = unsplit(split, axes);
  return gathered && *gathered == whole;
}

/// Checks the layouts against one kind of step; fills dim and toDim. In the
/// examples col and data are axes of 4 and 2 ranks.
bool matches(StepKind kind, const SubAxes &axes, const Layout &from,
             const Layout &to, Step &step) {
  std::vector<int> dims = differingDims(from, to);
  auto dimBefore = [&](int d) -> const DimLayout & { return from.dims[d]; };
  auto dimAfter = [&](int d) -> const DimLayout & { return to.dims[d]; };
  switch (kind) {
  // `[{}, {}]` -> `[{data}, {col}]`: everybody has all that it keeps. The axes
  // are not in use, not even by a sum, of which a slice would keep one addend.
  case StepKind::AllSlice: {
    if (!samePartial(from, to) || dims.empty() ||
        overlap(from.usedAxes(), axes) || !contains(splitAxes(to), axes))
      return false;
    for (int d : dims)
      if (!gathersTo(dimAfter(d), common(dimAfter(d).axes(), axes),
                     dimBefore(d)))
        return false;
    step.toDim = dims[0];
    return true;
  }
  // `[{data, col}, {}]` -> `[{data}, {}]`, one dimension only: the parts of two
  // would have to be put together in both at once.
  case StepKind::AllGather:
    step.dim = dims.size() == 1 ? dims[0] : -1;
    return dims.size() == 1 && samePartial(from, to) &&
           gathersTo(dimBefore(dims[0]), axes, dimAfter(dims[0]));
  // `[{}], partial sum {data, col}` -> `[{}], partial sum {data}`.
  case StepKind::AllReduce:
    return dims.empty() && partialIsWithout(from, to, axes);
  // `[{}, {}], partial sum {col}` -> `[{col}, {}]`: an AllReduce, of which each
  // rank gets the part that an AllSlice would keep.
  case StepKind::ReduceScatter:
    step.toDim = dims.size() == 1 ? dims[0] : -1;
    return dims.size() == 1 && partialIsWithout(from, to, axes) &&
           gathersTo(dimAfter(dims[0]), axes, dimBefore(dims[0]));
  // `[{}, {}]` -> `[{}, {}], partial sum {col}`: AllReduce backwards.
  case StepKind::ToPartial:
    return dims.empty() && partialIsWithout(to, from, axes) &&
           !overlap(splitAxes(from), axes);
  case StepKind::CollectivePermute:
    return !dims.empty() && permuteAxes(from, to) == axes;
  // `[{col}, {}]` -> `[{}, {col}]`, an AllGather of dimension 0 and an AllSlice
  // of dimension 1 in one. Inside one dimension it is digits that change place:
  // `[{col}]` of 192 elements -> `[3 * 64{col}]`.
  case StepKind::AllToAll: {
    if (!samePartial(from, to) || dims.empty() || dims.size() > 2)
      return false;
    for (bool swapped : {false, true}) {
      step.dim = swapped ? dims.back() : dims.front();
      step.toDim = swapped ? dims.front() : dims.back();
      if (step.dim == step.toDim) {
        auto without = unsplit(dimBefore(step.dim), axes);
        return without && gathersTo(dimAfter(step.dim), axes, *without);
      }
      if (gathersTo(dimBefore(step.dim), axes, dimAfter(step.dim)) &&
          gathersTo(dimAfter(step.toDim), axes, dimBefore(step.toDim)))
        return true;
    }
    return false;
  }
  }
  return false;
}

std::optional<Step> tryStep(StepKind kind, const SubAxes &axes,
                            const Layout &from, const Layout &to) {
  Step step;
  step.kind = kind;
  step.axes = sortAxes(axes);
  step.result = to;
  if (step.axes.empty() || !matches(kind, step.axes, from, to, step))
    return std::nullopt;
  return step;
}

/// An all-to-all that moves digits inside one dimension: the fewest that do.
/// The layouts do not tell which moved, so subsets are tried, for the smallest
/// group.
std::optional<Step> moveInside(int dim, const Layout &from, const Layout &to) {
  auto pieces = cutAxes(from.dims[dim].axes(), to.dims[dim].axes());
  if (!pieces || pieces->size() > 8)
    return std::nullopt;
  std::optional<Step> best;
  for (unsigned mask = 1; mask < 1u << pieces->size(); ++mask) {
    SubAxes axes;
    for (size_t i = 0; i < pieces->size(); ++i)
      if (mask >> i & 1)
        axes.push_back((*pieces)[i]);
    if (best && numParts(axes) >= numParts(best->axes))
      continue;
    if (auto step = tryStep(StepKind::AllToAll, axes, from, to))
      best = step;
  }
  return best;
}

std::optional<Layout> withDim(Layout layout, int dim, const DimLayout &split) {
  layout.dims[dim] = split;
  return canonicalize(std::move(layout));
}

/// `axes` put at the minor end of what splits `dim`; nothing when the parts
/// do not nest.
std::optional<DimLayout> splitFurther(const DimLayout &dim,
                                      const SubAxes &axes) {
  if (overlap(dim.axes(), axes))
    return std::nullopt;
  DimLayout result = dim;
  SubAxes &last = result.factors.back().axes;
  last.insert(last.end(), axes.begin(), axes.end());
  bool legal = result.factors.size() == 1 ||
               result.factors.back().size % numParts(last) == 0;
  result = canonicalize(std::move(result));
  return legal && gathersTo(result, axes, canonicalize(dim))
             ? std::optional(result)
             : std::nullopt;
}

} // namespace

std::optional<Layout> allSlice(const Layout &from, int dim,
                               const SubAxes &axes) {
  auto split = splitFurther(from.dims[dim], axes);
  if (!split || overlap(from.usedAxes(), axes))
    return std::nullopt;
  return withDim(from, dim, *split);
}

/// Defined by two steps, of which it is one.
std::optional<Layout> reduceScatter(const Layout &from, int toDim,
                                    const SubAxes &axes) {
  auto reduced = allReduce(from, axes);
  return reduced ? allSlice(*reduced, toDim, axes) : std::nullopt;
}

std::optional<Layout> allReduce(const Layout &from, const SubAxes &axes) {
  if (!contains(from.partial, axes))
    return std::nullopt;
  Layout to = from;
  to.partial = withoutAxes(from.partial, axes);
  return canonicalize(std::move(to));
}

std::optional<Step> identifyStep(const Layout &from, const Layout &to) {
  if (from.dims.size() != to.dims.size() || from == to)
    return std::nullopt;
  // It changes no number of parts, and all others but the last do or leave the
  // dimensions alone. Searches ask this most.
  if (auto axes = permuteAxes(from, to))
    if (auto step = tryStep(StepKind::CollectivePermute, *axes, from, to))
      return step;
  // For most kinds the layouts leave one candidate for the axes: what splits
  // one of the two alone, or what one alone is partial over.
  SubAxes before = splitAxes(from), after = splitAxes(to);
  SubAxes reduced = withoutAxes(from.partial, to.partial);
  SubAxes madePartial = withoutAxes(to.partial, from.partial);
  SubAxes opened = withoutAxes(before, after);
  SubAxes closed = withoutAxes(after, before);
  if (auto step = tryStep(StepKind::AllSlice, closed, from, to))
    return step;
  if (auto step = tryStep(StepKind::AllGather, opened, from, to))
    return step;
  if (auto step = tryStep(StepKind::AllReduce, reduced, from, to))
    return step;
  if (auto step = tryStep(StepKind::ReduceScatter, reduced, from, to))
    return step;
  if (auto step = tryStep(StepKind::ToPartial, madePartial, from, to))
    return step;
  std::vector<int> dims = differingDims(from, to);
  if (dims.size() == 1)
    return moveInside(dims[0], from, to);
  if (dims.size() == 2)
    for (int d : dims) {
      SubAxes moved = withoutAxes(from.dims[d].axes(), to.dims[d].axes());
      if (auto step = tryStep(StepKind::AllToAll, moved, from, to))
        return step;
    }
  return std::nullopt;
}

std::optional<std::string> findStepFault(StepKind kind, const SubAxes &axes,
                                         const Layout &from, const Layout &to,
                                         const Mesh &mesh) {
  if (from.globalShape() != to.globalShape())
    return std::string("operand and result differ in shape");
  Layout before = canonicalize(from), after = canonicalize(to);
  if (tryStep(kind, axes, before, after))
    return std::nullopt;
  std::string text;
  for (const SubAxis &axis : axes)
    text += (text.empty() ? "" : ", ") + toString(axis, mesh);
  text = std::string("no ") + toString(kind) + " over {" + text +
         "} leads from " + toString(before, mesh) + " to " +
         toString(after, mesh);
  if (before == after)
    return text + ": they are the same layout";
  if (auto step = identifyStep(before, after)) {
    std::string right;
    for (const SubAxis &axis : step->axes)
      right += (right.empty() ? "" : ", ") + toString(axis, mesh);
    text +=
        std::string("; ") + toString(step->kind) + " over {" + right + "} does";
  }
  return text;
}

/// A rank's new block is named by the digits `after` of its own coordinates.
/// Its source is the rank whose digits `before` name the same block, and whose
/// other coordinates are the same. `[{a, b}]` -> `[{b, a}]` with a = 4, b = 2:
/// the rank (a 1, b 1) is to have piece 1 * 4 + 1 = 5, which (a 2, b 1) has.
///
/// Axes that only name blocks afterwards say nothing about who had them, and
/// those that did so only before are free: one is told by the other, so that no
/// rank sends twice while another one sends nothing.
std::vector<int64_t> permuteSources(const Layout &from, const Layout &to,
                                    const Mesh &mesh) {
  assert(permuteAxes(from, to) && "not a collective permute");
  std::vector<Renaming> renamings;
  SubAxes before, after;
  for (size_t d = 0; d < from.dims.size(); ++d) {
    renamings.push_back(*renamingOf(from.dims[d], to.dims[d]));
    const Renaming &last = renamings.back();
    before.insert(before.end(), last.before.begin(), last.before.end());
    after.insert(after.end(), last.after.begin(), last.after.end());
  }
  // What only one side uses is dealt in order: with it the map is one to one.
  SubAxes onlyBefore = sortAxes(withoutAxes(before, after));
  SubAxes onlyAfter = sortAxes(withoutAxes(after, before));
  std::vector<int64_t> sources;
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    std::vector<int64_t> self = mesh.coordinates(rank), source = self;
    mesh.setIndex(onlyAfter, mesh.index(onlyBefore, self), source);
    for (const Renaming &renaming : renamings)
      mesh.setIndex(renaming.before, mesh.index(renaming.after, self), source);
    sources.push_back(mesh.rankOf(source));
  }
  return sources;
}

int64_t localBytes(const Layout &layout, ElementBytes elementBytes) {
  int64_t bytes = elementBytes.in(layout);
  for (const DimLayout &dim : layout.dims)
    bytes *= dim.localSize();
  return bytes;
}

int64_t payloadBytes(StepKind kind, const Layout &from, const Layout &to,
                     ElementBytes elementBytes) {
  if (!communicates(kind))
    return 0;
  return std::max(localBytes(from, elementBytes), localBytes(to, elementBytes));
}

/// In a ring of p ranks each sends a p-th of the payload p - 1 times; an
/// all-reduce is a reduce-scatter and an all-gather. Latencies count as in a
/// tree, log2 of p: small payloads are sent so.
double RingCost::seconds(StepKind kind, int64_t numRanks,
                         double payload) const {
  auto ranks = static_cast<double>(numRanks);
  double hops = std::log2(ranks), moved = payload * (ranks - 1) / ranks;
  if (kind == StepKind::AllReduce) {
    hops *= 2;
    moved *= 2;
  } else if (kind == StepKind::CollectivePermute) {
    hops = 1;
    moved = payload;
  }
  return latencySeconds * hops + moved / bytesPerSecond;
}

CostFn ringCost(double latencySeconds, double bytesPerSecond) {
  RingCost ring{latencySeconds, bytesPerSecond};
  return [=](StepKind kind, const SubAxes &axes, int64_t payload) {
    return ring.seconds(kind, numParts(axes), static_cast<double>(payload));
  };
}

} // namespace ax::sharding
