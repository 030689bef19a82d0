//===- PropagateTest.cpp - Known layouts come out of their pins -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GraphBuilder.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace ax::sharding;
using namespace ax::sharding::test;

namespace {

/// How a transformer is built and split.
struct Transformer {
  int64_t batch = 4, seq = 16, width = 64, heads = 8, kvHeads = 8, hidden = 256,
          vocabulary = 1000;
  int layers = 2;
  bool fusedQkv = false, gated = false, parallelBlocks = false, tied = true,
       biases = true;

  GraphBuilder b;
  std::vector<int> residuals;
  int logits = -1, ids = -1;

  int heads4(const std::string &name, int x, int64_t count) {
    int64_t d = width / heads;
    int split = b.reshape(name + ".split", x, {{batch}, {seq}, {count, d}},
                          {{batch}, {seq}, {count}, {d}});
    return b.transpose(name + ".t", split, {0, 2, 1, 3});
  }
  int withBias(const std::string &name, int x) {
    return biases ? b.bias(name + ".b", x) : x;
  }
  int attentionBlock(const std::string &p, int x, int mask) {
    int q, k, v;
    int64_t kv = width / heads * kvHeads;
    if (fusedQkv) {
      int qkv = withBias(p + "qkv", b.linear(p + "qkv", x, 3 * width));
      q = b.sliceLast(p + "q", qkv, 3);
      k = b.sliceLast(p + "k", qkv, 3);
      v = b.sliceLast(p + "v", qkv, 3);
    } else {
      q = withBias(p + "q", b.linear(p + "q", x, width));
      k = withBias(p + "k", b.linear(p + "k", x, kv));
      v = withBias(p + "v", b.linear(p + "v", x, kv));
    }
    int out = b.attention(p + "att", heads4(p + "q", q, heads),
                          heads4(p + "k", k, kvHeads),
                          heads4(p + "v", v, kvHeads), mask);
    int64_t d = width / heads;
    out =
        b.reshape(p + "join", b.transpose(p + "o.t", out, {0, 2, 1, 3}),
                  {{batch}, {seq}, {heads}, {d}}, {{batch}, {seq}, {heads, d}});
    return withBias(p + "o", b.linear(p + "o", out, width));
  }
  int mlpBlock(const std::string &p, int x) {
    int h =
        b.unary(p + "act", withBias(p + "up", b.linear(p + "up", x, hidden)));
    if (gated)
      h = b.mul(p + "gate.mul", h, b.linear(p + "gate", x, hidden));
    return withBias(p + "down", b.linear(p + "down", h, width));
  }
  void build() {
    ids = b.input("ids", {batch, seq});
    int mask = b.input("mask", {batch, seq});
    mask = b.unary("mask.not", mask);
    mask =
        b.reshape("mask.4d", mask, {{batch}, {seq}}, {{batch}, {}, {}, {seq}});
    int table = b.state("wte", {vocabulary, width});
    int x = b.embedding("embed", table, ids);
    int positions = b.constant("positions", {1, seq});
    int wpe = b.state("wpe", {32, width});
    x = b.add("embed.add", x, b.embedding("embed.pos", wpe, positions));
    residuals.push_back(x);
    for (int layer = 0; layer < layers; ++layer) {
      std::string p = "h" + std::to_string(layer) + ".";
      int n1 = b.norm(p + "ln1", x);
      int att = attentionBlock(p, n1, mask);
      if (parallelBlocks) {
        int mlp = mlpBlock(p, b.norm(p + "ln2", x));
        x = b.add(p + "res", mlp, b.add(p + "res0", att, x));
        residuals.push_back(x);
        continue;
      }
      x = b.add(p + "res1", x, att);
      residuals.push_back(x);
      x = b.add(p + "res2", x, mlpBlock(p, b.norm(p + "ln2", x)));
      residuals.push_back(x);
    }
    x = b.norm("lnf", x);
    logits = tied ? b.linear("head", x, vocabulary, table, true)
                  : b.linear("head", x, vocabulary);
    b.output(logits);
  }
  void megatron(SubAxes col) {
    b.pinFactor("embed", "vocabulary", col);
    b.pinFactor("head", "n", col);
    for (int layer = 0; layer < layers; ++layer) {
      std::string p = "h" + std::to_string(layer) + ".";
      b.pinHeads(p + "att", col);
      for (const char *name : {"qkv", "q", "k", "v"})
        if (b.ops.count(p + name) &&
            b.graph.ops[b.ops[p + name]].factorNames.size() > 0)
          b.pinFactor(p + name, "n", col, "--tp", /*elseWhole=*/true);
      b.pinFactor(p + "up", "n", col);
      if (gated)
        b.pinFactor(p + "gate", "n", col);
      b.pinFactor(p + "o", "k", col);
      b.pinFactor(p + "down", "k", col);
    }
  }
  void dataParallel(SubAxes data) { b.pinDim(ids, 0, data); }
};

class PropagateTest : public ::testing::Test {
protected:
  Mesh tp{{{"col", 4}}};
  SubAxes col = {tp.whole("col")};
};

TEST_F(PropagateTest, NothingAskedNothingDone) {
  Transformer t;
  t.build();
  Propagation result = t.b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "");
  EXPECT_TRUE(result.reshards.empty());
  for (const Layout &layout : result.tensors)
    EXPECT_TRUE(layout.isReplicated());
}

