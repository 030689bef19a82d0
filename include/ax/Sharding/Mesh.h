//===- Mesh.h - Named axes of ranks and of time -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mesh has named axes. An axis in space numbers ranks; an axis in time
// (`micro`) numbers slices done one after another by the same ranks.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SHARDING_MESH_H
#define AX_SHARDING_MESH_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ax::sharding {

/// One named axis. Sizes are >= 1.
struct Axis {
  std::string name;
  int64_t size = 1;
  bool inTime = false;

  bool operator==(const Axis &o) const {
    return name == o.name && size == o.size && inTime == o.inTime;
  }
};

/// A digit inside an axis's digit: an axis of size N is read as
/// (pre, size, N / (pre * size)), major first; this names the middle one.
/// The whole axis is pre = 1, size = N.
struct SubAxis {
  std::string axis;
  int64_t pre = 1;
  int64_t size = 1;

  bool operator==(const SubAxis &o) const {
    return axis == o.axis && pre == o.pre && size == o.size;
  }
  bool operator!=(const SubAxis &o) const { return !(*this == o); }
  /// Arbitrary total order, used for canonical printing of sets.
  bool operator<(const SubAxis &o) const;
};

using SubAxes = std::vector<SubAxis>;

/// Ordered axes, outermost first. Value type, whose copies share the axes.
class Mesh {
public:
  Mesh() : Mesh(std::vector<Axis>()) {}
  explicit Mesh(std::vector<Axis> axes)
      : axes(std::make_shared<const std::vector<Axis>>(std::move(axes))) {}

  bool operator==(const Mesh &o) const {
    return axes == o.axes || *axes == *o.axes;
  }

  const std::vector<Axis> &getAxes() const { return *axes; }
  /// Null when the mesh has no such axis.
  const Axis *find(std::string_view name) const;
  /// Size of the axis, 1 when the mesh has none of that name.
  int64_t axisSize(std::string_view name) const;
  SubAxis whole(std::string_view name) const;
  bool isInTime(const SubAxis &sub) const;

  /// Product of the sizes of the axes in space.
  int64_t numRanks() const;
  /// Product of the sizes of the axes in time.
  int64_t numTimeSlices() const;

  /// Coordinates, one per axis in mesh order. Space axes: the digits of `rank`
  /// in the mixed radix of the space axes, first axis slowest; time axes: the
  /// digits of `slice` likewise.
  std::vector<int64_t> coordinates(int64_t rank, int64_t slice = 0) const;
  /// Inverse of `coordinates` for the axes in space.
  int64_t rankOf(const std::vector<int64_t> &coordinates) const;

  /// Value of the mixed-radix number formed by the digits of `subs` (first
  /// most significant) at the given coordinates.
  int64_t index(const SubAxes &subs,
                const std::vector<int64_t> &coordinates) const;

  /// Changes `coordinates` so that index(subs, coordinates) is `value`.
  void setIndex(const SubAxes &subs, int64_t value,
                std::vector<int64_t> &coordinates) const;

  /// The ranks that differ from `rank` only in the digits `subs` (all in
  /// space), ordered by index(subs): the group of a collective over `subs`.
  std::vector<int64_t> group(const SubAxes &subs, int64_t rank) const;

private:
  std::shared_ptr<const std::vector<Axis>> axes;
};

/// Product of the sizes.
int64_t numParts(const SubAxes &subs);
/// True when the two digits share a bit of the same axis.
bool overlap(const SubAxis &a, const SubAxis &b);
/// `col`, or `col:(1)2` for part of an axis. `mesh` decides what is whole.
std::string toString(const SubAxis &sub, const Mesh &mesh);

} // namespace ax::sharding

#endif // AX_SHARDING_MESH_H
