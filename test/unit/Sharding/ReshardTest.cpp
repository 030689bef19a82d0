//===- ReshardTest.cpp - Paths between layouts ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ShardingTestUtils.h"

#include "ax/Sharding/Digits.h"
#include "ax/Sharding/LayoutText.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace ax::sharding;
using namespace ax::sharding::test;

namespace {

const double latency = 1e-6, bandwidth = 1e9;

class ReshardTest : public ::testing::Test {
protected:
  Mesh mesh{{{"a", 2}, {"b", 2}, {"col", 4}, {"micro", 2, true}}};
  Resharder resharder{mesh, ringCost(latency, bandwidth)};

  Layout layout(const std::string &text, const std::vector<int64_t> &shape) {
    ParsedLayout result = parseLayout(text, shape, mesh);
    EXPECT_TRUE(result.layout) << text << ": " << result.fault;
    return result.layout.value_or(Layout::replicated(shape));
  }
  /// "all_gather{col} all_slice{a}".
  std::string path(const std::string &from, const std::string &to,
                   const std::vector<int64_t> &shape = {16, 32}) {
    std::string text;
    for (const Step &step :
         resharder.plan(layout(from, shape), layout(to, shape), 4).steps) {
      text += (text.empty() ? "" : " ") + std::string(toString(step.kind));
      for (const SubAxis &axis : step.axes)
        text += " " + toString(axis, mesh);
    }
    return text;
  }
};

TEST_F(ReshardTest, KnownOutcomes) {
  EXPECT_EQ(path("[{}, {}]", "[{}, {}]"), "");
  EXPECT_EQ(path("[{}, {}], partial sum {col}", "[{}, {}]"), "all_reduce col");
  EXPECT_EQ(path("[{}, {}], partial sum {col}", "[{col}, {}]"),
            "reduce_scatter col");
  EXPECT_EQ(path("[{a}, {}], partial sum {col}", "[{a, col}, {}]"),
            "reduce_scatter col");
  EXPECT_EQ(path("[{col}, {}]", "[{}, {}]"), "all_gather col");
  EXPECT_EQ(path("[{col}, {}]", "[{}, {col}]"), "all_to_all col");
  EXPECT_EQ(path("[{}, {}]", "[{a}, {col}]"), "all_slice a col");
  EXPECT_EQ(path("[{a, b}, {}]", "[{b, a}, {}]"), "collective_permute a b");
  EXPECT_EQ(path("[{a}, {}]", "[{b}, {}]"), "collective_permute a b");
  EXPECT_EQ(path("[{a}, {b}]", "[{b}, {a}]"), "collective_permute a b");
  EXPECT_EQ(path("[{}, {}]", "[{}, {}], partial sum {a}"), "to_partial a");
  EXPECT_EQ(path("[{}, {}], partial sum {a, b}", "[{}, {}]"), "all_reduce a b");
  EXPECT_EQ(path("[{}, 2 * 16{col}]", "[{}, {col}]"), "all_to_all col");
  EXPECT_EQ(path("[{}, {}], partial max {a}", "[{}, {}], partial sum {b}"),
            "all_reduce a to_partial b");
}

/// Where estimates of uneven parts are low, and where paths lead through
/// dimensions of several factors; in microseconds what Dijkstra finds.
TEST(ReshardSearchTest, LargeUnevenOnesAreCheapest) {
  struct Case {
    Mesh mesh;
    std::vector<int64_t> shape;
    const char *from, *to;
    double latency, bandwidth, micros;
  };
  const Case cases[] = {
      {Mesh({{"a", 4}, {"b", 2}, {"c", 3}}),
       {300, 756},
       "[{}, {b, c}], partial min {a}",
       "[{b}, {a}]",
       1e-6,
       1e9,
       316.87},
      {Mesh({{"a", 4}, {"b", 2}}),
       {105, 384, 17},
       "[{a:(1)2}, 2 * 192{b}, {a:(2)2}]",
       "[{}, {}, {b}]",
       1e-6,
       1e9,
       1441.08},
      {Mesh({{"a", 4}, {"b", 4}}),
       {474, 7800, 4095},
       "[{}, {b}, {a}]",
       "[{}, {a:(2)2}, {a:(1)2}]",
       5e-6,
       5e9,
       3218e3},
      // Gathered, sliced in time, and only then gathered further: over time
      // itself nothing can be, of which the estimate has to know.
      {Mesh({{"x", 4}, {"y", 4}, {"micro", 2, true}}),
       {8, 8},
       "[{x}, {y}]",
       "[{micro}, {}]",
       1e-6,
       1e9,
       4.144},
  };
  for (const Case &c : cases) {
    Resharder resharder(c.mesh, ringCost(c.latency, c.bandwidth));
    auto from = parseLayout(c.from, c.shape, c.mesh).layout,
         to = parseLayout(c.to, c.shape, c.mesh).layout;
    ASSERT_TRUE(from && to) << c.from;
    EXPECT_LT(resharder.plan(*from, *to, 4).seconds * 1e6, c.micros * 1.001)
        << c.from;
  }
}

TEST_F(ReshardTest, UnevenSplits) {
  std::vector<int64_t> shape = {10, 7};
  EXPECT_EQ(path("[{col}, {}]", "[{}, {}]", shape), "all_gather col");
  EXPECT_EQ(path("[{col}, {}]", "[{}, {col}]", shape), "all_to_all col");
  EXPECT_EQ(path("[{}, {}], partial sum {col}", "[{}, {col}]", shape),
            "reduce_scatter col");
  // 7 over a, b is 2, 2, 2, 1: two parts are one of 7 over a (4, 3).
  EXPECT_EQ(path("[{}, {a, b}]", "[{}, {a}]", shape), "all_gather b");
  // 5 over a, b is 2, 2, 1, 0: not the parts of 5 over a (3, 2).
  EXPECT_EQ(path("[{a, b}]", "[{a}]", {5}), "all_gather a b all_slice a");
}

TEST_F(ReshardTest, OverTimeOnlySumsAreCheap) {
  std::vector<int64_t> shape = {16, 32};
  auto seconds = [&](const char *from) {
    return resharder.plan(layout(from, shape), layout("[{}, {}]", shape), 4)
        .seconds;
  };
  EXPECT_EQ(seconds("[{}, {}], partial sum {micro}"), 0);
  EXPECT_GT(seconds("[{micro}, {}]"), 1000);
}

TEST_F(ReshardTest, Payloads) {
  std::vector<int64_t> shape = {16, 32};
  Layout split = layout("[{}, {col}]", shape),
         whole = layout("[{}, {}]", shape);
  EXPECT_EQ(localBytes(split, 4), 16 * 8 * 4);
  EXPECT_EQ(payloadBytes(StepKind::AllGather, split, whole, 4), 16 * 32 * 4);
  EXPECT_EQ(payloadBytes(StepKind::AllSlice, whole, split, 4), 0);
  const ReshardPlan &plan = resharder.plan(split, whole, 4);
  EXPECT_NEAR(plan.seconds, 2 * latency + 0.75 * 16 * 32 * 4 / bandwidth,
              1e-12);
  EXPECT_EQ(plan.numCollectives(), 1);

  // Addends of narrow floats are wider than they.
  Layout sum = layout("[{}, {}], partial sum {col}", shape);
  EXPECT_EQ(localBytes(sum, {2, 4}), 16 * 32 * 4);
  EXPECT_EQ(localBytes(whole, {2, 4}), 16 * 32 * 2);
  EXPECT_EQ(payloadBytes(StepKind::AllReduce, sum, whole, {2, 4}), 16 * 32 * 4);
  EXPECT_EQ(resharder.plan(sum, whole, {2, 4}).seconds,
            resharder.plan(sum, whole, 4).seconds);
  EXPECT_LT(resharder.plan(sum, whole, 2).seconds,
            resharder.plan(sum, whole, {2, 4}).seconds);
}

TEST_F(ReshardTest, StepFunctionsAgreeWithIdentify) {
  std::vector<int64_t> shape = {16, 32};
  SubAxes col = {mesh.whole("col")};
  Layout split = layout("[{a}, {col}]", shape);
  EXPECT_EQ(toString(*allSlice(layout("[{a}, {}]", shape), 1, col), mesh),
            "[{a}, {col}]");
  EXPECT_FALSE(allSlice(split, 0, col));
  Layout partial = layout("[{a}, {}], partial sum {col}", shape);
  EXPECT_EQ(toString(*reduceScatter(partial, 0, col), mesh), "[{a, col}, {}]");
  EXPECT_EQ(identifyStep(partial, *reduceScatter(partial, 0, col))->kind,
            StepKind::ReduceScatter);
  EXPECT_EQ(toString(*allReduce(partial, {{"col", 2, 2}}), mesh),
            "[{a}, {}], partial sum {col:(1)2}");
}

TEST_F(ReshardTest, FaultsSayWhatWouldDo) {
  std::vector<int64_t> shape = {16, 32};
  SubAxes col = {mesh.whole("col")}, a = {mesh.whole("a")};
  Layout partial = layout("[{}, {}], partial sum {col}", shape);
  Layout whole = layout("[{}, {}]", shape);
  EXPECT_FALSE(findStepFault(StepKind::AllReduce, col, partial, whole, mesh));
  for (auto [kind, axes] :
       {std::pair(StepKind::AllReduce, a), {StepKind::AllGather, col}}) {
    auto fault = findStepFault(kind, axes, partial, whole, mesh);
    ASSERT_TRUE(fault);
    EXPECT_NE(fault->find("all_reduce over {col} does"), std::string::npos)
        << *fault;
  }
  EXPECT_TRUE(findStepFault(StepKind::AllReduce, col, whole, whole, mesh));
}

std::vector<int64_t> randomShape(Random &random) {
  std::vector<int64_t> shape;
  for (int64_t d = 0, rank = 1 + pick(random, 3); d < rank; ++d) {
    const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 12};
    shape.push_back(sizes[pick(random, 9)]);
  }
  return shape;
}

