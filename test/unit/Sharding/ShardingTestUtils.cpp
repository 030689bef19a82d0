//===- ShardingTestUtils.cpp - Random layouts, simulated ranks ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ShardingTestUtils.h"

#include "ax/Sharding/Digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace ax::sharding::test {

namespace {

int64_t numElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Row-major global position of every local element of a rank; -1: padding.
std::vector<int64_t> positions(const Layout &layout, const Mesh &mesh,
                               int64_t rank) {
  std::vector<int64_t> local = layout.localShape(),
                       shape = layout.globalShape();
  std::vector<int64_t> result;
  std::vector<int64_t> coordinates = mesh.coordinates(rank);
  for (int64_t i = 0; i < numElements(local); ++i) {
    std::vector<int64_t> at(local.size());
    int64_t rest = i;
    for (size_t d = local.size(); d-- > 0; rest /= local[d])
      at[d] = rest % local[d];
    auto global = globalIndex(layout, mesh, coordinates, at);
    int64_t position = 0;
    for (size_t d = 0; global && d < shape.size(); ++d)
      position = position * shape[d] + (*global)[d];
    result.push_back(global ? position : -1);
  }
  return result;
}

int64_t combine(ReduceKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ReduceKind::Sum:
    return a + b;
  case ReduceKind::Max:
    return std::max(a, b);
  case ReduceKind::Min:
    return std::min(a, b);
  }
  return 0;
}

} // namespace

Mesh randomMesh(Random &random) {
  std::vector<Axis> axes;
  const char *names[] = {"a", "b", "c"};
  int64_t ranks = 1;
  for (int64_t i = 0, n = 1 + pick(random, 3); i < n; ++i) {
    int64_t size = 2 + pick(random, 3);
    if (ranks * size > 24)
      break;
    ranks *= size;
    axes.push_back({names[i], size, false});
  }
  return Mesh(axes);
}

Layout randomLayout(Random &random, const std::vector<int64_t> &shape,
                    const Mesh &mesh) {
  SubAxes digits;
  for (const Axis &axis : mesh.getAxes()) {
    if (axis.size == 4 && pick(random, 3) == 0) {
      digits.push_back({axis.name, 1, 2});
      digits.push_back({axis.name, 2, 2});
    } else {
      digits.push_back({axis.name, 1, axis.size});
    }
  }
  std::shuffle(digits.begin(), digits.end(), random);
  Layout layout = Layout::replicated(shape);
  // Some dimensions as products of two factors.
  for (DimLayout &dim : layout.dims)
    if (dim.size() % 2 == 0 && pick(random, 3) == 0)
      dim.factors = {{2, {}}, {dim.size() / 2, {}}};
  const ReduceKind kinds[] = {ReduceKind::Sum, ReduceKind::Max,
                              ReduceKind::Min};
  layout.partialKind = kinds[pick(random, 8) < 6 ? 0 : 1 + pick(random, 2)];
  for (const SubAxis &digit : digits) {
    Layout next = layout;
    int64_t place = pick(random, static_cast<int64_t>(shape.size()) * 2 + 2);
    if (place < static_cast<int64_t>(shape.size()) * 2) {
      std::vector<Factor> &factors = next.dims[place / 2].factors;
      factors[pick(random, static_cast<int64_t>(factors.size()))]
          .axes.push_back(digit);
    } else if (place == static_cast<int64_t>(shape.size()) * 2) {
      next.partial.push_back(digit);
    }
    if (!findFault(next, shape, mesh))
      layout = next;
  }
  return canonicalize(layout);
}

