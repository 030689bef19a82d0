//===- Digits.h - A dimension's index as a string of digits -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dimension whose splits all divide evenly is a mixed-radix number: each
// digit is either told by a rank's place on the mesh or counted locally. All
// algebra on layouts (dividing a dimension into factors, gathering, slicing)
// is editing this string.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SHARDING_DIGITS_H
#define AX_SHARDING_DIGITS_H

#include "ax/Sharding/Layout.h"

namespace ax::sharding {

/// One digit, `size` values. `axis.axis` is empty for a digit counted locally.
struct Digit {
  int64_t size = 1;
  SubAxis axis;

  bool isSplit() const { return !axis.axis.empty(); }
  bool operator==(const Digit &o) const {
    return size == o.size && axis == o.axis;
  }
};
using Digits = std::vector<Digit>;

/// Digits, major first, without digits of size 1; neighbouring local digits
/// and neighbouring digits of one axis joined. Nothing when a split is uneven.
std::optional<Digits> digitsOf(const DimLayout &dim);
/// The canonical dimension made of these digits.
DimLayout dimOf(const Digits &digits);

/// Divides a dimension into parts of the given sizes (major first, product
/// equal to the dimension's size), cutting sub-axes into smaller digits where
/// a boundary falls inside one. Nothing when the boundary falls inside a digit
/// that cannot be cut there, or the split is uneven and two parts share it.
std::optional<std::vector<DimLayout>> divide(const DimLayout &dim,
                                             const std::vector<int64_t> &sizes);
/// The inverse: one dimension made of parts, major first, canonical.
DimLayout compose(const std::vector<DimLayout> &parts);

/// Splits parts of the given sizes by `axes` as far as they divide evenly,
/// major part first: of each part the greatest common divisor is taken off the
/// axes' most significant end. What no part can take stays out (replicated).
/// {2, 4} by col = 4 gives 2{col:(1)2}, 4{col:(2)2}; {3, 4} gives 3, 4{col}.
std::vector<DimLayout> splitParts(const std::vector<int64_t> &sizes,
                                  const SubAxes &axes);

/// Puts `axes` into one string with neighbours of one axis joined.
SubAxes joinAxes(const SubAxes &axes);
/// Sorted set with neighbouring sub-axes of one axis joined.
SubAxes sortAxes(SubAxes axes);
/// What of `axes` shares no bit with `remove`, cutting sub-axes where needed.
SubAxes withoutAxes(const SubAxes &axes, const SubAxes &remove);
/// Cuts each of `axes` at the boundaries of `by`, so that every piece lies
/// either inside or outside each member of `by`. Nothing when two digits of
/// one axis overlap without dividing one another.
std::optional<SubAxes> cutAxes(const SubAxes &axes, const SubAxes &by);
/// True when any of `a` shares a bit with any of `b`.
bool overlap(const SubAxes &a, const SubAxes &b);

/// `dim` with every digit told by `axes` counted locally instead: what an
/// all-gather over `axes` leaves. Nothing when `axes` are not all in `dim`, or
/// when the split is uneven and what remains would not nest in it.
std::optional<DimLayout> unsplit(const DimLayout &dim, const SubAxes &axes);

} // namespace ax::sharding

#endif // AX_SHARDING_DIGITS_H