/// The path maps one layout to the other, whatever they are, and is not dearer
/// than gathering everything.
TEST(ReshardRandom, PathsMapLayouts) {
  Random random(7);
  int collectives = 0;
  for (int round = 0; round < 1000; ++round) {
    Mesh mesh = randomMesh(random);
    std::vector<int64_t> shape = randomShape(random);
    Layout from = randomLayout(random, shape, mesh);
    Layout to = randomLayout(random, shape, mesh);
    SCOPED_TRACE(toString(from, mesh) + " -> " + toString(to, mesh));
    CostFn cost = ringCost(latency, bandwidth);
    Resharder resharder(mesh, cost);
    const ReshardPlan &plan = resharder.plan(from, to, 4);

    std::vector<int64_t> values;
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(pick(random, 1000));
    Blocks blocks = deal(random, values, from, mesh);
    Layout at = from;
    for (const Step &step : plan.steps) {
      EXPECT_FALSE(findStepFault(step.kind, step.axes, at, step.result, mesh));
      EXPECT_FALSE(findFault(step.result, shape, mesh));
      blocks = simulate(step, at, blocks, mesh);
      at = step.result;
      collectives += communicates(step.kind);
    }
    EXPECT_EQ(at, to);
    expectHolds(blocks, values, to, mesh);

    // Reduce, gather each dimension, slice.
    double bound = 0;
    Layout now = from;
    auto go = [&](const Layout &next) {
      if (auto step = identifyStep(now, next)) {
        if (communicates(step->kind))
          bound += cost(step->kind, step->axes,
                        payloadBytes(step->kind, now, next, 4));
        now = next;
      }
    };
    Layout reduced = from;
    reduced.partial.clear();
    go(canonicalize(reduced));
    for (size_t d = 0; d < shape.size(); ++d) {
      Layout gathered = now;
      gathered.dims[d] = DimLayout::whole(shape[d]);
      go(gathered);
    }
    EXPECT_LE(plan.seconds, bound + 1e-11);
    if (::testing::Test::HasFailure())
      return;
  }
  EXPECT_GT(collectives, 700);
}

