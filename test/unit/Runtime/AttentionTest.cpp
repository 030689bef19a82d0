//===- AttentionTest.cpp - Attention and top-k on the CPU -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryRunner.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace ax;
using namespace ax::rt;

namespace {

struct Sizes {
  int64_t batch, heads, kvHeads, queries, keys, depth, valueDepth;
};

AttentionDesc makeDesc(const Sizes &s, DType type, bool headsInner = false) {
  auto view = [&](int64_t heads, int64_t length, int64_t depth) {
    TensorDesc result =
        TensorDesc::dense(type, {s.batch, heads, length, depth});
    // [batch, length, head, depth] in memory, as projections give it.
    if (headsInner)
      result.strides = {heads * length * depth, depth, heads * depth, 1};
    return result;
  };
  AttentionDesc desc;
  desc.q = view(s.heads, s.queries, s.depth);
  desc.k = view(s.kvHeads, s.keys, s.depth);
  desc.v = view(s.kvHeads, s.keys, s.valueDepth);
  desc.out = view(s.heads, s.queries, s.valueDepth);
  desc.scale = 1 / std::sqrt(static_cast<double>(s.depth));
  return desc;
}

void check(const AttentionDesc &desc, int32_t threads = 1) {
  std::vector<ViewData> data;
  runLibrary(desc, data, threads);
  if (testing::Test::HasFatalFailure())
    return;
  int64_t queries = desc.q.sizes[2], keys = desc.k.sizes[2];
  int64_t perKv = desc.q.sizes[1] / desc.k.sizes[1];
  double largest = 0;
  forEachIndex({desc.q.sizes[0], desc.q.sizes[1], queries},
               [&](const std::vector<int64_t> &i) {
                 std::vector<double> scores;
                 for (int64_t t = 0; t < keys; ++t) {
                   double score = 0;
                   for (int64_t d = 0; d < desc.q.sizes[3]; ++d)
                     score += data[0].get({i[0], i[1], i[2], d}) *
                              data[1].get({i[0], i[1] / perKv, t, d});
                   score *= desc.scale;
                   if (desc.softcap > 0)
                     score = desc.softcap * std::tanh(score / desc.softcap);
                   if (desc.hasMask) {
                     double mask = data[3].get({i[0], i[1], i[2], t});
                     if (desc.mask.dtype != DType::Bool)
                       score += mask;
                     else if (mask == 0)
                       score = -INFINITY;
                   }
                   if (desc.causal && t > i[2] + keys - queries)
                     score = -INFINITY;
                   scores.push_back(score);
                 }
                 double max = *std::max_element(scores.begin(), scores.end()),
                        sum = 0;
                 for (double &score : scores)
                   sum += score = std::exp(score - max);
                 for (int64_t d = 0; d < desc.v.sizes[3]; ++d) {
                   double want = 0;
                   for (int64_t t = 0; t < keys; ++t)
                     want += scores[static_cast<size_t>(t)] / sum *
                             data[2].get({i[0], i[1] / perKv, t, d});
                   double got = data.back().get({i[0], i[1], i[2], d});
                   if (max == -INFINITY && desc.emptyRowsZero)
                     EXPECT_EQ(got, 0);
                   else if (max == -INFINITY)
                     EXPECT_TRUE(std::isnan(got));
                   else
                     largest = std::max(largest, std::abs(got - want));
                 }
               });
  EXPECT_LE(largest, tolerance(desc.q.dtype)) << toString(desc);
}

const Sizes sizes[] = {{1, 2, 2, 5, 5, 4, 4},      {1, 4, 2, 33, 33, 8, 3},
                       {1, 2, 1, 6, 70, 8, 12},    {1, 1, 1, 1, 100, 16, 64},
                       {1, 2, 1, 50, 100, 24, 40}, {1, 1, 1, 77, 65, 36, 80},
                       {2, 3, 3, 7, 3, 5, 2}};

TEST(AttentionTest, EveryType) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const Sizes &s : sizes)
      for (bool causal : {false, true})
        for (bool headsInner : {false, true}) {
          AttentionDesc desc = makeDesc(s, type, headsInner);
          desc.causal = causal;
          check(desc, headsInner ? 3 : 1);
          desc.softcap = 0.5;
          desc.emptyRowsZero = true;
          check(desc);
        }
}

