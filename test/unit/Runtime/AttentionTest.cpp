//===- AttentionTest.cpp - Attention on the CPU ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionCases.h"

#include <limits>

using namespace ax;
using namespace ax::rt;

namespace {

void check(AttentionDesc desc, int32_t threads = 1,
           llvm::function_ref<void(ViewData &)> fillMask = {}) {
  desc.givesLogSums = true;
  std::vector<ViewData> data;
  if (fillMask) {
    data = randomArguments(desc);
    fillMask(data[3]);
  }
  runLibrary(desc, data, threads);
  if (testing::Test::HasFatalFailure())
    return;
  int64_t perKv = desc.q.sizes[1] / desc.k.sizes[1];
  const ViewData *mask = desc.hasMask ? &data[3] : nullptr;
  const ViewData &out = data[data.size() - 2], &logSums = data.back();
  double largest = 0;
  forEachIndex({desc.q.sizes[0], desc.q.sizes[1], desc.q.sizes[2]},
               [&](const std::vector<int64_t> &i) {
                 AttentionWeights weights =
                     weigh(desc, data[0], data[1], mask, i);
                 const std::vector<double> &p = weights.p;
                 double logSum = logSums.get(i);
                 if (p.empty())
                   EXPECT_EQ(logSum, -INFINITY);
                 else
                   EXPECT_NEAR(logSum, weights.logSum,
                               1e-5 * (1 + std::abs(weights.logSum)));
                 for (int64_t d = 0; d < desc.v.sizes[3]; ++d) {
                   double want = 0;
                   for (size_t t = 0; t < p.size(); ++t)
                     want += p[t] * data[2].get({i[0], i[1] / perKv,
                                                 static_cast<int64_t>(t), d});
                   double got = out.get({i[0], i[1], i[2], d});
                   if (p.empty() && desc.emptyRowsZero)
                     EXPECT_EQ(got, 0);
                   else if (p.empty())
                     EXPECT_TRUE(std::isnan(got));
                   else
                     largest = std::max(largest, std::abs(got - want));
                 }
               });
  EXPECT_LE(largest, tolerance(desc.q.dtype)) << toString(desc);
}

TEST(AttentionTest, EveryType) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const AttentionSizes &s : attentionSizes)
      for (bool causal : {false, true})
        for (bool headsInner : {false, true}) {
          AttentionDesc desc = makeAttention(s, type, headsInner);
          desc.causal = causal;
          check(desc, headsInner ? 3 : 1);
          desc.softcap = 0.5;
          desc.emptyRowsZero = true;
          check(desc);
        }
}

TEST(AttentionTest, Masks) {
  for (const AttentionSizes &s : attentionSizes)
    for (DType type : {DType::Bool, DType::F32, DType::I64})
      for (int flags = type == DType::I64 ? 15 : 0; flags < 16; ++flags) {
        AttentionDesc desc = makeAttention(s, DType::F32);
        desc.hasMask = true;
        desc.mask =
            TensorDesc::dense(type, {s.batch, s.heads, s.queries, s.keys});
        for (size_t d = 0; d < 4; ++d)
          if (flags >> d & 1)
            desc.mask.strides[d] = 0;
        check(desc);
        desc.causal = true;
        check(desc);
        desc.emptyRowsMean = true;
        check(desc);
      }
}

// Of each key from which query on it is seen, if at all.
TEST(AttentionTest, PlacesOfKeys) {
  for (const AttentionSizes &s : attentionSizes)
    for (int flags : {4, 5, 6, 7})
      for (bool isMean : {false, true}) {
        AttentionDesc desc = makeAttention(s, DType::F32);
        desc.hasMask = true;
        desc.emptyRowsMean = isMean;
        desc.mask = TensorDesc::dense(DType::I64,
                                      {s.batch, s.heads, s.queries, s.keys});
        for (size_t d = 0; d < 4; ++d)
          if (flags >> d & 1)
            desc.mask.strides[d] = 0;
        check(desc, 1, [&](ViewData &mask) {
          std::mt19937 random(3);
          for (int64_t i = 0; i < mask.memory.numElements(); ++i)
            mask.memory.setInt(i, random() % 3
                                      ? static_cast<int64_t>(random() % 20) - 10
                                      : std::numeric_limits<int64_t>::min());
        });
      }
}