/// What was found of other layouts, and for other widths, is no part of the
/// answer.
TEST(ReshardRandom, WhatIsRememberedMakesNoDifference) {
  Random random(11);
  CostFn cost = ringCost(latency, bandwidth);
  int paths = 0;
  for (int round = 0; round < 20; ++round) {
    Mesh mesh = randomMesh(random);
    Resharder remembering(mesh, cost);
    for (int pair = 0; pair < 20; ++pair) {
      std::vector<int64_t> shape = randomShape(random);
      Layout from = randomLayout(random, shape, mesh);
      Layout to = randomLayout(random, shape, mesh);
      for (ElementBytes bytes : {ElementBytes(4), ElementBytes(2, 4)}) {
        const ReshardPlan &plan = remembering.plan(from, to, bytes);
        Resharder fresh(mesh, cost);
        const ReshardPlan &again = fresh.plan(from, to, bytes);
        ASSERT_EQ(plan.seconds, again.seconds);
        ASSERT_EQ(plan.steps.size(), again.steps.size());
        for (size_t i = 0; i < plan.steps.size(); ++i) {
          EXPECT_EQ(plan.steps[i].kind, again.steps[i].kind);
          EXPECT_EQ(plan.steps[i].axes, again.steps[i].axes);
          EXPECT_EQ(plan.steps[i].result, again.steps[i].result);
        }
        paths += plan.steps.size() > 1;
      }
    }
  }
  EXPECT_GT(paths, 200);
}

