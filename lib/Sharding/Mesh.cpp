//===- Mesh.cpp - Named axes of ranks and of time -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Sharding/Mesh.h"

#include <cassert>
#include <tuple>

namespace ax::sharding {

bool SubAxis::operator<(const SubAxis &o) const {
  return std::tie(axis, pre, size) < std::tie(o.axis, o.pre, o.size);
}

const Axis *Mesh::find(std::string_view name) const {
  for (const Axis &axis : getAxes())
    if (axis.name == name)
      return &axis;
  return nullptr;
}

int64_t Mesh::axisSize(std::string_view name) const {
  const Axis *axis = find(name);
  return axis ? axis->size : 1;
}

SubAxis Mesh::whole(std::string_view name) const {
  return {std::string(name), 1, axisSize(name)};
}

bool Mesh::isInTime(const SubAxis &sub) const {
  const Axis *axis = find(sub.axis);
  return axis && axis->inTime;
}

int64_t Mesh::numRanks() const {
  int64_t ranks = 1;
  for (const Axis &axis : getAxes())
    ranks *= axis.inTime ? 1 : axis.size;
  return ranks;
}

int64_t Mesh::numTimeSlices() const {
  int64_t slices = 1;
  for (const Axis &axis : getAxes())
    slices *= axis.inTime ? axis.size : 1;
  return slices;
}

std::vector<int64_t> Mesh::coordinates(int64_t rank, int64_t slice) const {
  std::vector<int64_t> result(getAxes().size());
  for (size_t i = getAxes().size(); i-- > 0;) {
    int64_t &rest = getAxes()[i].inTime ? slice : rank;
    result[i] = rest % getAxes()[i].size;
    rest /= getAxes()[i].size;
  }
  return result;
}

int64_t Mesh::rankOf(const std::vector<int64_t> &coordinates) const {
  assert(coordinates.size() == getAxes().size());
  int64_t rank = 0;
  for (size_t i = 0; i < getAxes().size(); ++i)
    if (!getAxes()[i].inTime)
      rank = rank * getAxes()[i].size + coordinates[i];
  return rank;
}

/// An example: of an axis of 8 at coordinate 6, in binary 110, the sub-axis
/// (1)2 is the first digit, 1, and (2)4 are the other two, 2. The digits minor
/// to it, 8 / (pre * size) of them, are divided away, and those major to it are
/// cut off.
int64_t Mesh::index(const SubAxes &subs,
                    const std::vector<int64_t> &coordinates) const {
  int64_t value = 0;
  for (const SubAxis &sub : subs) {
    int64_t digit = 0;
    for (size_t i = 0; i < getAxes().size(); ++i)
      if (getAxes()[i].name == sub.axis)
        digit = coordinates[i] / (getAxes()[i].size / (sub.pre * sub.size)) %
                sub.size;
    value = value * sub.size + digit;
  }
  return value;
}

void Mesh::setIndex(const SubAxes &subs, int64_t value,
                    std::vector<int64_t> &coordinates) const {
  for (size_t s = subs.size(); s-- > 0;) {
    const SubAxis &sub = subs[s];
    int64_t wanted = value % sub.size;
    value /= sub.size;
    for (size_t i = 0; i < getAxes().size(); ++i) {
      if (getAxes()[i].name != sub.axis)
        continue;
      int64_t weight = getAxes()[i].size / (sub.pre * sub.size);
      int64_t digit = coordinates[i] / weight % sub.size;
      coordinates[i] += (wanted - digit) * weight;
    }
  }
}

std::vector<int64_t> Mesh::group(const SubAxes &subs, int64_t rank) const {
  std::vector<int64_t> members(numParts(subs));
  const std::vector<int64_t> self = coordinates(rank);
  for (size_t member = 0; member < members.size(); ++member) {
    std::vector<int64_t> place = self;
    setIndex(subs, static_cast<int64_t>(member), place);
    members[member] = rankOf(place);
  }
  return members;
}

int64_t numParts(const SubAxes &subs) {
  int64_t parts = 1;
  for (const SubAxis &sub : subs)
    parts *= sub.size;
  return parts;
}

/// A sub-axis takes the interval [pre, pre * size) of its axis's radix: (1)2
/// and (2)4 of an axis of 8 touch at 2, and have nothing in common.
bool overlap(const SubAxis &a, const SubAxis &b) {
  return a.axis == b.axis && a.size > 1 && b.size > 1 &&
         a.pre < b.pre * b.size && b.pre < a.pre * a.size;
}

std::string toString(const SubAxis &sub, const Mesh &mesh) {
  if (sub.pre == 1 && sub.size == mesh.axisSize(sub.axis))
    return sub.axis;
  return sub.axis + ":(" + std::to_string(sub.pre) + ")" +
         std::to_string(sub.size);
}

} // namespace ax::sharding
