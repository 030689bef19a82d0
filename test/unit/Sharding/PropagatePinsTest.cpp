//===- PropagatePinsTest.cpp - Which pins hold ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphBuilder.h"

#include <gtest/gtest.h>

using namespace ax::sharding;
using namespace ax::sharding::test;

namespace {

class PropagatePinsTest : public ::testing::Test {
protected:
  Mesh tp{{{"col", 4}}}, square{{{"row", 2}, {"col", 2}}};
  SubAxes col = {tp.whole("col")}, row = {square.whole("row")},
          column = {square.whole("col")};
};

/// A rowwise Linear asked for alone makes the one before it colwise.
TEST_F(PropagatePinsTest, PinsFlowBackwards) {
  GraphBuilder b;
  int x = b.input("x", {8, 64});
  int h = b.unary("act", b.bias("up.b", b.linear("up", x, 256)));
  int y = b.linear("down", h, 64);
  b.output(b.bias("down.b", y));
  b.pinFactor("down", "k", col, "--shard down=rowwise");
  Propagation result = b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 1");
  EXPECT_EQ(layoutText(result, h, tp), "[{}, {col}]");
  EXPECT_EQ(result.ops[b.ops["up"]].causes[2], "--shard down=rowwise");
}

TEST_F(PropagatePinsTest, UserBeatsRecipe) {
  GraphBuilder b;
  int x = b.input("x", {8, 64});
  int h = b.linear("up", x, 256);
  b.output(b.linear("down", b.unary("act", h), 64));
  b.pinFactor("up", "n", col);
  b.pinFactor("down", "k", col);
  int up = b.ops["up"], down = b.ops["down"];
  b.pins.factors.push_back({up, 2, DimLayout::whole(256), PinLevel::User,
                            "--shard up=replicate", false});
  b.pins.factors.push_back({down, 1, DimLayout::whole(256), PinLevel::User,
                            "--shard down=replicate", false});
  Propagation result = b.run(tp);
  EXPECT_TRUE(result.reshards.empty());
  EXPECT_EQ(layoutText(result, h, tp), "[{}, {}]");
}

TEST_F(PropagatePinsTest, PinsThatCannotBeFollowedWarn) {
  GraphBuilder b;
  int x = b.input("x", {8, 64});
  int h = b.linear("up", x, 30);
  b.output(b.sliceLast("half", b.norm("norm", h), 2));
  b.pins.factors.push_back({b.ops["half"], 2, DimLayout::split(15, col),
                            PinLevel::User, "--shard half", false});
  b.pins.factors.push_back({b.ops["norm"], 1, DimLayout::split(30, col),
                            PinLevel::User, "--shard norm", false});
  Propagation result = b.run(tp);
  ASSERT_EQ(result.warnings.size(), 2u);
  EXPECT_NE(result.warnings[0].find("does not divide"), std::string::npos);
  EXPECT_NE(result.warnings[1].find("norm: factor 1"), std::string::npos);
  EXPECT_NE(result.warnings[1].find("cannot be split"), std::string::npos);
}

/// A fused gate and up between norms that are split along the sequence, and
/// what the backward pass multiplies: had the sequence come in there before the
/// weights' features have their place, both weights would be split otherwise
/// than what is between them.
TEST_F(PropagatePinsTest, WhatIsAskedWeaklyTakesWhatOthersLeave) {
  GraphBuilder b;
  int x = b.norm("norm", b.input("x", {8, 64}));
  int both = b.linear("gate_up", x, 512);
  int gate = b.sliceLast("gate", both, 2);
  int h = b.mul("h", b.unary("act", gate), b.sliceLast("up", both, 2));
  int down = b.state("down.weight", {256, 64});
  int y = b.unary("out", b.linear("down", h, 64, down));
  int dh = b.linear("down.dx", y, 256, down, /*transposed=*/true);
  b.output(b.mul("gate.grad", dh, gate));
  b.output(y);
  b.pinFactor("gate_up", "n", col);
  b.pinFactor("down", "k", col);
  for (int tensor : {x, y}) {
    b.pinDim(tensor, 0, col, /*open=*/false);
    b.pins.tensors.back().level = PinLevel::Weak;
  }
  Propagation result = b.run(tp);
  EXPECT_EQ(countCollectives(result, tp),
            "all_gather{col} x 2, reduce_scatter{col} x 1");
  EXPECT_EQ(layoutText(result, both, tp), "[{}, 2 * 256{col}]");
  EXPECT_EQ(layoutText(result, y, tp), "[{col}, {}]");
}

/// Also where one of them uses an axis that the pin before had elsewhere: where
/// weights are stored is said after the recipe.
TEST_F(PropagatePinsTest, TheLastOfEqualPinsHolds) {
  GraphBuilder b;
  int w = b.state("w", {64, 64});
  b.output(b.unary("act", w));
  b.pinDim(w, 0, row);
  b.pinDim(w, 1, column);
  b.pinDim(w, 0, column);
  b.pinDim(w, 1, row);
  Propagation result = b.run(square);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_EQ(layoutText(result, w, square), "[{col}, {row}]");
}

TEST_F(PropagatePinsTest, APinThatCannotBeFollowedLeavesTheOneBefore) {
  GraphBuilder b;
  int w = b.state("w", {64, 64});
  b.output(b.unary("act", w));
  b.pinDim(w, 0, row);
  b.pins.tensors.push_back({w, 1, DimLayout::split(64, column), PinLevel::User,
                            "--shard w", false, true});
  b.pinDim(w, 0, column);
  Propagation result = b.run(square);
  EXPECT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(layoutText(result, w, square), "[{row}, {col}]");
}

} // namespace