// Several blocks of queries, of which each reads other keys.
TEST(AttentionTest, Windows) {
  for (AttentionSizes s : {AttentionSizes{1, 2, 1, 150, 150, 8, 8},
                           AttentionSizes{2, 4, 2, 70, 130, 8, 16},
                           AttentionSizes{1, 1, 1, 90, 40, 4, 4},
                           AttentionSizes{2, 2, 1, 1, 200, 8, 8}})
    for (DType type : {DType::F32, DType::F64, DType::BF16})
      for (int64_t window : {1, 17, 64, 1000})
        for (int empty : {0, 1, 2}) {
          AttentionDesc desc = makeAttention(s, type);
          desc.causal = true;
          desc.window = window;
          desc.emptyRowsZero = empty == 1;
          desc.emptyRowsMean = empty == 2;
          check(desc);
          desc.softcap = 0.5;
          check(desc);
        }
}

TEST(AttentionTest, WindowsBesideMasks) {
  for (AttentionSizes s : {AttentionSizes{2, 4, 2, 70, 130, 8, 16},
                           AttentionSizes{2, 2, 1, 1, 200, 8, 8},
                           AttentionSizes{1, 2, 2, 100, 100, 8, 8}})
    for (DType type : {DType::Bool, DType::F32, DType::I64})
      for (int flags = 0; flags < 16; ++flags)
        for (bool isMean : {false, true}) {
          AttentionDesc desc = makeAttention(s, DType::F32);
          desc.hasMask = true;
          desc.emptyRowsMean = isMean;
          desc.window = 20;
          desc.causal = type != DType::I64 || flags % 3 == 0;
          desc.mask =
              TensorDesc::dense(type, {s.batch, s.heads, s.queries, s.keys});
          for (size_t d = 0; d < 4; ++d)
            if (flags >> d & 1 || (d == 2 && type == DType::I64))
              desc.mask.strides[d] = 0;
          check(desc, 1, [&](ViewData &mask) {
            std::mt19937 random(3);
            for (int64_t i = 0; i < mask.memory.numElements(); ++i)
              if (type == DType::I64)
                mask.memory.setInt(
                    i, random() % 3 ? static_cast<int64_t>(random() % 150) - 10
                       : random() % 2 ? std::numeric_limits<int64_t>::min()
                                      : std::numeric_limits<int64_t>::max());
              else if (type == DType::Bool)
                mask.memory.setDouble(i, random() % 30 == 0);
          });
        }
}

// Padding behind: the last queries' windows have no key, though earlier ones
// see some.
TEST(AttentionTest, WindowsInPadding) {
  for (DType type : {DType::Bool, DType::F32})
    for (int64_t queries : {1, 120})
      for (int64_t firstSeen : {0, 3})
        for (bool isMean : {false, true}) {
          AttentionDesc desc =
              makeAttention({1, 2, 1, queries, 120, 8, 8}, DType::F32);
          desc.causal = desc.hasMask = true;
          desc.emptyRowsMean = isMean;
          desc.emptyRowsZero = !isMean;
          desc.window = 16;
          desc.mask = TensorDesc::dense(type, {1, 2, queries, 120});
          desc.mask.strides = {0, 0, 0, 1};
          // A number that hides is finite: of nothing but such keys a query
          // attends to those of its window.
          bool isBool = type == DType::Bool;
          double seen = isBool ? 1 : 0, hidden = isBool ? 0 : -3e38;
          check(desc, 1, [&](ViewData &mask) {
            for (int64_t key = 0; key < 120; ++key)
              mask.memory.setDouble(key, key >= firstSeen && key < 50 ? seen
                                                                      : hidden);
          });
        }
}

TEST(AttentionTest, AWindowHasAnEnd) {
  AttentionDesc desc = makeAttention({1, 2, 1, 8, 8, 8, 8}, DType::F32);
  desc.causal = true;
  desc.window = 4;
  EXPECT_EQ(findFault(desc), "");
  desc.window = -1;
  EXPECT_EQ(findFault(desc), "its window is impossible");
  desc.window = 4;
  desc.causal = false;
  EXPECT_EQ(findFault(desc), "its window is impossible");
}

// The first key that anybody sees is none that the first query sees.
TEST(AttentionTest, PlacesFurtherBehind) {
  AttentionDesc desc = makeAttention({1, 2, 1, 70, 100, 8, 8}, DType::F32);
  desc.hasMask = true;
  desc.mask = TensorDesc::dense(DType::I64, {1, 2, 70, 100});
  desc.mask.strides = {0, 0, 0, 1};
  check(desc, 1, [&](ViewData &mask) {
    for (int64_t key = 0; key < 100; ++key)
      mask.memory.setInt(key, key < 80 ? key - 40
                                       : std::numeric_limits<int64_t>::max());
  });
}

