//===- LayoutTable.cpp - Layouts as numbers -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LayoutTable.h"

#include <algorithm>

namespace ax::sharding::detail {

LayoutTable::LayoutTable(const Mesh &mesh) : mesh(mesh) { add(SubAxes()); }

DimId LayoutTable::add(const DimLayout &dim) {
  DimId id = dims(dim);
  // Numbers are given in turn, so a new one is the number of entries.
  if (static_cast<size_t>(id) < dimEntries.size())
    return id;
  DimEntry entry;
  entry.value = dim;
  entry.axes = add(dim.axes());
  entry.isSplit = dim.isSplit();
  entry.localSize = dim.localSize();
  entry.partsInSpace = 1;
  const std::vector<Axis> &axes = mesh.getAxes();
  for (const Factor &factor : dim.factors) {
    entry.rank.push_back(factor.size);
    for (const SubAxis &sub : factor.axes) {
      for (size_t i = 0; i < axes.size(); ++i)
        if (axes[i].name == sub.axis)
          entry.rank.push_back(static_cast<int64_t>(i));
      entry.rank.push_back(sub.pre);
      entry.rank.push_back(sub.size);
      if (!mesh.isInTime(sub))
        entry.partsInSpace *= static_cast<double>(sub.size);
    }
  }
  entry.whole = id;
  dimEntries.push_back(std::move(entry));
  if (DimLayout unsplit = DimLayout::whole(dim.size()); !(unsplit == dim)) {
    DimId whole = add(unsplit);
    dimEntries[static_cast<size_t>(id)].whole = whole;
  }
  return id;
}

LayoutId LayoutTable::add(const Layout &layout) {
  std::vector<DimId> ids;
  for (const DimLayout &dim : layout.dims)
    ids.push_back(add(dim));
  return add(ids, add(layout.partial), layout.partialKind);
}

/// Gives one number to layouts without partial axes, whichever the kind of
/// reduction, which means nothing then.
LayoutId LayoutTable::add(const std::vector<DimId> &dims, AxesId partial,
                          ReduceKind kind) {
  if (partial == noAxes)
    kind = ReduceKind::Sum;
  int dimsNumber = dimLists(dims);
  auto [at, isNew] = layouts.try_emplace(
      {dimsNumber, static_cast<int>(partial), static_cast<int>(kind)},
      LayoutId(layoutEntries.size()));
  if (!isNew)
    return at->second;
  LayoutEntry entry;
  entry.dims = dims;
  entry.dimsNumber = dimsNumber;
  entry.partial = partial;
  entry.value.partial = (*this)[partial];
  entry.value.partialKind = kind;
  entry.localElements = 1;
  for (DimId dim : dims) {
    entry.value.dims.push_back((*this)[dim].value);
    entry.localElements *= (*this)[dim].localSize;
  }
  layoutEntries.push_back(std::move(entry));
  return at->second;
}

LayoutId LayoutTable::reduced(LayoutId layout) {
  const LayoutEntry &entry = (*this)[layout];
  return entry.partial == noAxes ? layout
                                 : add(entry.dims, noAxes, ReduceKind::Sum);
}

bool LayoutTable::overlap(AxesId a, AxesId b) {
  if (a == noAxes || b == noAxes)
    return false;
  return overlaps.get(
      a, b, [&] { return sharding::overlap((*this)[a], (*this)[b]); });
}

AxesId LayoutTable::without(AxesId axes, AxesId remove) {
  return rests.get(axes, remove, [&] {
    return add(withoutAxes((*this)[axes], (*this)[remove]));
  });
}

AxesId LayoutTable::concat(AxesId a, AxesId b) {
  if (a == noAxes || b == noAxes)
    return a == noAxes ? b : a;
  return concats.get(a, b, [&] {
    SubAxes both = (*this)[a];
    const SubAxes &more = (*this)[b];
    both.insert(both.end(), more.begin(), more.end());
    return add(both);
  });
}

AxesId LayoutTable::shared(AxesId a, AxesId b) {
  return shares.get(a, b, [&] {
    SubAxes both;
    const SubAxes &others = (*this)[b];
    for (const SubAxis &axis : (*this)[a])
      if (std::find(others.begin(), others.end(), axis) != others.end())
        both.push_back(axis);
    return add(both);
  });
}

std::optional<DimId> LayoutTable::unsplit(DimId dim, AxesId axes) {
  return unsplits.get(dim, axes, [&]() -> std::optional<DimId> {
    auto rest = sharding::unsplit((*this)[dim].value, (*this)[axes]);
    return rest ? std::optional(add(*rest)) : std::nullopt;
  });
}

/// Dimensions in turn as one: the parts' numbers are interned as a list first.
DimId LayoutTable::compose(const std::vector<DimId> &parts) {
  int list = dimLists(parts);
  if (auto at = compositions.find(list); at != compositions.end())
    return at->second;
  std::vector<DimLayout> values;
  for (DimId part : parts)
    values.push_back((*this)[part].value);
  return compositions[list] = add(sharding::compose(values));
}

const std::vector<DimId> *LayoutTable::divide(DimId dim, SizesId sizes) {
  using Parts = std::optional<std::vector<DimId>>;
  const Parts &parts = divisions.get(dim, sizes, [&]() -> Parts {
    auto values = sharding::divide((*this)[dim].value, sizeLists[sizes]);
    if (!values)
      return std::nullopt;
    std::vector<DimId> ids;
    for (const DimLayout &value : *values)
      ids.push_back(add(value));
    return ids;
  });
  return parts ? &*parts : nullptr;
}

/// `{data, col}` refines `{data}`, and `3 * 64{col}` refines 192, unsplit; but
/// it does not refine `{col}` of 192, which splits at other places. So `finer`
/// must have all axes of `coarser`, and an all-gather over the others must
/// leave `coarser`. Parts of the finer one are a multiple of the other's:
/// chains of refinements end.
bool LayoutTable::refines(DimId finer, DimId coarser) {
  if (finer == coarser || !isSplit(coarser))
    return true;
  return refinements.get(finer, coarser, [&] {
    AxesId mine = axesOf(finer), theirs = axesOf(coarser);
    AxesId extra = without(mine, theirs);
    if (numParts((*this)[extra]) * numParts((*this)[theirs]) !=
        numParts((*this)[mine]))
      return false;
    std::optional<DimId> rest = unsplit(finer, extra);
    return rest && *rest == coarser;
  });
}

} // namespace ax::sharding::detail