TEST_F(PropagateTest, Megatron) {
  for (bool fused : {false, true})
    for (bool gated : {false, true})
      for (bool biases : {false, true}) {
        Transformer t;
        t.fusedQkv = fused;
        t.gated = gated;
        t.biases = biases;
        t.build();
        t.megatron(col);
        Propagation result = t.b.run(tp);
        // Two a layer and one for the embedding, nothing else.
        EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 5");
        EXPECT_TRUE(result.warnings.empty());
        for (int residual : t.residuals)
          EXPECT_EQ(layoutText(result, residual, tp), "[{}, {}, {}]");
        EXPECT_EQ(layoutText(result, t.logits, tp), "[{}, {}, {col}]");
        EXPECT_EQ(sumPayload(result, t.b.graph, StepKind::AllReduce),
                  5 * 4 * 16 * 64 * 4);
      }
}

TEST_F(PropagateTest, FusedQkvIsStoredByHeads) {
  Transformer t;
  t.fusedQkv = true;
  t.build();
  t.megatron(col);
  Propagation result = t.b.run(tp);
  EXPECT_TRUE(result.warnings.empty());
  int weight = t.b.graph.ops[t.b.ops["h0.qkv"]].operands[1];
  EXPECT_EQ(layoutText(result, weight, tp), "[{}, 3 * 64{col}]");
  int bias = t.b.graph.ops[t.b.ops["h0.qkv.b"]].operands[1];
  EXPECT_EQ(layoutText(result, bias, tp), "[3 * 64{col}]");
}

TEST_F(PropagateTest, CausesNameTheFactor) {
  Transformer t;
  t.build();
  t.megatron(col);
  Propagation result = t.b.run(tp);
  std::vector<std::string> causes;
  for (const Reshard &reshard : result.reshards)
    if (reshard.seconds > 0)
      causes.push_back(reshard.cause);
  std::vector<std::string> expected = {
      "vocabulary of embed is split (--tp)", "k of h0.o is split (--tp)",
      "k of h0.down is split (--tp)", "k of h1.o is split (--tp)",
      "k of h1.down is split (--tp)"};
  EXPECT_EQ(causes, expected);
}

TEST_F(PropagateTest, VocabularyThatDoesNotDivide) {
  Transformer t;
  t.vocabulary = 1003;
  t.build();
  t.megatron(col);
  Propagation result = t.b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 5");
  EXPECT_EQ(layoutText(result, t.logits, tp), "[{}, {}, {col}]");
}

