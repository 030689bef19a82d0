//===- Layout.h - How a tensor is spread over a mesh ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every dimension is a product of factors, major first, each split by an
// ordered list of sub-axes; and a set of sub-axes over which the tensor is
// still partial. Sub-axes in neither are replicated; none appears twice.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SHARDING_LAYOUT_H
#define AX_SHARDING_LAYOUT_H

#include "ax/Sharding/Mesh.h"

#include <optional>

namespace ax::sharding {

enum class ReduceKind { Sum, Max, Min };
const char *toString(ReduceKind kind);

/// A factor of a dimension: `size` elements split over `axes` (first axis
/// slowest). Local extent: ceil(size / numParts(axes)); the last parts may
/// have fewer valid elements, or none.
struct Factor {
  int64_t size = 1;
  SubAxes axes;

  int64_t localSize() const;
  /// Elements of part `part` that are not padding.
  int64_t validSize(int64_t part) const;
  bool operator==(const Factor &o) const {
    return size == o.size && axes == o.axes;
  }
};

/// A dimension: factors, major first. Invariants (canonical form, see
/// `canonicalize`): neighbouring factors that merge into the same set of
/// elements per rank are merged (unsplit next to unsplit; a split factor that
/// divides evenly swallows unsplit factors minor to it; two split factors
/// where the major divides evenly to one element per part), factors of size 1
/// vanish, and there is at least one factor. With more than one factor every
/// split divides evenly.
struct DimLayout {
  std::vector<Factor> factors;

  static DimLayout whole(int64_t size) { return {{{size, {}}}}; }
  static DimLayout split(int64_t size, SubAxes axes) {
    return {{{size, std::move(axes)}}};
  }
  int64_t size() const;
  int64_t localSize() const;
  bool isSplit() const;
  /// All sub-axes, major first.
  SubAxes axes() const;
  bool operator==(const DimLayout &o) const { return factors == o.factors; }
};

DimLayout canonicalize(DimLayout dim);

struct Layout {
  std::vector<DimLayout> dims;
  /// Sorted set; empty means no partial sums.
  SubAxes partial;
  ReduceKind partialKind = ReduceKind::Sum;

  static Layout replicated(const std::vector<int64_t> &shape);
  bool isReplicated() const;
  std::vector<int64_t> globalShape() const;
  std::vector<int64_t> localShape() const;
  /// Every sub-axis used, by dimensions and partial.
  SubAxes usedAxes() const;
  bool operator==(const Layout &o) const {
    return dims == o.dims && partial == o.partial &&
           (partial.empty() || partialKind == o.partialKind);
  }
  bool operator!=(const Layout &o) const { return !(*this == o); }
};

/// Canonical form: dims canonical, partial sorted and adjacent sub-axes of one
/// axis joined.
Layout canonicalize(Layout layout);

/// `[{data}, {}, 3 * 8{col} * 64], partial sum {row}`: the text inside
/// `#ax.layout<...>`. A dimension of one factor prints only its axes.
std::string toString(const Layout &layout, const Mesh &mesh);

/// Why `layout` is not a legal layout of a tensor of `shape` on `mesh`:
/// unknown axis, axis used twice, sizes that do not multiply to the dimension,
/// uneven split inside a compound dimension, digits out of an axis's range.
/// Nothing when it is legal.
std::optional<std::string> findFault(const Layout &layout,
                                     const std::vector<int64_t> &shape,
                                     const Mesh &mesh);

/// Returns the same of axes that number parts, as those of a group do.
std::optional<std::string> findFault(const SubAxes &axes, const Mesh &mesh);

/// Returns the global index of local index `local` (one entry per dimension) of
/// the rank at `coordinates`; nothing when it is padding.
std::optional<std::vector<int64_t>>
globalIndex(const Layout &layout, const Mesh &mesh,
            const std::vector<int64_t> &coordinates,
            const std::vector<int64_t> &local);

} // namespace ax::sharding

#endif // AX_SHARDING_LAYOUT_H
