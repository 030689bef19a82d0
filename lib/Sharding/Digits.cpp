//===- Digits.cpp - A dimension's index as a string of digits -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of `3 * 64{col}`, col = 4, the digits are 3, 4 of col, 16: element 100 is 1,
// 2, 4 (100 = 1 * 64 + 2 * 16 + 4), so the rank with col 2 has it. In DimLayout
// an axis stands at the major end of its factor, which has the local digit
// behind it in its size; in digits each stands for itself, so that strings can
// be cut and joined anywhere. An uneven split, 50257 over 2, has no digits.
//
//===----------------------------------------------------------------------===//

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace ax::sharding {

namespace {

/// Appends a digit, joining it with the last where the two are one: 3 and 16
/// local ones are 48; col:(1)2 and then col:(2)2 are col. (Not the other way
/// round: then the minor half of col counts the larger steps.)
void append(Digits &digits, Digit digit) {
  if (digit.size == 1)
    return;
  if (!digits.empty() && digits.back().isSplit() == digit.isSplit()) {
    Digit &last = digits.back();
    if (!digit.isSplit()) {
      last.size *= digit.size;
      return;
    }
    if (last.axis.axis == digit.axis.axis &&
        last.axis.pre * last.axis.size == digit.axis.pre) {
      last.size *= digit.size;
      last.axis.size *= digit.size;
      return;
    }
  }
  digits.push_back(std::move(digit));
}

Digit splitDigit(const SubAxis &axis) { return {axis.size, axis}; }

/// Pieces of `axis` cut at the boundaries of `by`, major first. An axis of 8,
/// cut by its sub-axis (2)2, is (1)2, (2)2, (4)2: boundaries lie at 1, 2, 4, 8.
/// Each has to divide the next, or a piece would be no digit.
std::optional<SubAxes> cutAxis(const SubAxis &axis, const SubAxes &by) {
  std::vector<int64_t> bounds = {axis.pre, axis.pre * axis.size};
  for (const SubAxis &other : by) {
    if (!overlap(axis, other))
      continue;
    for (int64_t bound : {other.pre, other.pre * other.size})
      if (bound > axis.pre && bound < axis.pre * axis.size)
        bounds.push_back(bound);
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  SubAxes pieces;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i + 1] % bounds[i] != 0)
      return std::nullopt;
    pieces.push_back({axis.axis, bounds[i], bounds[i + 1] / bounds[i]});
  }
  if (axis.size == 1)
    pieces = {axis};
  return pieces;
}

} // namespace

std::optional<Digits> digitsOf(const DimLayout &dim) {
  Digits digits;
  for (const Factor &factor : dim.factors) {
    int64_t parts = numParts(factor.axes);
    if (factor.size % parts != 0)
      return std::nullopt;
    for (const SubAxis &axis : factor.axes)
      append(digits, splitDigit(axis));
    append(digits, {factor.size / parts, {}});
  }
  return digits;
}

/// A factor is opened by a split digit that follows a local one; local digits
/// before the first split one are a factor, too: 3, 4 of col, 16, 2 of data, 5
/// is `3 * 64{col} * 10{data}`.
DimLayout dimOf(const Digits &digits) {
  DimLayout dim;
  for (const Digit &digit : digits) {
    bool opens = dim.factors.empty() ||
                 (digit.isSplit() &&
                  dim.factors.back().size != numParts(dim.factors.back().axes));
    if (opens)
      dim.factors.push_back({});
    Factor &factor = dim.factors.back();
    factor.size *= digit.size;
    if (digit.isSplit())
      factor.axes.push_back(digit.axis);
  }
  if (dim.factors.empty())
    dim.factors.push_back({});
  return dim;
}

/// E.g. col:(1)2, col:(2)4 is col:(1)8. In the other order they stay two, since
/// the minor digit of col counts the larger steps there.
SubAxes joinAxes(const SubAxes &axes) {
  SubAxes joined;
  for (const SubAxis &axis : axes) {
    if (axis.size == 1)
      continue;
    if (!joined.empty() && joined.back().axis == axis.axis &&
        joined.back().pre * joined.back().size == axis.pre)
      joined.back().size *= axis.size;
    else
      joined.push_back(axis);
  }
  return joined;
}

SubAxes sortAxes(SubAxes axes) {
  std::sort(axes.begin(), axes.end());
  return joinAxes(axes);
}

bool overlap(const SubAxes &a, const SubAxes &b) {
  for (const SubAxis &x : a)
    for (const SubAxis &y : b)
      if (overlap(x, y))
        return true;
  return false;
}

std::optional<SubAxes> cutAxes(const SubAxes &axes, const SubAxes &by) {
  SubAxes cut;
  for (const SubAxis &axis : axes) {
    std::optional<SubAxes> pieces = cutAxis(axis, by);
    if (!pieces)
      return std::nullopt;
    cut.insert(cut.end(), pieces->begin(), pieces->end());
  }
  return cut;
}

/// E.g. col of 8 without col:(2)2 is col:(1)2, col:(4)2.
SubAxes withoutAxes(const SubAxes &axes, const SubAxes &remove) {
  SubAxes rest;
  for (const SubAxis &axis : axes) {
    // A digit that cannot be cut at the boundary goes as a whole.
    std::optional<SubAxes> pieces = cutAxis(axis, remove);
    if (!pieces)
      continue;
    for (const SubAxis &piece : *pieces)
      if (!overlap({piece}, remove))
        rest.push_back(piece);
  }
  return joinAxes(rest);
}

