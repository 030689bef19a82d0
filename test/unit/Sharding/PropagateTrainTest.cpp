//===- PropagateTrainTest.cpp - Gradients, stored layouts, images ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphBuilder.h"

#include <gtest/gtest.h>

using namespace ax::sharding;
using namespace ax::sharding::test;

namespace {

const int64_t rows = 64, width = 32, hidden = 128;

/// Two Linears with the gradients of weights and inputs. The 3-D layout: m over
/// (data, depth), k and n over the two others, stored over depth too.
struct ThreeDimensional {
  Mesh mesh;
  GraphBuilder b;
  int gradOut, dx[2], dw[2];

  explicit ThreeDimensional(const Mesh &mesh) : mesh(mesh) {
    int x = b.input("x", {rows, width});
    b.pinDim(x, 0, axes({"data", "depth"}));
    b.pinDim(x, 1, axes({"col"}));
    int w0 = weight("w0", width, hidden, "col", "row");
    int w1 = weight("w1", hidden, width, "row", "col");
    int h = linear("fc0", x, hidden, w0, "col", "row", false);
    int a = b.unary("act", h);
    int y = linear("fc1", a, width, w1, "row", "col", false);
    gradOut = b.unary("loss", y);
    dx[1] = linear("fc1.dx", gradOut, hidden, w1, "col", "row", true);
    dw[1] = grad("fc1.dw", a, gradOut, "row", "col");
    int dh = b.unary("act.grad", dx[1]);
    dx[0] = linear("fc0.dx", dh, width, w0, "row", "col", true);
    dw[0] = grad("fc0.dw", x, dh, "col", "row");
    b.output(b.unary("consumer", dx[0]));
  }
  SubAxes axes(const std::vector<std::string> &names) {
    SubAxes present;
    for (const std::string &name : names)
      if (mesh.axisSize(name) > 1)
        present.push_back(mesh.whole(name));
    return present;
  }
  int weight(const std::string &name, int64_t k, int64_t n, const char *kAxis,
             const char *nAxis) {
    int state = b.state(name, {k, n});
    b.pinDim(state, 0, axes({kAxis, "depth"}), false);
    b.pinDim(state, 1, axes({nAxis}), false);
    return state;
  }
  int linear(const std::string &name, int x, int64_t n, int w,
             const char *kAxis, const char *nAxis, bool transposed) {
    int y = b.linear(name, x, n, w, transposed);
    b.pinFactor(name, "k", axes({kAxis}));
    b.pinFactor(name, "n", axes({nAxis}));
    return y;
  }
  /// The gradient goes to where the weight is stored.
  int grad(const std::string &name, int x, int dy, const char *kAxis,
           const char *nAxis) {
    int dw = b.weightGrad(name, x, dy);
    b.pinDim(dw, 0, axes({kAxis, "depth"}), false, false);
    b.pinDim(dw, 1, axes({nAxis}), false, false);
    b.output(dw);
    return dw;
  }
};

TEST(PropagateTrain, WhatScaleAndBiasWantTooIsReducedOnce) {
  // The gradient in front of a norm is a partial sum. It goes on to the norm's
  // input, and, summed over rows, to scale and bias.
  Mesh mesh({{"col", 2}});
  GraphBuilder b;
  int dy = b.input("dy", {rows, hidden});
  int dh = b.linear("fc.dx", dy, width);
  b.pinFactor("fc.dx", "k", {mesh.whole("col")});
  int ones = b.constant("ones", {rows, 1});
  int x = b.input("x", {rows, width});
  b.output(b.unary("next", b.mul("dx", dh, x)));
  b.output(b.unary("scale", b.weightGrad("dscale", ones, b.mul("dyx", dh, x))));
  b.output(b.unary("bias", b.weightGrad("dbias", ones, dh)));
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 1");
}

/// What a token's experts give, weighted and summed, and the gradient of the
/// weights: neither needs the sum over col of all experts' features, though the
/// tokens behind them are split. Where memory is slow, that would not pay.
TEST(PropagateTrain, SumsOfExpertsAreReducedWhereTheyAreSmall) {
  const int64_t experts = 32;
  Mesh mesh({{"col", 2}});
  SubAxes col = {mesh.whole("col")};
  GraphBuilder b;
  int h = b.input("h", {rows, experts, hidden});
  int given = b.linear("down", h, width);
  b.pinFactor("down", "k", col);
  int weights = b.unary("routing", b.input("logits", {rows, experts, 1}));
  int y = b.reduceSum("sum", b.mul("weighted", given, weights), 1);
  b.pinDim(y, 0, col);
  int dy = b.unary("dy", y);
  int spread = b.reshape("dy1", dy, {{rows}, {width}}, {{rows}, {}, {width}});
  b.output(
      b.unary("routing.grad",
              b.reduceSum("dweights", b.mul("product", given, spread), 2)));
  Propagation result = b.run(mesh, 1, 1e12);
  EXPECT_EQ(sumPayload(result, b.graph, StepKind::ReduceScatter),
            4 * rows * (width + experts));
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{col} x 1, reduce_scatter{col} x 2");
}

/// The gradients that several Linears give to what they share, which is split
/// along its rows.
TEST(PropagateTrain, SumsAreAddedBeforeTheyAreScattered) {
  Mesh mesh({{"col", 2}});
  SubAxes col = {mesh.whole("col")};
  GraphBuilder b;
  int sum = -1;
  for (std::string name : {"q", "k", "v"}) {
    int dx = b.linear(name, b.input("d" + name, {rows, hidden}), width);
    b.pinFactor(name, "k", col);
    sum = sum < 0 ? dx : b.add("+" + name, sum, dx);
  }
  int dx = b.unary("norm.grad", sum);
  b.pinDim(dx, 0, col);
  b.output(dx);
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "reduce_scatter{col} x 1");
}

