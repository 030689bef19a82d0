//===- RandomLayouts.cpp - Random meshes, layouts, assignments ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RandomLayouts.h"

#include "ax/Sharding/Digits.h"

namespace ax::test {

using namespace sharding;

Mesh randomMesh(Gen &gen) {
  std::vector<Axis> axes;
  int64_t ranks = 1;
  for (const char *name : {"data", "row", "col"}) {
    int64_t size = gen.oneOf<int64_t>({2, 2, 3, 4});
    if (ranks * size > 12 || gen.chance(25))
      continue;
    axes.push_back({name, size, false});
    ranks *= size;
  }
  if (axes.empty())
    axes.push_back({"col", 2, false});
  return Mesh(axes);
}

/// All axes in random order, those of size 4 sometimes as two digits.
static SubAxes randomAxes(Gen &gen, const Mesh &mesh) {
  SubAxes axes;
  for (const Axis &axis : mesh.getAxes()) {
    if (axis.size == 4 && gen.chance(40)) {
      axes.push_back({axis.name, 1, 2});
      axes.push_back({axis.name, 2, 2});
    } else {
      axes.push_back(mesh.whole(axis.name));
    }
  }
  gen.shuffle(axes);
  return axes;
}

/// A dimension of `size` split over `axes`: all of it, or, when it divides, a
/// factor inside it.
static DimLayout randomSplit(Gen &gen, int64_t size, const SubAxes &axes) {
  int64_t parts = numParts(axes);
  if (!axes.empty() && size % parts == 0 && gen.chance(40)) {
    std::vector<int64_t> majors;
    for (int64_t major = 1; major <= size / parts; ++major)
      if (size % (major * parts) == 0)
        majors.push_back(major);
    int64_t major = majors[gen.pick(0, majors.size() - 1)];
    return canonicalize(DimLayout{{{major, {}}, {size / major, axes}}});
  }
  return canonicalize(DimLayout::split(size, axes));
}

Layout randomLayout(Gen &gen, const Mesh &mesh, const Shape &shape,
                    bool mayBePartial) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::vector<SubAxes> splits(shape.size());
    Layout layout;
    for (const SubAxis &axis : randomAxes(gen, mesh)) {
      if (mayBePartial && gen.chance(20))
        layout.partial.push_back(axis);
      else if (!shape.empty() && gen.chance(65))
        splits[gen.pick(0, shape.size() - 1)].push_back(axis);
    }
    for (size_t dim = 0; dim < shape.size(); ++dim)
      layout.dims.push_back(randomSplit(gen, shape[dim], splits[dim]));
    layout = canonicalize(layout);
    if (!findFault(layout, shape, mesh))
      return layout;
  }
  return Layout::replicated(shape);
}

Assignment randomAssignment(Gen &gen, const Mesh &mesh, const Rule &rule,
                            bool mayPassPartial) {
  std::vector<size_t> splittable;
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind == FactorKind::Parallel ||
        rule.factors[f].kind == FactorKind::Reduction)
      splittable.push_back(f);
  for (int attempt = 0; attempt < 20; ++attempt) {
    Assignment assignment = Assignment::unsplit(rule);
    std::vector<SubAxes> splits(rule.factors.size());
    bool extreme = rule.passesMaxMin && gen.chance(30);
    bool passes = extreme || (mayPassPartial && !rule.linear.empty());
    for (const SubAxis &axis : randomAxes(gen, mesh)) {
      if (passes && gen.chance(20)) {
        assignment.passedPartial.push_back(axis);
        continue;
      }
      if (splittable.empty() || gen.chance(20))
        continue;
      size_t f = splittable[gen.pick(0, splittable.size() - 1)];
      int64_t parts = numParts(splits[f]) * axis.size;
      if (rule.factors[f].mayPad || rule.factors[f].size % parts == 0)
        splits[f].push_back(axis);
    }
    for (size_t f : splittable)
      assignment.factors[f] = randomSplit(gen, rule.factors[f].size, splits[f]);
    if (!assignment.passedPartial.empty()) {
      assignment.passedPartial = sortAxes(assignment.passedPartial);
      if (extreme)
        assignment.passedKind = gen.oneOf({ReduceKind::Max, ReduceKind::Min});
      else
        assignment.linearSet = gen.pick(0, rule.linear.size() - 1);
    }
    if (!findFault(rule, assignment, mesh))
      return assignment;
  }
  return Assignment::unsplit(rule);
}

std::vector<HostTensor> randomAddends(Gen &gen, const HostTensor &global,
                                      const Layout &layout) {
  int64_t count = numParts(layout.partial);
  std::vector<HostTensor> addends(count, global);
  for (int64_t i = 0, e = global.numElements(); i < e; ++i) {
    int64_t holder = gen.pick(0, count - 1), rest = global.getInt(i);
    for (int64_t part = 0; part < count; ++part) {
      if (part == holder)
        continue;
      int64_t value = gen.pick(0, 3);
      if (layout.partialKind == ReduceKind::Max)
        value = global.getType() == DType::Bool ? 0 : global.getInt(i) - value;
      else if (layout.partialKind == ReduceKind::Min)
        value = global.getType() == DType::Bool ? 1 : global.getInt(i) + value;
      else
        rest -= value;
      addends[part].setInt(i, value);
    }
    if (layout.partialKind == ReduceKind::Sum && count > 1)
      addends[holder].setInt(i, rest);
  }
  return addends;
}

} // namespace ax::test
