//===- AttentionGradientTest.cpp - Attention backwards on the CPU ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionCases.h"

using namespace ax;
using namespace ax::rt;

namespace {

TensorDesc denseAs(const TensorDesc &view) {
  return TensorDesc::dense(view.dtype, view.sizes);
}

AttentionGradientDesc makeGradient(const AttentionDesc &forward) {
  return {forward, forward.out, denseAs(forward.q), denseAs(forward.k),
          denseAs(forward.v)};
}

/// What attention gave, rounded as it is when it is read again.
void setResult(const AttentionDesc &desc, std::vector<ViewData> &data) {
  std::vector<ViewData> forward{data[0], data[1], data[2]};
  if (desc.hasMask)
    forward.push_back(data[5]);
  forward.push_back(data[3]);
  runLibrary(desc, forward);
  data[3] = forward.back();
}

/// dq, dk and dv by their definition.
std::vector<ViewData> reference(const AttentionDesc &desc,
                                const std::vector<ViewData> &data) {
  std::vector<ViewData> to;
  for (const TensorDesc *view : {&desc.q, &desc.k, &desc.v})
    to.emplace_back(TensorDesc::dense(DType::F64, view->sizes));
  auto add = [](ViewData &sum, const std::vector<int64_t> &at, double value) {
    sum.memory.setDouble(sum.offset(at), sum.get(at) + value);
  };
  int64_t perKv = desc.q.sizes[1] / desc.k.sizes[1];
  int64_t keys = desc.k.sizes[2], depth = desc.q.sizes[3],
          width = desc.v.sizes[3];
  const ViewData *mask = desc.hasMask ? &data[5] : nullptr;
  forEachIndex(
      {desc.q.sizes[0], desc.q.sizes[1], desc.q.sizes[2]},
      [&](const std::vector<int64_t> &i) {
        AttentionWeights weights = weigh(desc, data[0], data[1], mask, i);
        if (weights.p.empty() && desc.emptyRowsZero)
          return;
        if (weights.p.empty())
          weights = {std::vector<double>(static_cast<size_t>(keys), NAN),
                     std::vector<double>(static_cast<size_t>(keys), 1)};
        auto gradient = [&](int64_t d) {
          return data[4].get({i[0], i[1], i[2], d});
        };
        double total = 0;
        for (int64_t d = 0; d < width; ++d)
          total += gradient(d) * data[3].get({i[0], i[1], i[2], d});
        for (int64_t t = 0; t < keys; ++t) {
          auto key = [&](int64_t d) {
            return std::vector<int64_t>{i[0], i[1] / perKv, t, d};
          };
          double dp = 0, p = weights.p[static_cast<size_t>(t)];
          for (int64_t d = 0; d < width; ++d) {
            dp += gradient(d) * data[2].get(key(d));
            add(to[2], key(d), p * gradient(d));
          }
          double ds = desc.scale * p * (dp - total) *
                      weights.slopes[static_cast<size_t>(t)];
          for (int64_t d = 0; d < depth; ++d) {
            std::vector<int64_t> query{i[0], i[1], i[2], d};
            add(to[0], query, ds * data[1].get(key(d)));
            add(to[1], key(d), ds * data[0].get(query));
          }
        }
      });
  return to;
}

void check(const AttentionGradientDesc &desc, int32_t threads = 1) {
  std::vector<ViewData> data = randomArguments(desc);
  setResult(desc.forward, data);
  runLibrary(desc, data, threads);
  if (testing::Test::HasFatalFailure())
    return;
  std::vector<ViewData> want = reference(desc.forward, data);
  // Sums over all queries are longer than a result's.
  double most = 8 * tolerance(desc.gradient.dtype);
  for (size_t result = 0; result < 3; ++result) {
    const ViewData &got = data[data.size() - 3 + result];
    double largest = 0;
    forEachIndex(got.view.sizes, [&](const std::vector<int64_t> &i) {
      largest = std::max(largest, distance(got.get(i), want[result].get(i)));
    });
    EXPECT_LE(largest, most) << toString(desc) << ", result " << result;
  }
}

TEST(AttentionGradientTest, EveryType) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (const AttentionSizes &s : attentionSizes)
      for (bool causal : {false, true})
        for (bool headsInner : {false, true}) {
          AttentionDesc desc = makeAttention(s, type, headsInner);
          desc.causal = causal;
          check(makeGradient(desc), headsInner ? 3 : 1);
          desc.softcap = 0.5;
          desc.emptyRowsZero = true;
          check(makeGradient(desc));
        }
}

TEST(AttentionGradientTest, Masks) {
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
        check(makeGradient(desc));
        desc.causal = true;
        desc.emptyRowsZero = true;
        check(makeGradient(desc));
        desc.emptyRowsZero = false;
        desc.emptyRowsMean = true;
        check(makeGradient(desc));
      }
}