TEST(AttentionTest, Masks) {
  for (const Sizes &s : sizes)
    for (DType type : {DType::Bool, DType::F32})
      for (int flags = 0; flags < 16; ++flags) {
        AttentionDesc desc = makeDesc(s, DType::F32);
        desc.hasMask = true;
        desc.mask =
            TensorDesc::dense(type, {s.batch, s.heads, s.queries, s.keys});
        for (size_t d = 0; d < 4; ++d)
          if (flags >> d & 1)
            desc.mask.strides[d] = 0;
        check(desc);
        desc.causal = true;
        check(desc);
      }
}

// Transposed keys, as a cache may hold them.
TEST(AttentionTest, KeysStoredByDepth) {
  AttentionDesc desc = makeDesc({1, 2, 2, 40, 40, 8, 8}, DType::F32);
  desc.k.strides = {640, 320, 1, 40};
  check(desc);
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
  AttentionDesc desc = makeDesc({1, 1, 1, 3, 40, 4, 4}, DType::F32);
  desc.scale = 3000;
  check(desc);
  desc.scale = -3000;
  check(desc);
}

// As products over nothing.
TEST(AttentionTest, NoKeys) {
  AttentionDesc desc = makeDesc({1, 2, 1, 3, 0, 4, 8}, DType::F32);
  std::vector<ViewData> data;
  std::mt19937 random(1);
  for (int i = 0; i < 4; ++i)
    data.emplace_back(argumentDesc(desc, i));
  data[3].fillRandom(random);
  runLibrary(desc, data);
  for (int64_t i = 0; i < 2 * 3 * 8; ++i)
    EXPECT_EQ(data[3].memory.getDouble(i), 0);
}

TEST(AttentionTest, NaNIsNotLost) {
  AttentionDesc desc = makeDesc({1, 1, 1, 2, 40, 4, 4}, DType::F32);
  std::vector<ViewData> data;
  std::mt19937 random(1);
  for (int i = 0; i < 4; ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  data[1].memory.setDouble(21 * 4, std::nan(""));
  runLibrary(desc, data);
  EXPECT_TRUE(std::isnan(data[3].memory.getDouble(0)));
}

// Whatever rows are done together.
TEST(AttentionTest, HiddenKeysDoNotCount) {
  constexpr int64_t length = 60;
  AttentionDesc desc = makeDesc({1, 1, 1, length, length, 4, 4}, DType::F32);
  desc.causal = true;
  for (int operand : {1, 2})
    for (int64_t key : {0, 10, 30, 59}) {
      std::vector<ViewData> data;
      std::mt19937 random(1);
      for (int i = 0; i < 4; ++i) {
        data.emplace_back(argumentDesc(desc, i));
        data.back().fillRandom(random);
      }
      data[operand].memory.setDouble(key * 4, std::nan(""));
      runLibrary(desc, data);
      for (int64_t row = 0; row < length; ++row)
        EXPECT_EQ(std::isnan(data[3].memory.getDouble(row * 4)), row >= key)
            << operand << " " << key << " " << row;
    }
}

TEST(TopKTest, OrderTiesAndDims) {
  for (DType type : {DType::F32, DType::I32, DType::U8, DType::F16})
    for (bool smallest : {false, true})
      for (int64_t dim : {0, 1, 2})
        for (int64_t k : {0, 1, 3}) {
          TopKDesc desc;
          desc.x = TensorDesc::dense(type, {4, 5, 6});
          desc.dim = dim;
          desc.k = k;
          desc.smallest = smallest;
          std::vector<ViewData> data;
          runLibrary(desc, data, 2);
          forEachIndex(data[1].view.sizes, [&](std::vector<int64_t> index) {
            auto d = static_cast<size_t>(dim);
            std::vector<int64_t> order(static_cast<size_t>(desc.x.sizes[d]));
            std::iota(order.begin(), order.end(), 0);
            std::vector<int64_t> at = index;
            auto value = [&](int64_t i) {
              at[d] = i;
              return data[0].get(at) * (smallest ? 1 : -1);
            };
            std::stable_sort(order.begin(), order.end(),
                             [&](int64_t a, int64_t b) {
                               double left = value(a);
                               return left < value(b);
                             });
            int64_t want = order[static_cast<size_t>(index[d])];
            EXPECT_EQ(data[2].get(index), static_cast<double>(want));
            at[d] = want;
            EXPECT_EQ(data[1].get(index), data[0].get(at));
          });
        }
}

} // namespace