// Sequences filled up in front: the first queries see no key.
TEST(AttentionTest, NoKeyInFront) {
  for (DType type : {DType::F32, DType::F64, DType::BF16})
    for (int64_t hidden : {1, 40, 70}) {
      AttentionDesc desc = makeAttention({1, 2, 1, 70, 70, 8, 8}, type);
      desc.causal = desc.hasMask = desc.emptyRowsMean = true;
      desc.mask = TensorDesc::dense(DType::Bool, {1, 2, 70, 70});
      desc.mask.strides = {0, 0, 0, 1};
      check(desc, 1, [&](ViewData &mask) {
        for (int64_t key = 0; key < 70; ++key)
          mask.memory.setDouble(key, key < hidden ? 0 : 1);
      });
    }
  AttentionDesc fewKeys = makeAttention({1, 2, 1, 70, 40, 8, 8}, DType::F32);
  fewKeys.causal = fewKeys.emptyRowsMean = true;
  check(fewKeys);
}

// As cuDNN is given them, in whose place the CPU may be.
TEST(AttentionTest, MasksOfF32BesideOtherTypes) {
  for (const AttentionSizes &s : attentionSizes)
    for (DType type : {DType::F16, DType::BF16, DType::F64})
      for (bool broadcasts : {false, true}) {
        AttentionDesc desc = makeAttention(s, type);
        desc.hasMask = true;
        desc.mask = TensorDesc::dense(DType::F32,
                                      {s.batch, s.heads, s.queries, s.keys});
        if (broadcasts)
          desc.mask.strides[1] = desc.mask.strides[3] = 0;
        check(desc);
      }
}

// Transposed keys, as a cache may hold them.
TEST(AttentionTest, KeysStoredByDepth) {
  AttentionDesc desc = makeAttention({1, 2, 2, 40, 40, 8, 8}, DType::F32);
  desc.k.strides = {640, 320, 1, 40};
  check(desc);
}

TEST(AttentionTest, LargeScoresDoNotOverflow) {
  AttentionDesc desc = makeAttention({1, 1, 1, 3, 40, 4, 4}, DType::F32);
  desc.scale = 3000;
  check(desc);
  desc.scale = -3000;
  check(desc);
}

// As products over nothing.
TEST(AttentionTest, NoKeys) {
  AttentionDesc desc = makeAttention({1, 2, 1, 3, 0, 4, 8}, DType::F32);
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
  AttentionDesc desc = makeAttention({1, 1, 1, 2, 40, 4, 4}, DType::F32);
  desc.givesLogSums = true;
  std::vector<ViewData> data;
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  data[1].memory.setDouble(21 * 4, std::nan(""));
  runLibrary(desc, data);
  EXPECT_TRUE(std::isnan(data[3].memory.getDouble(0)));
  EXPECT_TRUE(std::isnan(data[4].memory.getDouble(0)));
}

// Whatever rows are done together.
TEST(AttentionTest, HiddenKeysDoNotCount) {
  constexpr int64_t length = 60;
  AttentionDesc desc =
      makeAttention({1, 1, 1, length, length, 4, 4}, DType::F32);
  desc.causal = true;
  for (int64_t window : {0, 20})
    for (int operand : {1, 2})
      for (int64_t key : {0, 10, 30, 59}) {
        desc.window = window;
        std::vector<ViewData> data;
        std::mt19937 random(1);
        for (int i = 0; i < 4; ++i) {
          data.emplace_back(argumentDesc(desc, i));
          data.back().fillRandom(random);
        }
        data[operand].memory.setDouble(key * 4, std::nan(""));
        runLibrary(desc, data);
        for (int64_t row = 0; row < length; ++row)
          EXPECT_EQ(std::isnan(data[3].memory.getDouble(row * 4)),
                    row >= key && (window == 0 || row < key + window))
              << operand << " " << key << " " << row;
      }
}

