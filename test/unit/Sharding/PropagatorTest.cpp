//===- PropagatorTest.cpp - What propagation remembers, and its work ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphBuilder.h"

#include <gtest/gtest.h>

using namespace ax::sharding;
using namespace ax::sharding::test;

namespace {

const Mesh mesh({{"row", 2}, {"col", 2}});

/// Residual blocks of two Linears, split column-wise and row-wise by turns over
/// two axes, so that something remains to be resharded in each.
GraphBuilder blocks(int count) {
  const int64_t rows = 64, width = 32, hidden = 128;
  GraphBuilder b;
  int x = b.input("x", {rows, width});
  for (int i = 0; i < count; ++i) {
    std::string name = "h." + std::to_string(i);
    int y = b.linear(name + ".fc0", b.norm(name + ".norm", x), hidden);
    y = b.unary(name + ".act", b.bias(name + ".bias", y));
    y = b.linear(name + ".fc1", y, width);
    x = b.add(name + ".add", x, y);
    b.pinFactor(name + ".fc0", "k", wholeAxes(mesh, {"row"}));
    b.pinFactor(name + ".fc0", "n", wholeAxes(mesh, {"col"}));
    b.pinFactor(name + ".fc1", "k", wholeAxes(mesh, {"col"}));
    b.pinFactor(name + ".fc1", "n", wholeAxes(mesh, {"row"}));
  }
  b.output(x);
  return b;
}

/// Everything that a plan is made of, as text.
std::string textOf(const Propagation &found) {
  std::string text;
  for (const Layout &layout : found.tensors)
    text += toString(layout, mesh) + "\n";
  for (const AssignedOp &op : found.ops) {
    for (const DimLayout &factor : op.assignment.factors)
      text += toString(Layout{{factor}, {}}, mesh);
    text += toString(Layout{{}, op.assignment.passedPartial}, mesh) + "\n";
  }
  for (const Reshard &reshard : found.reshards) {
    text += std::to_string(reshard.tensor) + " " + reshard.cause;
    for (const Step &step : reshard.steps)
      text += std::string(" ") + toString(step.kind) + " " +
              toString(step.result, mesh);
    text += "\n";
  }
  return text;
}

TEST(PropagatorTest, WhatItRemembersMakesNoDifference) {
  GraphBuilder small = blocks(1), large = blocks(4);
  small.output(small.unary("more", small.graph.ops.back().results[0]));
  int prices = 0;
  PropagateOptions options;
  options.cost = [&](StepKind kind, const SubAxes &axes, int64_t payload) {
    ++prices;
    return ringCost(1e-6, 5e9)(kind, axes, payload);
  };
  Propagator propagator(mesh, options);
  const std::string first =
      textOf(propagator.propagate(large.graph, large.pins));
  propagator.propagate(small.graph, small.pins);
  EXPECT_GT(prices, 0);
  EXPECT_NE(first.find("all_reduce"), std::string::npos) << first;

  // Nothing is planned twice, not in other programs either.
  prices = 0;
  GraphBuilder larger = blocks(8);
  propagator.propagate(larger.graph, larger.pins);
  EXPECT_EQ(textOf(propagator.propagate(large.graph, large.pins)), first);
  EXPECT_EQ(prices, 0);
  EXPECT_EQ(textOf(propagate(large.graph, mesh, large.pins, options)), first);
}

TEST(PropagatorTest, WhatIsDecidedIsAllThatReshardingNeeds) {
  GraphBuilder b = blocks(4);
  PropagateOptions options;
  options.cost = ringCost(1e-6, 5e9);
  Propagation both = propagate(b.graph, mesh, b.pins, options);
  ASSERT_FALSE(both.reshards.empty());
  Decided decided = Propagator(mesh, options).decide(b.graph, b.pins);
  Resharding found =
      Propagator(mesh, options).reshard(b.graph, b.pins, decided.shardings);
  ASSERT_FALSE(found.fault);
  EXPECT_EQ(found.seconds, both.reshardSeconds);
  Propagation again = both;
  again.reshards = found.reshards;
  EXPECT_EQ(textOf(again), textOf(both));
}

TEST(PropagatorTest, LayoutsMayBeOthersThanThoseThatWereDecided) {
  GraphBuilder b = blocks(1);
  PropagateOptions options;
  options.cost = ringCost(1e-6, 5e9);
  Propagator propagator(mesh, options);
  Shardings shardings = propagator.decide(b.graph, b.pins).shardings;
  auto replicated = [&](int tensor) {
    shardings.layouts.push_back(
        Layout::replicated(b.graph.tensors[tensor].shape));
    return static_cast<int>(shardings.layouts.size()) - 1;
  };
  // An input that comes whole: every rank takes its part.
  Shardings decided = shardings;
  int input = b.graph.ops.front().operands[0];
  shardings.tensors[input] = replicated(input);
  Resharding found = propagator.reshard(b.graph, b.pins, shardings);
  ASSERT_FALSE(found.fault);
  ASSERT_FALSE(found.reshards.empty());
  EXPECT_EQ(found.reshards.front().tensor, input);
  EXPECT_EQ(found.reshards.front().steps.front().kind, StepKind::AllSlice);

  // A result that its op does not give.
  shardings = decided;
  int op = b.ops["h.0.fc0"];
  shardings.ops[op].results[0] = replicated(b.graph.ops[op].results[0]);
  found = propagator.reshard(b.graph, b.pins, shardings);
  ASSERT_TRUE(found.fault);
  EXPECT_EQ(found.fault->first, op);
  EXPECT_NE(found.fault->second.find("result 0 is [{}, {}], by the others"),
            std::string::npos)
      << found.fault->second;
}

TEST(PropagatorTest, AnotherBlockIsAsMuchWorkAsTheOneBefore) {
  auto work = [](int count) { return blocks(count).run(mesh).numTries; };
  const int64_t four = work(4), eight = work(8), sixteen = work(16);
  EXPECT_GT(eight, four);
  EXPECT_EQ(sixteen - eight, 2 * (eight - four));
}

} // namespace
