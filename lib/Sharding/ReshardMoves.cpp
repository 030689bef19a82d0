//===- ReshardMoves.cpp - Where axes can go, remembered -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ReshardMoves.h"

#include "Renaming.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>

namespace ax::sharding::detail {

/// `axes` in pieces, in the order in which `axes` has them: col, data with the
/// atoms data, col:(1)2 and col:(2)2 is col:(1)2, col:(2)2, data.
AxesId ReshardMoves::atomsIn(AxesId axes, AxesId atoms) {
  return inside.get(axes, atoms, [&] {
    SubAxes found;
    for (const SubAxis &axis : table[axes])
      for (const SubAxis &atom : table[atoms])
        if (overlap(atom, axis))
          found.push_back(atom);
    return table.add(found);
  });
}

AxesId ReshardMoves::unite(AxesId a, AxesId b) {
  return unions.get(a, b, [&] {
    SubAxes both = table[a];
    for (const SubAxis &axis : withoutAxes(table[b], table[a]))
      both.push_back(axis);
    return table.add(sortAxes(std::move(both)));
  });
}

const std::vector<Movable> &ReshardMoves::movables(AxesId axes, AxesId atoms) {
  return subsets.get(axes, atoms, [&] {
    const SubAxes all = table[atomsIn(axes, atoms)];
    // Of more atoms the first 8 move, or the subsets would be too many.
    const size_t count = std::min<size_t>(all.size(), 8);
    std::vector<Movable> found;
    // Bits of `mask` say which are in the subset: three give 7 of them.
    for (unsigned mask = 1; mask < 1u << count; ++mask) {
      SubAxes subset;
      for (size_t i = 0; i < count; ++i)
        if (mask >> i & 1)
          subset.push_back(all[i]);
      found.push_back({table.add(subset), table.add(sortAxes(subset))});
    }
    return found;
  });
}

/// Puts `axis` into `digits` where `model` has it: with as many elements minor
/// to it. Nothing when `model` lacks it or another digit stands there.
///
/// 192 elements, of which the model is `3 * 64{col}`, col = 4, in digits
/// 3, 4 of col, 16: col's weight is 16, as many elements lie between two of its
/// values. The digits 192, counted locally, are cut there, 192 / 16 / 4 = 3
/// before it and 16 after it: 3, 4 of col, 16.
static std::optional<Digits>
insertAsIn(const Digits &model, const Digits &digits, const SubAxis &axis) {
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
    // The digit into which the weight falls. It must be counted locally, and
    // divide at both ends of the axis.
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

/// First as the target has all of the axes, if it does; then at either end of
/// each digit that is counted locally, in each order. 8 elements split over
/// a = 2 are the digits 2 of a, 4. There b = 2 at the major end of the 4 gives
/// `{a, b}`, and at the minor end `4{a} * 2{b}`, elements dealt out in turn. Of
/// the places inside of a digit the target's own is the one that a path can end
/// with.
std::vector<DimId> ReshardMoves::findInsertions(DimId baseId, AxesId axesId,
                                                DimId wantedId) {
  const DimLayout base = table[baseId].value;
  const SubAxes axes = table[axesId];
  std::vector<DimId> found;
  auto add = [&](DimLayout candidate) {
    candidate = canonicalize(std::move(candidate));
    // A step has to be told by the two layouts alone: what it gathers is what
    // it had sliced. Uneven parts, for one, need not nest.
    auto without = unsplit(candidate, axes);
    if (!without || !(*without == base))
      return;
    DimId id = table.add(candidate);
    if (std::find(found.begin(), found.end(), id) == found.end())
      found.push_back(id);
  };
  std::optional<Digits> digits = digitsOf(base);
  std::optional<Digits> wanted = digitsOf(table[wantedId].value);
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
    // All orders of more than 3 axes would be too many: of 3 there are 6 at
    // each place, of 4 there are 24.
  } while (order.size() <= 3 &&
           std::next_permutation(order.begin(), order.end()));
  return found;
}

/// Remembered by three numbers, of which the last two are made one first.
const std::vector<DimId> &ReshardMoves::insertions(DimId base, AxesId axes,
                                                   DimId wanted) {
  int target = targets.get(axes, wanted, [&] { return numTargets++; });
  return inserted.get(base, target,
                      [&] { return findInsertions(base, axes, wanted); });
}

/// The pieces of a dimension are what its digits cut it into. A permute leaves
/// the pieces and deals them to other ranks, so it is told by one dimension at
/// a time, and its axes are all that name other pieces than before.
std::optional<AxesId> ReshardMoves::findRenamed(DimId from, DimId to) {
  auto found = renamingOf(table[from].value, table[to].value);
  if (!found)
    return std::nullopt;
  return unite(table.add(found->before), table.add(found->after));
}

/// Each dimension's pieces are renamed by themselves; the permute is over all
/// axes that any of them loses or gets.
std::optional<AxesId> ReshardMoves::permutes(const std::vector<DimId> &from,
                                             const std::vector<DimId> &to) {
  AxesId set = LayoutTable::noAxes;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d])
      continue;
    const std::optional<AxesId> &more = renamed.get(
        from[d], to[d], [&] { return findRenamed(from[d], to[d]); });
    if (!more)
      return std::nullopt;
    set = unite(set, *more);
  }
  return set == LayoutTable::noAxes ? std::nullopt : std::optional(set);
}