TEST(PropagateTrain, ThreeDimensionalForwardAndBackward) {
  const int64_t D = 2, Z = 2, R = 2, C = 4;
  Mesh mesh({{"data", D}, {"depth", Z}, {"row", R}, {"col", C}});
  ThreeDimensional net(mesh);
  Propagation result = net.b.run(mesh);
  // Forward: fc0 over col, fc1 over row. Backward: dX over n's axis each. A
  // weight is gathered once and used twice here. Its gradient is summed over
  // depth and data.
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{depth} x 2, all_reduce{col} x 2, all_reduce{data} x 2, "
            "all_reduce{row} x 2, reduce_scatter{depth} x 2");
  int64_t weight = width * hidden / (R * C);
  int64_t forward = rows * hidden / (D * Z * R) + rows * width / (D * Z * C);
  EXPECT_EQ(sumPayload(result, net.b.graph, StepKind::AllReduce),
            4 * (2 * forward + 2 * weight / Z));
  EXPECT_EQ(sumPayload(result, net.b.graph, StepKind::ReduceScatter),
            4 * 2 * weight);
  EXPECT_EQ(sumPayload(result, net.b.graph, StepKind::AllGather),
            4 * 2 * weight);
}

TEST(PropagateTrain, OnlyDepthIsZero3) {
  Mesh mesh({{"depth", 4}});
  ThreeDimensional net(mesh);
  Propagation result = net.b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{depth} x 2, reduce_scatter{depth} x 2");
}

TEST(PropagateTrain, OnlyDataIsPlainDataParallel) {
  Mesh mesh({{"data", 4}});
  ThreeDimensional net(mesh);
  Propagation result = net.b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{data} x 2");
  EXPECT_EQ(sumPayload(result, net.b.graph, StepKind::AllReduce),
            4 * 2 * width * hidden);
}