Blocks deal(Random &random, const std::vector<int64_t> &values,
            const Layout &layout, const Mesh &mesh) {
  Blocks blocks(mesh.numRanks());
  int64_t parts = numParts(layout.partial);
  // Addends of an element depend on the place in the partial group only.
  std::map<std::pair<int64_t, int64_t>, int64_t> addends;
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = values[i];
    int64_t holder = pick(random, parts);
    for (int64_t part = 0; part < parts; ++part) {
      int64_t &addend = addends[{part, static_cast<int64_t>(i)}];
      int64_t worse = pick(random, 100);
      if (layout.partialKind == ReduceKind::Sum) {
        addend = part + 1 == parts ? rest : worse - 50;
        rest -= addend;
      } else {
        int64_t sign = layout.partialKind == ReduceKind::Max ? -1 : 1;
        addend = values[i] + (part == holder ? 0 : sign * worse);
      }
    }
  }
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    int64_t part = mesh.index(layout.partial, mesh.coordinates(rank));
    for (int64_t position : positions(layout, mesh, rank))
      blocks[rank].push_back(position < 0 ? 0 : addends[{part, position}]);
  }
  return blocks;
}

Blocks simulate(const Step &step, const Layout &from, const Blocks &blocks,
                const Mesh &mesh) {
  const Layout &to = step.result;
  Blocks result(blocks.size());
  std::vector<std::map<int64_t, int64_t>> held(blocks.size());
  std::vector<std::vector<int64_t>> before(blocks.size());
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    before[rank] = positions(from, mesh, rank);
    for (size_t i = 0; i < before[rank].size(); ++i)
      if (before[rank][i] >= 0)
        held[rank][before[rank][i]] = blocks[rank][i];
  }
  std::vector<int64_t> sources;
  if (step.kind == StepKind::CollectivePermute)
    sources = permuteSources(from, to, mesh);
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    std::vector<int64_t> group = mesh.group(step.axes, rank);
    std::vector<int64_t> after = positions(to, mesh, rank);
    auto own = [&](int64_t member, int64_t position) {
      auto at = held[member].find(position);
      EXPECT_NE(at, held[member].end()) << "rank lacks an element";
      return at == held[member].end() ? 0 : at->second;
    };
    if (!sources.empty()) {
      EXPECT_TRUE(std::count(group.begin(), group.end(), sources[rank]))
          << "permute leaves its group";
      EXPECT_EQ(std::count(sources.begin(), sources.end(), int64_t(rank)), 1)
          << "not a permutation";
      EXPECT_EQ(before[sources[rank]], after) << "permute changes the block";
      result[rank] = blocks[sources[rank]];
      continue;
    }
    for (int64_t position : after) {
      int64_t value = 0;
      if (position >= 0) {
        switch (step.kind) {
        case StepKind::AllSlice:
          value = own(rank, position);
          break;
        case StepKind::AllReduce:
        case StepKind::ReduceScatter:
          value = own(group[0], position);
          for (size_t i = 1; i < group.size(); ++i)
            value = combine(from.partialKind, value, own(group[i], position));
          break;
        case StepKind::ToPartial:
          value = own(rank, position);
          if (to.partialKind == ReduceKind::Sum &&
              mesh.index(step.axes, mesh.coordinates(rank)) != 0)
            value = 0;
          break;
        default: {
          int64_t holders = 0;
          for (int64_t member : group)
            if (held[member].count(position)) {
              value = held[member][position];
              ++holders;
            }
          EXPECT_EQ(holders, 1) << "an element must have one holder";
        }
        }
      }
      result[rank].push_back(value);
    }
  }
  return result;
}

void expectHolds(const Blocks &blocks, const std::vector<int64_t> &values,
                 const Layout &layout, const Mesh &mesh) {
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    std::vector<int64_t> mine = positions(layout, mesh, rank);
    ASSERT_EQ(mine.size(), blocks[rank].size());
    std::vector<int64_t> group = mesh.group(layout.partial, rank);
    for (size_t i = 0; i < mine.size(); ++i) {
      if (mine[i] < 0)
        continue;
      int64_t value = blocks[group[0]][i];
      for (size_t g = 1; g < group.size(); ++g)
        value = combine(layout.partialKind, value, blocks[group[g]][i]);
      ASSERT_EQ(value, values[mine[i]]) << "rank " << rank;
    }
  }
}

} // namespace ax::sharding::test