// Several blocks of queries, the last one shorter.
TEST(AttentionGradientTest, ManyQueries) {
  for (bool causal : {false, true}) {
    AttentionDesc desc = makeAttention({1, 2, 1, 250, 130, 8, 16}, DType::F32);
    desc.causal = causal;
    check(makeGradient(desc));
    desc.emptyRowsZero = true;
    check(makeGradient(desc));
    desc.emptyRowsZero = false;
    desc.emptyRowsMean = true;
    check(makeGradient(desc));
  }
}

TEST(AttentionGradientTest, Windows) {
  for (int64_t window : {1, 17, 70, 1000})
    for (DType type : {DType::F32, DType::F64})
      for (int mask : {0, 1, 2}) {
        AttentionDesc desc = makeAttention({2, 4, 2, 230, 260, 8, 16}, type);
        desc.causal = mask != 2;
        desc.window = window;
        desc.hasMask = mask != 0;
        desc.mask = TensorDesc::dense(mask == 1 ? DType::Bool : DType::I64,
                                      {2, 4, 230, 260});
        desc.mask.strides[1] = desc.mask.strides[2] = 0;
        check(makeGradient(desc));
        desc.emptyRowsMean = true;
        check(makeGradient(desc));
        desc.softcap = 0.5;
        check(makeGradient(desc));
      }
}

TEST(AttentionGradientTest, ThreadsDoNotChangeABit) {
  AttentionGradientDesc desc =
      makeGradient(makeAttention({3, 4, 2, 40, 50, 8, 8}, DType::F32));
  std::vector<ViewData> one = randomArguments(desc), three = one;
  runLibrary(desc, one, 1);
  runLibrary(desc, three, 3);
  for (size_t i = 5; i < one.size(); ++i)
    for (int64_t j = 0; j < one[i].memory.numElements(); ++j)
      ASSERT_EQ(one[i].memory.getDouble(j), three[i].memory.getDouble(j));
}

// As parts of one tensor [batch, rows, three, heads, size].
TEST(AttentionGradientTest, ResultsWithStrides) {
  AttentionGradientDesc desc =
      makeGradient(makeAttention({2, 2, 2, 6, 6, 4, 4}, DType::F32));
  std::vector<ViewData> dense = randomArguments(desc);
  runLibrary(desc, dense);
  AttentionGradientDesc strided = desc;
  for (TensorDesc *view : {&strided.dq, &strided.dk, &strided.dv})
    view->strides = {6 * 24, 4, 24, 1};
  ASSERT_EQ(findFault(strided), "");
  std::vector<ViewData> parts(dense.begin(), dense.begin() + 5);
  for (int i = 5; i < 8; ++i)
    parts.emplace_back(argumentDesc(strided, i));
  runLibrary(strided, parts);
  for (size_t i = 5; i < 8; ++i)
    forEachIndex(desc.dq.sizes, [&](const std::vector<int64_t> &at) {
      EXPECT_EQ(parts[i].get(at), dense[i].get(at));
    });
}

// As products over nothing.
TEST(AttentionGradientTest, NoKeysOrNoQueries) {
  for (auto [queries, keys] : {std::pair(3, 0), {0, 3}}) {
    AttentionGradientDesc desc =
        makeGradient(makeAttention({1, 2, 1, queries, keys, 4, 8}, DType::F32));
    std::vector<ViewData> data = randomArguments(desc);
    runLibrary(desc, data);
    for (size_t i = 5; i < data.size(); ++i)
      for (int64_t j = 0; j < data[i].memory.numElements(); ++j)
        EXPECT_EQ(data[i].memory.getDouble(j), 0);
  }
}

TEST(AttentionGradientTest, FaultsAreFound) {
  AttentionGradientDesc good =
      makeGradient(makeAttention(attentionSizes[0], DType::F32));
  EXPECT_EQ(findFault(good), "");
  AttentionGradientDesc sizes = good;
  sizes.gradient.sizes[3] += 1;
  EXPECT_NE(findFault(sizes), "");
  AttentionGradientDesc types = good;
  types.gradient.dtype = DType::F64;
  EXPECT_NE(findFault(types), "");
  for (TensorDesc AttentionGradientDesc::*result :
       {&AttentionGradientDesc::dq, &AttentionGradientDesc::dk,
        &AttentionGradientDesc::dv}) {
    AttentionGradientDesc bad = good;
    (bad.*result).sizes[2] += 1;
    EXPECT_NE(findFault(bad), "");
    bad = good;
    (bad.*result).dtype = DType::F64;
    EXPECT_NE(findFault(bad), "");
    bad = good;
    (bad.*result).strides[3] = 0;
    EXPECT_NE(findFault(bad), "");
  }
  AttentionGradientDesc keys = good;
  for (TensorDesc *view : {&keys.forward.k, &keys.forward.v})
    view->sizes[2] = int64_t(1) << 60, view->sizes[3] = 0;
  keys.forward.q.sizes[3] = keys.forward.out.sizes[3] = keys.gradient.sizes[3] =
      0;
  EXPECT_NE(findFault(keys), "");
  AttentionGradientDesc heads = good;
  heads.forward.k.sizes[1] = 3;
  EXPECT_NE(findFault(heads), "");
}

} // namespace