/// Every layout of `shape` in which each axis splits some dimension's last
/// factor, or a leading factor 2 away from it, is partial, or is unused.
std::vector<Layout> allLayouts(const std::vector<int64_t> &shape,
                               const Mesh &mesh) {
  std::map<std::string, Layout> found;
  std::vector<Layout> open;
  auto add = [&](const Layout &layout) {
    Layout canonical = canonicalize(layout);
    if (!findFault(canonical, shape, mesh) &&
        found.emplace(toString(canonical, mesh), canonical).second)
      open.push_back(canonical);
  };
  add(Layout::replicated(shape));
  while (!open.empty()) {
    Layout layout = open.back();
    open.pop_back();
    for (const Axis &axis : mesh.getAxes()) {
      SubAxis whole = mesh.whole(axis.name);
      if (overlap(layout.usedAxes(), {whole}))
        continue;
      Layout partial = layout;
      partial.partial.push_back(whole);
      add(partial);
      for (size_t d = 0; d < shape.size(); ++d) {
        if (layout.dims[d].factors.size() == 1) {
          Layout appended = layout;
          appended.dims[d].factors[0].axes.push_back(whole);
          add(appended);
        }
        // At every place inside every local digit.
        auto digits = digitsOf(layout.dims[d]);
        if (!digits)
          continue;
        for (size_t i = 0; i < digits->size(); ++i) {
          if ((*digits)[i].isSplit() || (*digits)[i].size % axis.size != 0)
            continue;
          int64_t rest = (*digits)[i].size / axis.size;
          for (int64_t major = 1; major <= rest; ++major) {
            if (rest % major != 0)
              continue;
            Digits edited(digits->begin(), digits->begin() + i);
            edited.push_back({major, {}});
            edited.push_back({axis.size, whole});
            edited.push_back({rest / major, {}});
            edited.insert(edited.end(), digits->begin() + i + 1, digits->end());
            Layout inserted = layout;
            inserted.dims[d] = dimOf(edited);
            add(inserted);
          }
        }
      }
    }
  }
  std::vector<Layout> layouts;
  for (auto &entry : found)
    layouts.push_back(entry.second);
  return layouts;
}

/// Shortest paths over the complete graph of layouts and single steps.
class BruteForce {
public:
  BruteForce(const Mesh &mesh, const std::vector<int64_t> &shape,
             const CostFn &cost)
      : layouts(allLayouts(shape, mesh)) {
    size_t n = layouts.size();
    direct.assign(n, std::vector<double>(n, 1e9));
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (auto step = identifyStep(layouts[i], layouts[j]))
          direct[i][j] =
              communicates(step->kind)
                  ? cost(step->kind, step->axes,
                         payloadBytes(step->kind, layouts[i], layouts[j], 4))
                  : 0;
  }

  /// Dijkstra over the layouts that agree with both ends where these agree.
  double best(size_t from, size_t to) const {
    size_t n = layouts.size();
    std::vector<double> seconds(n, 1e9);
    std::vector<bool> done(n);
    seconds[from] = 0;
    for (;;) {
      size_t at = n;
      for (size_t i = 0; i < n; ++i)
        if (!done[i] && seconds[i] < 1e8 &&
            (at == n || seconds[i] < seconds[at]))
          at = i;
      if (at == n || at == to)
        return seconds[to];
      done[at] = true;
      for (size_t i = 0; i < n; ++i)
        if (!done[i] && seconds[at] + direct[at][i] < seconds[i] &&
            agrees(i, from, to))
          seconds[i] = seconds[at] + direct[at][i];
    }
  }

  std::vector<Layout> layouts;

private:
  bool agrees(size_t i, size_t from, size_t to) const {
    for (size_t d = 0; d < layouts[i].dims.size(); ++d)
      if (layouts[from].dims[d] == layouts[to].dims[d] &&
          !(layouts[i].dims[d] == layouts[from].dims[d]))
        return false;
    return true;
  }

  std::vector<std::vector<double>> direct;
};

void expectBruteForce(const Mesh &mesh, const std::vector<int64_t> &shape,
                      size_t stride) {
  CostFn cost = ringCost(latency, bandwidth);
  Resharder resharder(mesh, cost);
  BruteForce brute(mesh, shape, cost);
  size_t n = brute.layouts.size();
  for (size_t pair = 0; pair < n * n; pair += stride) {
    const Layout &from = brute.layouts[pair / n];
    const Layout &to = brute.layouts[pair % n];
    ASSERT_NEAR(resharder.plan(from, to, 4).seconds,
                brute.best(pair / n, pair % n), 1e-11)
        << toString(from, mesh) << " -> " << toString(to, mesh);
  }
}

TEST(ReshardRandom, EqualsBruteForce) {
  expectBruteForce(Mesh({{"a", 2}, {"b", 2}}), {8}, 1);
  expectBruteForce(Mesh({{"a", 2}, {"b", 2}}), {4, 4}, 3);
  expectBruteForce(Mesh({{"a", 2}, {"b", 3}}), {6, 6}, 7);
  expectBruteForce(Mesh({{"a", 2}, {"b", 2}}), {3, 4}, 1);
  expectBruteForce(Mesh({{"a", 4}}), {8, 4, 4}, 1);
}

} // namespace
