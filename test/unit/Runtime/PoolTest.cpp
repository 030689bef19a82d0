//===- PoolTest.cpp - Pools on the CPU ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WindowCases.h"

#include <map>

using namespace ax;
using namespace ax::rt;

namespace {

void checkPool(const PoolDesc &desc, int32_t threads = 1) {
  std::vector<ViewData> data;
  runLibrary(desc, data, threads);
  if (testing::Test::HasFatalFailure())
    return;
  double largest = 0;
  forEachIndex(desc.y.sizes, [&](const std::vector<int64_t> &y) {
    double max = -INFINITY, sum = 0, count = 0;
    forEachIndex(desc.kernel, [&](const std::vector<int64_t> &kernel) {
      std::vector<int64_t> x{y[0], y[1]};
      bool inside = true, padded = true;
      for (size_t d = 0; d < kernel.size(); ++d) {
        int64_t at = y[d + 2] * desc.strides[d] +
                     kernel[d] * desc.dilations[d] - desc.padsLow[d];
        x.push_back(at);
        inside &= at >= 0 && at < desc.x.sizes[d + 2];
        padded &= at >= -desc.padsLow[d] &&
                  at < desc.x.sizes[d + 2] + desc.padsHigh[d];
      }
      if (inside) {
        max = std::max(max, data[0].get(x));
        sum += data[0].get(x);
      }
      count += inside || (padded && desc.countIncludePad);
    });
    double want = desc.kind == PoolKind::Max   ? max
                  : desc.kind == PoolKind::Sum ? sum
                                               : sum / count;
    largest = std::max(largest, std::abs(want - data[1].get(y)));
  });
  EXPECT_LE(largest, 4 * tolerance(desc.y.dtype)) << toString(desc);
}

/// To the first largest element of each window; some are equal.
void checkMaxGradient(const PoolDesc &desc, int32_t threads) {
  std::mt19937 random(7);
  std::vector<ViewData> data{ViewData(desc.x), ViewData(desc.y),
                             ViewData(desc.dx)};
  for (ViewData &view : data)
    view.fillRandom(random);
  for (int64_t i = 0; i < data[0].memory.numElements(); ++i)
    data[0].memory.setDouble(i, std::round(2 * data[0].memory.getDouble(i)));
  runLibrary(desc, data, threads);
  if (testing::Test::HasFatalFailure())
    return;
  std::map<std::vector<int64_t>, double> wanted;
  forEachIndex(desc.y.sizes, [&](const std::vector<int64_t> &y) {
    std::vector<int64_t> best;
    forEachIndex(desc.kernel, [&](const std::vector<int64_t> &kernel) {
      std::vector<int64_t> x{y[0], y[1]};
      for (size_t d = 0; d < kernel.size(); ++d) {
        x.push_back(y[d + 2] * desc.strides[d] + kernel[d] * desc.dilations[d] -
                    desc.padsLow[d]);
        if (x.back() < 0 || x.back() >= desc.x.sizes[d + 2])
          return;
      }
      if (best.empty() || data[0].get(x) > data[0].get(best))
        best = x;
    });
    if (!best.empty())
      wanted[best] += data[1].get(y);
  });
  double largest = 0;
  forEachIndex(desc.x.sizes, [&](const std::vector<int64_t> &x) {
    largest = std::max(largest, std::abs(wanted[x] - data[2].get(x)));
  });
  EXPECT_LE(largest, 8 * tolerance(desc.dx.dtype)) << toString(desc);
}

/// The window of `c`; the last may reach past the padding.
PoolDesc makePool(const Case &c, PoolKind kind, DType type, bool last) {
  PoolDesc desc;
  desc.kind = kind;
  desc.kernel.assign(c.w.begin() + 2, c.w.end());
  desc.strides = c.strides;
  desc.dilations = c.dilations;
  desc.padsLow = c.padsLow;
  desc.padsHigh = c.padsHigh;
  // Padding must be smaller than the window.
  for (size_t d = 0; d < desc.kernel.size(); ++d) {
    int64_t most = desc.kernel[d] - 1;
    desc.padsLow[d] = std::min(desc.padsLow[d], most);
    desc.padsHigh[d] = std::min(desc.padsHigh[d], most);
  }
  std::vector<int64_t> y = c.x;
  for (size_t d = 0; d < desc.kernel.size(); ++d) {
    int64_t reach = (desc.kernel[d] - 1) * c.dilations[d] + 1;
    int64_t room = c.x[d + 2] + desc.padsLow[d] + desc.padsHigh[d] - reach;
    y[d + 2] = (room + c.strides[d] - 1) / c.strides[d] + 1;
    while ((y[d + 2] - 1) * c.strides[d] >= c.x[d + 2] + desc.padsLow[d])
      --y[d + 2];
  }
  desc.x = image(type, c.x, last);
  desc.y = image(type, y, last);
  return desc;
}

TEST(PoolTest, EveryForm) {
  for (const Case &c : cases)
    for (DType type : {DType::F32, DType::F16, DType::F64, DType::I8})
      for (PoolKind kind : {PoolKind::Max, PoolKind::Avg, PoolKind::Sum})
        for (bool last : {false, true})
          for (bool includePad : {false, true}) {
            if (kind == PoolKind::Avg && !isFloat(type))
              continue;
            PoolDesc desc = makePool(c, kind, type, last);
            desc.countIncludePad = includePad;
            checkPool(desc, last ? 2 : 1);
          }
}

/// Many short lines, lines that are cut into pieces, windows that lie far
/// apart, or of which there is one in a line.
const Case longCases[] = {
    {{2, 3, 40, 37}, {1, 1, 5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, 1, {}},
    {{1, 2, 37, 70}, {1, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1, {}},
    {{1, 3, 6, 1500}, {1, 1, 2, 3}, {1, 3}, {2, 5}, {1, 2}, {0, 2}, 1, {}},
    {{1, 2, 30000}, {1, 1, 7}, {2}, {3}, {9}, {8}, 1, {}},
    {{1, 70, 4, 300}, {1, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, {}},
    {{1, 2, 400}, {1, 1, 20}, {20}, {1}, {0}, {0}, 1, {}},
    {{1, 2, 3, 400}, {1, 1, 3, 40}, {1, 17}, {1, 2}, {1, 30}, {1, 9}, 1, {}},
    {{1, 2, 3, 5}, {1, 1, 4, 4}, {1, 1}, {2, 3}, {3, 3}, {3, 3}, 1, {}},
    {{1, 3, 30, 200}, {1, 1, 1, 200}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, {}},
    {{1, 17, 5, 90}, {1, 1, 2, 70}, {1, 5}, {1, 1}, {0, 3}, {0, 4}, 1, {}},
    {{1, 2, 4, 60}, {1, 1, 1, 20}, {1, 1}, {1, 3}, {0, 0}, {0, 0}, 1, {}},
    {{1, 2, 9, 20, 21},
     {1, 1, 3, 3, 3},
     {2, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1},
     1,
     {}},
};

TEST(PoolTest, LongAndShortLines) {
  for (const Case &c : longCases)
    for (DType type : {DType::F32, DType::BF16, DType::U8})
      for (PoolKind kind : {PoolKind::Max, PoolKind::Avg})
        for (bool last : {false, true})
          if (kind != PoolKind::Avg || isFloat(type))
            checkPool(makePool(c, kind, type, last), last ? 3 : 1);
}

/// Along a dimension, as its places are further apart than the image is long.
TEST(PoolTest, NothingButPadding) {
  for (bool last : {false, true}) {
    PoolDesc desc = makePool(
        {{1, 2, 3, 1}, {1, 1, 2, 2}, {1, 1}, {1, 2}, {0, 1}, {0, 1}, 1, {}},
        PoolKind::Max, DType::F32, last);
    ASSERT_EQ(desc.y.sizes, (std::vector<int64_t>{1, 2, 2, 1}));
    std::vector<ViewData> data;
    runLibrary(desc, data, 1);
    forEachIndex(desc.y.sizes, [&](const std::vector<int64_t> &y) {
      ASSERT_EQ(data[1].get(y), -INFINITY);
    });
  }
}

/// Windows that see one are NaN, and no others.
TEST(PoolTest, MaximaAreNaNWhereOneIs) {
  for (int64_t stride : {1, 2})
    for (bool last : {false, true}) {
      Case c{{1, 5, 24, 25},
             {1, 1, 3, 3},
             {stride, stride},
             {1, 1},
             {1, 1},
             {1, 1},
             1,
             {}};
      PoolDesc desc = makePool(c, PoolKind::Max, DType::F32, last);
      std::vector<ViewData> data{ViewData(desc.x), ViewData(desc.y)};
      int64_t numImage = 24 * 25;
      for (int64_t ch = 0; ch < 5; ++ch)
        for (int64_t i = 0; i < numImage; ++i)
          data[0].memory.setDouble(data[0].offset({0, ch, i / 25, i % 25}),
                                   i % 97 == ch ? NAN : double(i));
      runLibrary(desc, data, 1);
      forEachIndex(desc.y.sizes, [&](const std::vector<int64_t> &y) {
        bool isNaN = false;
        for (int64_t i = 0; i < 3; ++i)
          for (int64_t j = 0; j < 3; ++j) {
            int64_t row = y[2] * stride + i - 1, column = y[3] * stride + j - 1;
            if (row >= 0 && row < 24 && column >= 0 && column < 25)
              isNaN |= (row * 25 + column) % 97 == y[1];
          }
        ASSERT_EQ(isNaN, std::isnan(data[1].get(y)));
      });
    }
}

TEST(PoolTest, MaxGradient) {
  for (const Case &c : cases)
    for (DType type : {DType::F32, DType::F64})
      for (int lasts = 0; lasts < 8; ++lasts) {
        PoolDesc desc = makePool(c, PoolKind::MaxGradient, type, lasts & 1);
        desc.y = image(type, desc.y.sizes, lasts & 2);
        desc.dx = image(type, desc.x.sizes, lasts & 4);
        checkMaxGradient(desc, lasts & 1 ? 2 : 1);
      }
}

TEST(PoolTest, MaxGradientOfNaN) {
  PoolDesc desc;
  desc.kind = PoolKind::MaxGradient;
  desc.kernel = {3};
  desc.strides = desc.dilations = {1};
  desc.padsLow = desc.padsHigh = {0};
  desc.x = desc.dx = image(DType::F32, {3, 1, 3}, false);
  desc.y = image(DType::F32, {3, 1, 1}, false);
  const double x[] = {NAN, 1, 2, 1, NAN, NAN, -INFINITY, -INFINITY, -INFINITY};
  const double dx[] = {4, 0, 0, 0, 0, 4, 4, 0, 0};
  std::vector<ViewData> data{ViewData(desc.x), ViewData(desc.y),
                             ViewData(desc.dx)};
  for (int64_t i = 0; i < 9; ++i)
    data[0].memory.setDouble(i, x[i]);
  for (int64_t i = 0; i < 3; ++i)
    data[1].memory.setDouble(i, 4);
  runLibrary(desc, data, 1);
  for (int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(data[2].memory.getDouble(i), dx[i]) << i;
}

TEST(PoolTest, MaxGradientOfHugeImages) {
  PoolDesc desc;
  desc.kind = PoolKind::MaxGradient;
  desc.kernel = desc.strides = desc.dilations = {1};
  desc.padsLow = desc.padsHigh = {0};
  desc.x = desc.y = desc.dx =
      image(DType::F16, {1, 1, int64_t(1) << 31}, false);
  auto op = createTestDevices(1)[0]->prepare(desc, {});
  ASSERT_FALSE(bool(op));
  EXPECT_NE(llvm::toString(op.takeError())
                .find("gradients in images of 2^31 places and more"),
            std::string::npos);
}

// Mostly padding: the time does not depend on the window.
TEST(PoolTest, HugeWindows) {
  constexpr int64_t width = int64_t(1) << 40;
  PoolDesc desc;
  desc.kind = PoolKind::Max;
  desc.kernel = {width};
  desc.strides = desc.dilations = {1};
  desc.padsLow = {width - 1};
  desc.padsHigh = {0};
  desc.x = desc.y = image(DType::F32, {1, 1, 4}, false);
  std::vector<ViewData> data;
  runLibrary(desc, data, 1);
  if (testing::Test::HasFatalFailure())
    return;
  double max = -INFINITY;
  for (int64_t i = 0; i < 4; ++i) {
    max = std::max(max, data[0].get({0, 0, i}));
    EXPECT_EQ(data[1].get({0, 0, i}), max);
  }
}

} // namespace
