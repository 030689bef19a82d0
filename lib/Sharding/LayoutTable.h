//===- LayoutTable.h - Layouts as numbers -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Propagation meets the same few hundred layouts a million times. Here every
// list of axes, dimension and layout has a number: equal numbers mean equal
// values. What the algebra of Digits.h says of them is computed once and looked
// up by number afterwards, and comparing, copying and hashing cost nothing.
// Numbers are of one table; nothing is ever taken out of it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SHARDING_LAYOUTTABLE_H
#define AX_LIB_SHARDING_LAYOUTTABLE_H

#include "Interner.h"

#include "ax/Sharding/Digits.h"
#include "ax/Sharding/Reshard.h"

namespace ax::sharding::detail {

/// A list of sub-axes; the order counts.
enum class AxesId : int32_t {};
enum class DimId : int32_t {};
enum class LayoutId : int32_t {};
/// Sizes of factors, for `divide`.
enum class SizesId : int32_t {};

struct DimEntry {
  DimLayout value;
  AxesId axes;
  /// The same size, not split.
  DimId whole;
  bool isSplit;
  int64_t localSize;
  /// Ranks, not slices in time, that have parts of it.
  double partsInSpace;
  /// Factors, and axes as numbers in mesh order: the order of ties.
  std::vector<int64_t> rank;
};

struct LayoutEntry {
  Layout value;
  std::vector<DimId> dims;
  /// Equal for two layouts when their dimensions are.
  int dimsNumber;
  AxesId partial;
  int64_t localElements;
};

class LayoutTable {
public:
  explicit LayoutTable(const Mesh &mesh);

  const Mesh &getMesh() const { return mesh; }

  AxesId add(const SubAxes &axes) { return axesLists(axes); }
  DimId add(const DimLayout &dim);
  LayoutId add(const Layout &layout);
  /// `partial` is sorted.
  LayoutId add(const std::vector<DimId> &dims, AxesId partial, ReduceKind kind);
  SizesId add(const std::vector<int64_t> &sizes) { return sizeLists(sizes); }
  DimId whole(int64_t size) { return add(DimLayout::whole(size)); }

  const SubAxes &operator[](AxesId id) const { return axesLists[id]; }
  const DimEntry &operator[](DimId id) const {
    return dimEntries[static_cast<size_t>(id)];
  }
  const LayoutEntry &operator[](LayoutId id) const {
    return layoutEntries[static_cast<size_t>(id)];
  }

  DimId whole(DimId dim) const { return (*this)[dim].whole; }
  bool isSplit(DimId dim) const { return (*this)[dim].isSplit; }
  AxesId axesOf(DimId dim) const { return (*this)[dim].axes; }
  bool isPartial(LayoutId layout) const {
    return (*this)[layout].partial != noAxes;
  }
  bool sameDims(LayoutId a, LayoutId b) const {
    return (*this)[a].dimsNumber == (*this)[b].dimsNumber;
  }
  int64_t localBytes(LayoutId layout, ElementBytes bytes) const {
    const LayoutEntry &entry = (*this)[layout];
    return bytes.in(entry.value) * entry.localElements;
  }
  /// The same without partial sums.
  LayoutId reduced(LayoutId layout);

  /// These are the functions of the same name in Digits.h.
  bool overlap(AxesId a, AxesId b);
  AxesId without(AxesId axes, AxesId remove);
  std::optional<DimId> unsplit(DimId dim, AxesId axes);
  DimId compose(const std::vector<DimId> &parts);
  /// Null when it cannot be divided so.
  const std::vector<DimId> *divide(DimId dim, SizesId sizes);

  /// `a` and then `b`.
  AxesId concat(AxesId a, AxesId b);
  /// What of `axes` lies in `in`.
  AxesId common(AxesId axes, AxesId in) {
    return without(axes, without(axes, in));
  }
  /// The members of `a` that are members of `b`, too.
  AxesId shared(AxesId a, AxesId b);
  /// True when `finer` splits as `coarser` does and further, or is the same.
  bool refines(DimId finer, DimId coarser);

  static constexpr AxesId noAxes = AxesId(0);

private:
  Mesh mesh;
  Interner<AxesId, SubAxes, HashOfAxes> axesLists;
  Interner<DimId, DimLayout, HashOfDim> dims;
  Interner<SizesId, std::vector<int64_t>, HashOfNumbers> sizeLists;
  Interner<int, std::vector<DimId>, HashOfNumbers> dimLists;
  std::deque<DimEntry> dimEntries;
  std::deque<LayoutEntry> layoutEntries;
  std::unordered_map<std::vector<int>, LayoutId, HashOfNumbers> layouts;

  PairMemo<bool> overlaps, refinements;
  PairMemo<AxesId> rests, concats, shares;
  PairMemo<std::optional<DimId>> unsplits;
  PairMemo<std::optional<std::vector<DimId>>> divisions;
  std::unordered_map<int, DimId> compositions;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_LAYOUTTABLE_H