/// Every query attends to keys first .. last - 1; of the others the mask says
/// `hidden`, and those that no panel of 32 shares with them are NaN where they
/// are `lost`.
std::vector<ViewData> attendTo(const AttentionDesc &desc, int64_t first,
                               int64_t last, double hidden, bool lost) {
  std::vector<ViewData> data;
  std::mt19937 random(1);
  for (int i = 0; i < 6; ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  int64_t keys = desc.k.sizes[2];
  for (int operand : {1, 2}) {
    int64_t width = argumentDesc(desc, operand).sizes[3];
    HostTensor &memory = data[operand].memory;
    for (int64_t i = 0; lost && i < memory.numElements(); ++i)
      if (int64_t t = i / width % keys; t < first / 32 * 32 || t >= last)
        memory.setDouble(i, std::nan(""));
  }
  HostTensor &mask = data[3].memory;
  for (int64_t i = 0; i < mask.numElements(); ++i) {
    int64_t t = i % keys;
    bool isSeen = first <= t && t < last;
    mask.setDouble(i, desc.mask.dtype == DType::Bool ? isSeen
                      : isSeen                       ? 0
                                                     : hidden);
  }
  runLibrary(desc, data);
  return data;
}

// As in a cache that is not full. The bits are those with all keys read.
TEST(AttentionTest, KeysThatNobodySeesAreNotRead) {
  for (const AttentionSizes &s : attentionSizes)
    for (DType type : {DType::F32, DType::BF16})
      for (bool causal : {false, true})
        for (auto [first, last] : {std::pair<int64_t, int64_t>(0, 1),
                                   {0, 33},
                                   {40, 60},
                                   {64, 65},
                                   {33, 100}}) {
          if (last > s.keys || (causal && s.keys - s.queries < first))
            continue;
          AttentionDesc desc = makeAttention(s, type);
          desc.causal = causal;
          desc.givesLogSums = desc.hasMask = true;
          desc.mask = TensorDesc::dense(DType::F32,
                                        {s.batch, s.heads, s.queries, s.keys});
          std::vector<ViewData> all = attendTo(desc, first, last, -1e30, false);
          for (auto [masked, hidden] :
               {std::pair<DType, double>(DType::F32, -INFINITY),
                {DType::F32, std::numeric_limits<float>::lowest()},
                {DType::Bool, 0}}) {
            desc.mask.dtype = masked;
            std::vector<ViewData> some =
                attendTo(desc, first, last, hidden, true);
            for (int result : {4, 5})
              for (int64_t i = 0; i < all[result].memory.numElements(); ++i)
                ASSERT_EQ(some[result].memory.getDouble(i),
                          all[result].memory.getDouble(i))
                    << toString(desc) << " " << first << " " << last;
          }
        }
}

// Causality leaves some queries of a text that is filled up in front nothing
// else than what is hidden by a number, which they average.
TEST(AttentionTest, CausalQueriesThatSeeNothingAverage) {
  int tried = 0;
  for (const AttentionSizes &s : attentionSizes)
    for (DType type : {DType::F32, DType::BF16})
      for (int64_t first : {1, 33, 40, 64})
        for (int64_t queries : {int64_t(1), s.queries}) {
          if (first >= s.keys || s.keys - s.queries >= first)
            continue;
          AttentionDesc desc = makeAttention(s, type);
          desc.causal = desc.givesLogSums = desc.hasMask = true;
          desc.emptyRowsZero = true;
          desc.mask = TensorDesc::dense(DType::F32, {1, 1, queries, s.keys});
          if (queries == 1)
            desc.mask.strides[2] = 0;
          desc.mask.sizes = {s.batch, s.heads, s.queries, s.keys};
          desc.mask.strides[0] = desc.mask.strides[1] = 0;
          std::vector<ViewData> some = attendTo(
              desc, first, s.keys, std::numeric_limits<float>::lowest(), false);
          std::vector<ViewData> all =
              attendTo(desc, first, s.keys, -1e30, false);
          for (int64_t i = 0; i < all[4].memory.numElements(); ++i)
            ASSERT_EQ(some[4].memory.getDouble(i), all[4].memory.getDouble(i))
                << toString(desc) << " " << first;
          ++tried;
        }
  EXPECT_GT(tried, 10);
}

// The lowest number added to every score leaves all of them alike.
TEST(AttentionTest, WhoSeesNothingAveragesAll) {
  constexpr int64_t keys = 100, depth = 4;
  AttentionDesc desc =
      makeAttention({1, 1, 1, 2, keys, depth, depth}, DType::F32);
  desc.hasMask = true;
  desc.mask = TensorDesc::dense(DType::F32, {1, 1, 2, keys});
  std::vector<ViewData> data;
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
  }
  for (int64_t i = 0; i < 2 * keys; ++i)
    data[3].memory.setDouble(i,
                             i < 3 ? 0 : std::numeric_limits<float>::lowest());
  runLibrary(desc, data);
  for (int64_t d = 0; d < depth; ++d) {
    double sum = 0;
    for (int64_t t = 0; t < keys; ++t)
      sum += data[2].memory.getDouble(t * depth + d);
    EXPECT_NEAR(data[4].memory.getDouble(depth + d), sum / keys, 1e-6);
  }
}

} // namespace