TEST_F(PropagateTest, FewerKeyValueHeadsThanRanks) {
  Transformer t;
  t.kvHeads = 2;
  t.biases = false;
  t.gated = true;
  t.build();
  t.megatron(col);
  Propagation result = t.b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 5");
  int k = t.b.graph.ops[t.b.ops["h0.k"]].operands[1];
  EXPECT_EQ(layoutText(result, k, tp), "[{}, {col:(1)2}]");
  int q = t.b.graph.ops[t.b.ops["h0.q"]].operands[1];
  EXPECT_EQ(layoutText(result, q, tp), "[{}, {col}]");
}

TEST_F(PropagateTest, OneKeyValueHead) {
  Transformer t;
  t.kvHeads = 1;
  t.build();
  t.megatron(col);
  EXPECT_EQ(countCollectives(t.b.run(tp), tp), "all_reduce{col} x 5");
}

TEST_F(PropagateTest, KeyValueHeadsThatDoNotDivide) {
  Transformer t;
  t.heads = 12;
  t.kvHeads = 3;
  t.width = 96;
  t.build();
  t.megatron(col);
  Propagation result = t.b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 5");
  int q = t.b.graph.ops[t.b.ops["h0.q"]].operands[1];
  EXPECT_EQ(layoutText(result, q, tp), "[{}, 3 * 32{col}]");
}

TEST_F(PropagateTest, ParallelBlocksReduceOnce) {
  for (bool biases : {false, true}) {
    Transformer t;
    t.parallelBlocks = true;
    t.biases = biases;
    t.build();
    t.megatron(col);
    EXPECT_EQ(countCollectives(t.b.run(tp), tp), "all_reduce{col} x 3");
  }
}

TEST_F(PropagateTest, SequenceParallel) {
  Transformer t;
  t.build();
  t.megatron(col);
  for (int residual : t.residuals)
    t.b.pinDim(residual, 1, col);
  Propagation result = t.b.run(tp);
  // The final norm is computed on slices, its result gathered for the head.
  EXPECT_EQ(countCollectives(result, tp),
            "all_gather{col} x 5, reduce_scatter{col} x 5");
  int norm = t.b.graph.ops[t.b.ops["h0.ln1"]].results[0];
  EXPECT_EQ(layoutText(result, norm, tp), "[{}, {col}, {}]");
  // Gathered once for q, k and v.
  EXPECT_EQ(sumPayload(result, t.b.graph, StepKind::AllGather),
            5 * 4 * 16 * 64 * 4);
}

TEST_F(PropagateTest, DataParallelNeedsNothing) {
  Mesh mesh({{"data", 2}});
  Transformer t;
  t.build();
  t.dataParallel(wholeAxes(mesh, {"data"}));
  Propagation result = t.b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "");
  EXPECT_EQ(layoutText(result, t.logits, mesh), "[{data}, {}, {}]");
  EXPECT_EQ(layoutText(result, t.residuals[2], mesh), "[{data}, {}, {}]");
  // Positions are the same for all.
  int positions = t.b.graph.ops[t.b.ops["embed.pos"]].results[0];
  EXPECT_EQ(layoutText(result, positions, mesh), "[{}, {}, {}]");
}

TEST_F(PropagateTest, DataAndTensorParallel) {
  Mesh mesh({{"data", 2}, {"col", 4}});
  Transformer t;
  t.fusedQkv = true;
  t.build();
  t.megatron(wholeAxes(mesh, {"col"}));
  t.dataParallel(wholeAxes(mesh, {"data"}));
  Propagation result = t.b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh), "all_reduce{col} x 5");
  EXPECT_EQ(sumPayload(result, t.b.graph, StepKind::AllReduce),
            5 * 2 * 16 * 64 * 4);
  EXPECT_EQ(layoutText(result, t.logits, mesh), "[{data}, {}, {col}]");
}