TEST(PropagateTrain, RowOneIsMegatron) {
  Mesh mesh({{"col", 4}});
  ThreeDimensional net(mesh);
  Propagation result = net.b.run(mesh);
  // Here k of the first is split: its sum, and dX of the second.
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 2");
}

/// dX of q, k and v add up before one all-reduce.
TEST(PropagateTrain, SumsAddBeforeTheyAreReduced) {
  Mesh mesh({{"col", 4}});
  GraphBuilder b;
  std::vector<int> parts;
  for (const char *name : {"q", "k", "v"}) {
    int dy = b.unary(std::string(name) + ".dy",
                     b.input(std::string(name) + ".in", {rows, width}));
    parts.push_back(b.linear(std::string(name) + ".dx", dy, width));
    b.pinFactor(std::string(name) + ".dx", "k", wholeAxes(mesh, {"col"}));
  }
  int sum = b.add("sum", b.add("qk", parts[0], parts[1]), parts[2]);
  b.output(b.norm("norm", sum));
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 1");
  EXPECT_EQ(layoutText(result, sum, mesh), "[{}, {}], partial sum {col}");
}

/// What one lacks besides is reduced before they meet, and only that: a sum
/// over slices in time is not to be taken apart again.
TEST(PropagateTrain, SumsMeetInWhatTheyHaveInCommon) {
  Mesh mesh({{"col", 4}, {"micro", 2, true}});
  GraphBuilder b;
  std::vector<int> parts;
  for (std::vector<std::string> axes :
       {std::vector<std::string>{"col", "micro"}, {"micro"}, {"micro"}}) {
    std::string name = "p" + std::to_string(parts.size());
    int dy = b.unary(name + ".dy", b.input(name + ".in", {rows, width}));
    parts.push_back(b.linear(name, dy, width));
    b.pinFactor(name, "k", wholeAxes(mesh, axes));
  }
  int sum = b.add("all", b.add("first", parts[0], parts[1]), parts[2]);
  b.output(b.norm("norm", sum));
  Propagation result = b.run(mesh);
  EXPECT_EQ(layoutText(result, sum, mesh), "[{}, {}], partial sum {micro}");
  EXPECT_EQ(countCollectives(result, mesh),
            "all_reduce{col} x 1, all_reduce{micro} x 1");
}

/// Each of a token's experts gives a sum and a bias: reduced is what is left
/// when they are added up. Of as much as before the bias sums would gain
/// nothing.
TEST(PropagateTrain, SumsWaitWhereLessIsLeftOfThem) {
  Mesh mesh({{"col", 4}});
  for (bool isMixed : {true, false}) {
    GraphBuilder b;
    int rowsOfAll = b.unary("rows", b.input("x", {rows, 2, width}));
    int made = b.linear("experts", rowsOfAll, hidden);
    b.pinFactor("experts", "k", wholeAxes(mesh, {"col"}));
    int biased = b.add("biased", made, b.input("bias", {rows, 2, hidden}));
    int last = isMixed ? b.reduceSum("mixed", biased, 1) : biased;
    b.output(b.norm("norm", last));
    Propagation result = b.run(mesh);
    EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 1");
    EXPECT_EQ(sumPayload(result, b.graph, StepKind::AllReduce),
              4 * rows * hidden * (isMixed ? 1 : 2));
  }
}

/// The backward pass reads it again, for the gradient of what it was weighted
/// with: both are sums of it, and each is less.
TEST(PropagateTrain, SumsPassWhatIsAddedOnTwoWays) {
  Mesh mesh({{"col", 4}});
  GraphBuilder b;
  int made = b.linear("experts",
                      b.unary("rows", b.input("x", {2048, 4, width})), hidden);
  b.pinFactor("experts", "k", wholeAxes(mesh, {"col"}));
  int biased = b.add("biased", made, b.input("bias", {2048, 4, hidden}));
  int mixed = b.reduceSum("mixed", biased, 1);
  b.output(b.norm("norm", mixed));
  int product = b.mul("product", biased, b.input("dy", {2048, 4, hidden}));
  int shares = b.reduceSum("shares", product, 2);
  b.output(b.norm("softmax", shares));
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 2");
  EXPECT_EQ(sumPayload(result, b.graph, StepKind::AllReduce),
            4 * 2048 * (hidden + 4));
}

