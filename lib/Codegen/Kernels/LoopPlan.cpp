//===- LoopPlan.cpp - The loops of one nest -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopPlan.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::codegen {

LoopPlan::LoopPlan(llvm::ArrayRef<int64_t> sizes) {
  for (int64_t size : sizes)
    atoms.push_back({size, {}, false});
}

int64_t LoopPlan::numPoints() const {
  int64_t product = 1;
  for (const Atom &atom : atoms)
    product *= atom.size;
  return product;
}

int64_t LoopPlan::numPieces() const {
  int64_t product = 1;
  for (const Atom &atom : atoms)
    product *= atom.cuts.size() + 1;
  return product;
}

int64_t LoopPlan::numLanes() const {
  int64_t product = 1;
  for (const Atom &atom : atoms)
    product *= atom.isLane ? atom.size : 1;
  return product;
}

/// E.g. 8 points of a loop over 150 and 4 and 2: all of the last two atoms. Of
/// 8 points of a loop over 6 and 10 there are none, as what divides by 10 would
/// have to divide at run time then.
bool LoopPlan::makeLanes(int64_t count, bool ofSeveralLoops) {
  int first = atoms.size();
  int64_t left = count;
  while (left > 1) {
    if (first == 0 ||
        (left < count && atoms[first].separate && !ofSeveralLoops))
      return false;
    const Atom &atom = atoms[--first];
    if (!atom.cuts.empty() || atom.isLane)
      return false;
    if (left % atom.size != 0) {
      if (atom.size % left != 0)
        return false;
      break;
    }
    left /= atom.size;
  }
  if (left > 1) {
    atoms[first].size /= left;
    atoms.insert(atoms.begin() + ++first, {left, {}})->isSplitOff = true;
  }
  for (Atom &atom : llvm::drop_begin(atoms, first))
    atom.separate = atom.isLane = true;
  return true;
}

bool LoopPlan::makeShift(Shift wanted) {
  auto isLoop = [](const Atom &atom) { return atom.size > 1; };
  if (shift || llvm::count_if(atoms, isLoop) != 1)
    return false;
  const Atom &loop = *llvm::find_if(atoms, isLoop);
  if (loop.isLane || loop.isTile || !loop.cuts.empty() ||
      loop.size < 2 * wanted.lanes)
    return false;
  shift = wanted;
  return true;
}

bool LoopPlan::areLanesOf(int atom) const {
  auto behind = llvm::drop_begin(atoms, atom + 1);
  return numLanes() == 1 ||
         (llvm::hasSingleElement(behind) && atoms.back().isSplitOff);
}

bool LoopPlan::makeTile(int row, int column, int64_t side) {
  int64_t lanes = numLanes();
  auto divides = [&](int atom, int64_t points) {
    return atoms[atom].size % points == 0 && atoms[atom].cuts.empty();
  };
  if (side <= lanes || !divides(row, side) || !divides(column, side / lanes))
    return false;
  // The last first: positions stay valid.
  for (auto [atom, points] : {std::pair(column, side / lanes), {row, side}}) {
    atoms[atom].size /= points;
    Atom part{points, {}};
    part.separate = part.isTile = true;
    atoms.insert(atoms.begin() + atom + 1, part);
    if (size_t behind = atom + 2; behind < atoms.size())
      atoms[behind].separate = true;
  }
  return true;
}

std::optional<std::pair<int, int>> LoopPlan::tile() const {
  llvm::SmallVector<int, 2> found;
  for (auto [k, atom] : llvm::enumerate(atoms))
    if (atom.isTile)
      found.push_back(static_cast<int>(k));
  if (found.empty())
    return std::nullopt;
  return std::pair(found[0], found[1]);
}

int64_t LoopPlan::numTilePoints() const {
  int64_t product = 1;
  for (const Atom &atom : atoms)
    product *= atom.isTile ? atom.size : 1;
  return product;
}

llvm::SmallVector<std::pair<int, int>, 4> LoopPlan::groups() const {
  llvm::SmallVector<std::pair<int, int>, 4> groups;
  for (int k = 0, e = atoms.size(); k != e && !atoms[k].isLane; ++k) {
    if (atoms[k].isTile)
      continue;
    if (k > 0 && !atoms[k].separate)
      groups.back().second = k + 1;
    else
      groups.push_back({k, k + 1});
  }
  return groups;
}

int64_t LoopPlan::sizeOf(std::pair<int, int> group) const {
  int64_t size = 1;
  for (int k = group.first; k != group.second; ++k)
    size *= atoms[k].size;
  return size;
}

void LoopPlan::print(llvm::raw_ostream &os) const {
  bool isFirst = true;
  for (std::pair<int, int> group : groups()) {
    if (sizeOf(group) == 1)
      continue;
    os << (std::exchange(isFirst, false) ? "" : " ") << sizeOf(group);
    llvm::SmallVector<int64_t> sizes;
    for (int k = group.first; k != group.second; ++k)
      if (atoms[k].size != 1)
        sizes.push_back(atoms[k].size);
    if (sizes.size() > 1) {
      os << '(';
      llvm::interleave(sizes, os, "x");
      os << ')';
    }
    // An atom that is cut is a loop by itself.
    if (llvm::ArrayRef<int64_t> cuts = atoms[group.first].cuts; !cuts.empty()) {
      os << '[';
      llvm::interleave(cuts, os, ",");
      os << ']';
    }
  }
  if (auto found = tile())
    os << (std::exchange(isFirst, false) ? "" : " ") << '{'
       << atoms[found->first].size << 'x' << atoms[found->second].size << '}';
  if (int64_t lanes = numLanes(); lanes > 1)
    os << (std::exchange(isFirst, false) ? "" : " ") << '<' << lanes << '>';
  if (shift)
    os << (std::exchange(isFirst, false) ? "" : " ") << "<+" << shift->lanes
       << '>';
  if (isFirst)
    os << "once";
}

} // namespace ax::codegen