/// A chain of Linears: m over data and depth, k and n over row and col in turn,
/// weights stored over depth too.
TEST_F(PropagateTest, ThreeDimensional) {
  Mesh mesh({{"data", 2}, {"depth", 2}, {"row", 2}, {"col", 4}});
  GraphBuilder b;
  int64_t m = 64, width = 32, hidden = 128;
  int x = b.input("x", {m, width});
  b.pinDim(x, 0, wholeAxes(mesh, {"data", "depth"}));
  b.pinDim(x, 1, wholeAxes(mesh, {"col"}));
  int at = x;
  for (int i = 0; i < 4; ++i) {
    std::string name = "fc" + std::to_string(i);
    int64_t k = i % 2 ? hidden : width, n = i % 2 ? width : hidden;
    const char *kAxis = i % 2 ? "row" : "col";
    const char *nAxis = i % 2 ? "col" : "row";
    int weight = b.state(name + ".weight", {k, n});
    at = b.linear(name, at, n, weight);
    b.pinFactor(name, "k", wholeAxes(mesh, {kAxis}));
    b.pinFactor(name, "n", wholeAxes(mesh, {nAxis}));
    b.pinDim(weight, 0, wholeAxes(mesh, {kAxis, "depth"}), false);
    b.pinDim(weight, 1, wholeAxes(mesh, {nAxis}), false);
    at = b.unary(name + ".act", at);
  }
  b.output(at);
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{depth} x 4, all_reduce{col} x 2, all_reduce{row} x 2");
  // M n / (D Z r) over c, M n / (D Z c) over r.
  EXPECT_EQ(sumPayload(result, b.graph, StepKind::AllReduce),
            2 * (m * hidden / (2 * 2 * 2) + m * width / (2 * 2 * 4)) * 4);
  // k n / (r c).
  EXPECT_EQ(sumPayload(result, b.graph, StepKind::AllGather),
            4 * width * hidden / (2 * 4) * 4);
  int weight = b.graph.ops[b.ops["fc0"]].operands[1];
  EXPECT_EQ(layoutText(result, weight, mesh), "[{col, depth}, {row}]");
}

/// Three convolution-like steps against an identity: one reshard. The last sum
/// is scattered over what the identity is split by, so that a gather remains.
TEST_F(PropagateTest, OddChainNeedsOneReshard) {
  Mesh mesh({{"row", 2}, {"col", 2}});
  GraphBuilder b;
  int x = b.input("x", {64, 64});
  int at = x = b.linear("stem", x, 64);
  b.pinFactor("stem", "n", wholeAxes(mesh, {"col"}));
  for (int i = 0; i < 3; ++i) {
    std::string name = "fc" + std::to_string(i);
    at = b.unary(name + ".act", b.linear(name, at, 64));
    b.pinFactor(name, "k", wholeAxes(mesh, {i % 2 ? "row" : "col"}));
    b.pinFactor(name, "n", wholeAxes(mesh, {i % 2 ? "col" : "row"}));
  }
  int sum = b.add("sum", x, at);
  b.output(sum);
  Propagation result = b.run(mesh);
  EXPECT_EQ(countCollectives(result, mesh),
            "all_gather{row} x 1, all_reduce{col} x 1, all_reduce{row} x 1, "
            "reduce_scatter{col} x 1");
}

/// A mask used both split and whole is computed whole and sliced for nothing.
TEST_F(PropagateTest, SmallThingsAreComputedWhole) {
  GraphBuilder b;
  int mask = b.unary("mask.b", b.unary("mask.a", b.input("mask", {4, 64})));
  int x = b.input("x", {4, 64});
  int a = b.mul("a", x, mask);
  int y = b.linear("up", a, 64);
  b.output(b.unary("out", b.mul("scaled", y, b.norm("n", mask))));
  b.pinFactor("up", "k", col);
  Propagation result = b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 1");
  EXPECT_EQ(layoutText(result, mask, tp), "[{}, {}]");
}

