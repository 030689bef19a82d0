//===- Step.cpp - What each change of layout does -------------------------===//
#include "ax/Sharding/Step.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>

namespace ax::sharding {

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

/// The dimension that all of `axes` split; -1 when there is none.
static int dimSplitBy(const Layout &layout, const SubAxes &axes) {
  for (size_t i = 0; i < layout.dims.size(); ++i)
    if (withoutAxes(axes, layout.dims[i].axes()).empty())
      return i;
  return -1;
}

/// `layout` gathered over `axes`, which split one dimension.
static std::optional<Layout> gathered(Layout layout, const SubAxes &axes) {
  int dim = dimSplitBy(layout, axes);
  if (dim < 0)
    return std::nullopt;
  std::optional<DimLayout> whole = unsplit(layout.dims[dim], axes);
  if (!whole)
    return std::nullopt;
  layout.dims[dim] = *whole;
  return canonicalize(layout);
}

/// `layout` reduced over `axes`.
static std::optional<Layout> reduced(Layout layout, const SubAxes &axes) {
  if (!withoutAxes(axes, layout.partial).empty())
    return std::nullopt;
  layout.partial = withoutAxes(layout.partial, axes);
  return canonicalize(layout);
}

/// Axes that lie differently in the two layouts.
static SubAxes movedAxes(const Layout &from, const Layout &to) {
  SubAxes moved;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    if (from.dims[i] == to.dims[i])
      continue;
    for (const DimLayout *dim : {&from.dims[i], &to.dims[i]})
      for (const SubAxis &sub : dim->axes())
        if (withoutAxes({sub}, moved).size())
          moved.push_back(sub);
  }
  return moved;
}

std::optional<std::string> findStepFault(StepKind kind, const Layout &from,
                                         const Layout &to, const SubAxes &axes,
                                         const Mesh &mesh) {
  if (axes.empty())
    return "no axes are named";
  if (std::any_of(axes.begin(), axes.end(),
                  [&](const SubAxis &a) { return mesh.isInTime(a); }))
    return "axes in time do not communicate";
  auto unless = [&](bool fits) -> std::optional<std::string> {
    if (fits)
      return std::nullopt;
    std::string names;
    for (const SubAxis &sub : axes)
      names += (names.empty() ? "" : ", ") + toString(sub, mesh);
    return std::string(toString(kind)) + " over {" + names +
           "} does not lead from " + toString(from, mesh) + " to " +
           toString(to, mesh);
  };
  auto equal = [](const std::optional<Layout> &a,
                  const std::optional<Layout> &b) { return a && b && *a == *b; };
  switch (kind) {
  case StepKind::AllSlice:
    return unless(equal(from, gathered(to, axes)));
  case StepKind::AllGather:
    return unless(equal(gathered(from, axes), to));
  case StepKind::AllToAll:
    return unless(dimSplitBy(from, axes) != dimSplitBy(to, axes) &&
                  equal(gathered(from, axes), gathered(to, axes)));
  case StepKind::ReduceScatter:
    return unless(equal(reduced(from, axes), gathered(to, axes)));
  case StepKind::AllReduce:
    return unless(equal(reduced(from, axes), to));
  case StepKind::CollectivePermute:
    return unless(from != to && from.localShape() == to.localShape() &&
                  from.partial == to.partial &&
                  withoutAxes(movedAxes(from, to), axes).empty() &&
                  withoutAxes(axes, movedAxes(from, to)).empty());
  case StepKind::ToPartial:
    return unless(to.partialKind == ReduceKind::Sum &&
                  equal(from, reduced(to, axes)));
  }
  return "unknown kind";
}

} // namespace ax::sharding