/// Reads digits off the major end until each part is full, and cuts the digit
/// that stands across a boundary: of a split one, both pieces stay split, by
/// the major and the minor digit of its axis. `12{col}`, col = 4, in 2 and 6:
/// digits 4 of col, 3; the first is cut into 2 and 2, for `2{col:(1)2}` and
/// `6{col:(2)2}`. In 3 and 4 it cannot be divided, as 3 does not divide 4.
std::optional<std::vector<DimLayout>>
divide(const DimLayout &dim, const std::vector<int64_t> &sizes) {
  std::vector<DimLayout> parts;
  if (!dim.isSplit()) {
    for (int64_t size : sizes)
      parts.push_back(DimLayout::whole(size));
    return parts;
  }
  std::optional<Digits> digits = digitsOf(dim);
  if (!digits) {
    // Uneven: one part takes it all, the others being of size 1.
    bool taken = false;
    for (int64_t size : sizes) {
      bool takes = !taken && size == dim.size();
      parts.push_back(takes ? canonicalize(dim) : DimLayout::whole(size));
      taken |= takes;
    }
    return taken ? std::optional(parts) : std::nullopt;
  }
  size_t next = 0;
  for (int64_t size : sizes) {
    Digits part;
    int64_t rest = size;
    while (rest > 1) {
      if (next == digits->size())
        return std::nullopt;
      Digit &digit = (*digits)[next];
      if (rest % digit.size == 0) {
        append(part, digit);
        rest /= digit.size;
        ++next;
        continue;
      }
      if (digit.size % rest != 0)
        return std::nullopt;
      Digit major = {rest, digit.axis};
      if (digit.isSplit()) {
        major.axis.size = rest;
        digit.axis.pre *= rest;
        digit.axis.size /= rest;
      }
      digit.size /= rest;
      append(part, major);
      rest = 1;
    }
    parts.push_back(dimOf(part));
  }
  return next == digits->size() ? std::optional(parts) : std::nullopt;
}

DimLayout compose(const std::vector<DimLayout> &parts) {
  DimLayout dim;
  for (const DimLayout &part : parts)
    dim.factors.insert(dim.factors.end(), part.factors.begin(),
                       part.factors.end());
  return canonicalize(std::move(dim));
}

/// What the first part does not divide by is left to the next. Heads of grouped
/// queries are key/value heads times the queries of each, say {2, 4}: col = 8
/// splits the 2 by its major half, col:(1)2, and the 4 by the rest, col:(2)4.
std::vector<DimLayout> splitParts(const std::vector<int64_t> &sizes,
                                  const SubAxes &axes) {
  SubAxes rest = axes;
  std::vector<DimLayout> parts;
  for (int64_t size : sizes) {
    SubAxes taken;
    int64_t left = size;
    while (!rest.empty()) {
      SubAxis &axis = rest.front();
      int64_t common = std::gcd(left, axis.size);
      if (common > 1) {
        taken.push_back({axis.axis, axis.pre, common});
        left /= common;
        axis.pre *= common;
        axis.size /= common;
      }
      if (axis.size > 1)
        break;
      rest.erase(rest.begin());
    }
    parts.push_back(canonicalize(DimLayout::split(size, taken)));
  }
  return parts;
}

/// Makes digits of `axes` in a string of digits local ones where they stand,
/// which join their local neighbours: `3 * 8{col} * 64` without col is 1536
/// again.
std::optional<DimLayout> unsplit(const DimLayout &dim, const SubAxes &axes) {
  std::optional<SubAxes> mine = cutAxes(dim.axes(), axes);
  if (!mine)
    return std::nullopt;
  SubAxes rest, gone;
  for (const SubAxis &piece : *mine)
    (overlap({piece}, axes) ? gone : rest).push_back(piece);
  if (numParts(gone) != numParts(axes))
    return std::nullopt;
  std::optional<Digits> digits = digitsOf(dim);
  if (!digits) {
    // Parts of an uneven split join into larger ones only when the larger
    // split's parts are unions of them. 10 over 4 ranks is 3, 3, 3, 1, and over
    // their major 2 it is 5, 5: no two parts make 5. 11 over 4 is 3, 3, 3, 2,
    // and over 2 it is 6, 5.
    DimLayout result = canonicalize(DimLayout::split(dim.size(), rest));
    for (size_t i = 0; i < rest.size(); ++i)
      if ((*mine)[i] != rest[i])
        return std::nullopt;
    int64_t merged = numParts(gone) * dim.localSize();
    bool nests = result.localSize() == merged || rest.empty();
    return nests ? std::optional(result) : std::nullopt;
  }
  Digits result;
  for (const Digit &digit : *digits) {
    if (!digit.isSplit()) {
      append(result, digit);
      continue;
    }
    const SubAxes pieces = cutAxis(digit.axis, axes).value();
    for (const SubAxis &piece : pieces)
      append(result, overlap({piece}, axes) ? Digit{piece.size, {}}
                                            : splitDigit(piece));
  }
  return dimOf(result);
}

} // namespace ax::sharding