TEST_F(PropagateTest, PartialMaximumPassesReshape) {
  GraphBuilder b;
  int x = b.input("x", {8, 64});
  int m = b.reduceSum("max", x, 1);
  b.graph.ops[0].rule.factors[1].reduce = ReduceKind::Max;
  b.graph.ops[0].rule.linear.clear();
  b.output(b.unary("f", b.reshape("r", m, {{2, 4}}, {{2}, {4}})));
  b.pins.factors.push_back(
      {0, 1, DimLayout::split(64, col), PinLevel::Recipe, "pin", false});
  Propagation result = b.run(tp);
  EXPECT_EQ(countCollectives(result, tp), "all_reduce{col} x 1");
  EXPECT_EQ(layoutText(result, b.graph.ops[1].results[0], tp),
            "[{}, {}], partial max {col}");
}

/// Conflicts everywhere.
void addStrangePins(GraphBuilder &b, const Mesh &mesh, std::mt19937 &random) {
  auto axis = [&] { return wholeAxes(mesh, {random() % 2 ? "row" : "col"}); };
  for (int i = 0; i < 5; ++i) {
    int op = static_cast<int>(random() % b.graph.ops.size());
    const Rule &rule = b.graph.ops[op].rule;
    int factor = static_cast<int>(random() % rule.factors.size());
    b.pins.factors.push_back(
        {op, factor, DimLayout::split(rule.factors[factor].size, axis()),
         PinLevel::User, "strange", i % 2 == 0, i == 1});
    int tensor = static_cast<int>(random() % b.graph.tensors.size());
    const std::vector<int64_t> &shape = b.graph.tensors[tensor].shape;
    if (shape.empty())
      continue;
    int dim = static_cast<int>(random() % shape.size());
    b.pins.tensors.push_back({tensor, dim, DimLayout::split(shape[dim], axis()),
                              PinLevel::User, "strange", i % 2 == 0, i != 3});
  }
}

/// The result is the same however the ops are numbered.
TEST_F(PropagateTest, OrderOfOpsDoesNotMatter) {
  Mesh mesh({{"data", 2}, {"row", 2}, {"col", 4}});
  std::mt19937 random(3);
  for (int round = 0; round < 24; ++round) {
    Transformer t;
    t.fusedQkv = round & 1;
    t.gated = round & 2;
    t.parallelBlocks = round & 4;
    t.kvHeads = t.fusedQkv || (round & 8) ? 8 : 2;
    t.build();
    t.megatron(wholeAxes(mesh, {"col"}));
    t.dataParallel(wholeAxes(mesh, {"data"}));
    if (round & 16)
      for (int residual : t.residuals)
        t.b.pinDim(residual, 1, wholeAxes(mesh, {"col"}));
    if (round % 4 == 3)
      addStrangePins(t.b, mesh, random);
    Propagation first = t.b.run(mesh);
    std::vector<int> order(t.b.graph.ops.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    GraphBuilder shuffled = t.b;
    std::vector<int> place(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      shuffled.graph.ops[i] = t.b.graph.ops[order[i]];
      place[order[i]] = static_cast<int>(i);
    }
    for (FactorPin &pin : shuffled.pins.factors)
      pin.op = place[pin.op];
    Propagation second = shuffled.run(mesh);
    for (size_t i = 0; i < first.tensors.size(); ++i)
      ASSERT_EQ(layoutText(first, i, mesh), layoutText(second, i, mesh))
          << "round " << round << " " << t.b.graph.tensors[i].name;
    EXPECT_EQ(countCollectives(first, mesh), countCollectives(second, mesh));
    for (size_t i = 0; i < order.size(); ++i)
      EXPECT_EQ(first.ops[order[i]].causes, second.ops[i].causes);
  }
}

} // namespace