/// A residual's gradient and those of q, k and v are one sum, which a norm's
/// scale and bias want as well as the norm: it is reduced before them, once.
TEST(PropagateTrain, SumsBehindAResidualAreReducedOnce) {
  Mesh mesh({{"col", 4}});
  GraphBuilder b;
  int sum = b.input("residual", {rows, width});
  for (const char *name : {"q", "k", "v"}) {
    int dy = b.unary(std::string(name) + ".dy",
                     b.input(std::string(name) + ".in", {rows, width}));
    std::string product = std::string(name) + ".dx";
    int dx = b.linear(product, dy, width);
    b.pinFactor(product, "k", wholeAxes(mesh, {"col"}));
    sum = b.add(std::string(name) + ".sum", sum, dx);
  }
  b.output(b.unary("shift", b.reduceSum("bias", sum, 0)));
  int scaled = b.mul("scaled", sum, b.input("normalized", {rows, width}));
  b.output(b.unary("step", b.reduceSum("scale", scaled, 0)));
  b.output(b.norm("norm", sum));
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 1");
  EXPECT_EQ(sumPayload(result, b.graph, StepKind::AllReduce), 4 * rows * width);
}

/// ZeRO-1: the update is computed on slices of what every rank stores.
TEST(PropagateTrain, OptimizerStateSplitOverData) {
  Mesh mesh({{"data", 4}});
  SubAxes data = wholeAxes(mesh, {"data"});
  GraphBuilder b;
  int x = b.input("x", {rows, width}), dy = b.input("dy", {rows, hidden});
  b.pinDim(x, 0, data);
  b.pinDim(dy, 0, data);
  int grad = b.weightGrad("dw", x, dy);
  int momentum = b.state("momentum", {width, hidden});
  b.pinDim(momentum, 0, data, false);
  int moved = b.add("momentum.new",
                    b.mul("decay", momentum, b.constant("beta", {1, 1})), grad);
  b.output(moved);
  b.pinDim(moved, 0, data, false);
  int weight = b.state("w", {width, hidden});
  b.pinDim(weight, 0, {}, false);
  int updated = b.add("w.new", weight, moved);
  b.pinDim(updated, 0, {}, false);
  b.output(updated);
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{data} x 1, reduce_scatter{data} x 1");
}

/// Bottleneck blocks of a ResNet, output and input channels over col in turn;
/// three convolutions are odd, so the identity needs a gather.
TEST(PropagateTrain, Bottlenecks) {
  Mesh mesh({{"data", 2}, {"col", 4}});
  SubAxes col = wholeAxes(mesh, {"col"});
  GraphBuilder b;
  int x = b.input("x", {4, 64, 8, 8});
  b.pinDim(x, 0, wholeAxes(mesh, {"data"}));
  for (int block = 0; block < 2; ++block) {
    std::string p = "b" + std::to_string(block) + ".";
    int y = b.unary(p + "relu1", b.conv(p + "c1", x, 32));
    y = b.unary(p + "relu2", b.conv(p + "c2", y, 32));
    y = b.conv(p + "c3", y, 64);
    x = b.unary(p + "relu3", b.add(p + "add", x, y));
    b.pinFactor(p + "c1", "n", col);
    b.pinFactor(p + "c2", "k", col);
    b.pinFactor(p + "c3", "n", col);
  }
  b.output(x);
  Propagation result = b.run(mesh);
  // The last block's result stays split: outputs are put together anyway.
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{col} x 1, all_reduce{col} x 2");
  EXPECT_EQ(layoutText(result, x, mesh), "[{data}, {col}, {}, {}]");
}

} // namespace