/// E.g. over a = b = c = 2, `[8{a}, 8{b}]` can become `[8{b}, 8{a}]`, and, if
/// nobody uses c, `[8{c}, 8{b}]`: each rank gets all of its part from one
/// other.
std::vector<Permuted>
ReshardMoves::findPermutations(const std::vector<DimId> &dims, AxesId unused,
                               AxesId atoms) {
  std::vector<Permuted> found;
  SubAxes pool;
  for (DimId dim : dims)
    for (const SubAxis &atom : table[atomsIn(table.axesOf(dim), atoms)])
      pool.push_back(atom);
  const size_t numNamed = pool.size();
  for (const SubAxis &atom : table[atomsIn(unused, atoms)])
    pool.push_back(atom);
  // The factors of the canonical form are the runs of pieces to be named. Each
  // takes names off the front until they are as many parts as it has; names
  // that go beyond that, or end too early, are no permute.
  auto rename = [&](const SubAxes &dealt) {
    Permuted result;
    size_t next = 0;
    for (DimId id : dims) {
      DimLayout dim = table[id].value;
      for (Factor &factor : dim.factors) {
        int64_t parts = numParts(factor.axes);
        factor.axes.clear();
        while (numParts(factor.axes) < parts && next < dealt.size())
          factor.axes.push_back(dealt[next++]);
        if (numParts(factor.axes) != parts)
          return;
      }
      result.dims.push_back(table.add(canonicalize(std::move(dim))));
    }
    if (std::optional<AxesId> set = permutes(dims, result.dims)) {
      result.set = *set;
      found.push_back(std::move(result));
    }
  };
  if (pool.size() <= 4) {
    SubAxes dealt = pool;
    std::sort(dealt.begin(), dealt.end());
    do
      rename(dealt);
    while (std::next_permutation(dealt.begin(), dealt.end()));
    return found;
  }
  // Exchanges of two reach every order, in several steps.
  for (size_t i = 0; i < numNamed; ++i)
    for (size_t j = i + 1; j < pool.size(); ++j) {
      SubAxes dealt = pool;
      std::swap(dealt[i], dealt[j]);
      rename(dealt);
    }
  return found;
}

const std::vector<Permuted> &
ReshardMoves::permutations(const std::vector<DimId> &dims, AxesId unused,
                           AxesId atoms) {
  key.clear();
  for (DimId dim : dims)
    key.push_back(static_cast<int>(dim));
  key.push_back(static_cast<int>(unused));
  key.push_back(static_cast<int>(atoms));
  if (auto at = permuted.find(key); at != permuted.end())
    return at->second;
  std::vector<Permuted> found = findPermutations(dims, unused, atoms);
  return permuted.emplace(key, std::move(found)).first->second;
}

} // namespace ax::sharding::detail
