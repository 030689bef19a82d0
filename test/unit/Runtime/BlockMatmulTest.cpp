//===- BlockMatmulTest.cpp - Products with matrices of few bits -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryRunner.h"
#include "ax/Runtime/BlockKernels.h"

#include <algorithm>
#include <cstring>

using namespace ax;
using namespace ax::rt;

namespace {

BlockMatmulDesc blocksOf(int64_t rows, int64_t blocks, int64_t block,
                         int64_t columns, int64_t bits, bool hasZeros) {
  int64_t k = blocks * block;
  BlockMatmulDesc desc;
  desc.x = TensorDesc::dense(DType::F32, {rows, k});
  desc.w = TensorDesc::dense(DType::U8, {columns, k * bits / 8});
  desc.scales = TensorDesc::dense(DType::F32, {columns, blocks});
  desc.y = TensorDesc::dense(DType::F32, {rows, columns});
  desc.bits = bits;
  desc.hasZeros = hasZeros;
  return desc;
}

/// All bits of a byte are random.
void fillBytes(HostTensor &bytes, unsigned seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < bytes.numElements(); ++i)
    bytes.mutableData()[i] = static_cast<char>(random());
}

/// What a block of x is rounded to.
void roundBlock(float *x, int64_t length) {
  float largest = 0;
  for (int64_t i = 0; i < length; ++i)
    largest = std::max(largest, std::fabs(x[i]));
  float factor = largest == 0 ? 0 : 127 / largest, scale = largest / 127;
  for (int64_t i = 0; i < length; ++i)
    x[i] = std::nearbyint(x[i] * factor) * scale;
}

/// A product by its definition.
std::vector<double> expected(const BlockMatmulDesc &desc,
                             const std::vector<float> &x, const uint8_t *w,
                             const float *scales, const uint8_t *zeros) {
  int64_t rows = desc.x.sizes[0], k = desc.x.sizes[1], n = desc.w.sizes[0];
  int64_t blocks = desc.scales.sizes[1], block = k / blocks;
  std::vector<float> rounded = x;
  for (int64_t i = 0; i < rows * blocks; ++i)
    roundBlock(rounded.data() + i * block, block);
  std::vector<double> y(rows * n);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < n; ++c)
      for (int64_t i = 0; i < k; ++i) {
        int64_t place = c * blocks + i / block, byte = c * k + i;
        int64_t perByte = 8 / desc.bits;
        int number = w[byte / perByte] >> byte % perByte * desc.bits &
                     ((1 << desc.bits) - 1);
        int zero = zeros ? zeros[place] : 1 << (desc.bits - 1);
        y[r * n + c] += static_cast<double>(rounded[r * k + i]) *
                        (number - zero) * scales[place];
      }
  return y;
}

double largestOf(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::fabs(value));
  return largest;
}

struct Size {
  int64_t rows, blocks, block, columns;
};

// Rows and columns around tiles and panels; blocks that are less than a vector,
// and more; numbers that are more than are parted at a time.
TEST(BlockMatmulTest, Sizes) {
  const Size sizes[] = {{1, 3, 16, 1},   {1, 7, 32, 70},  {2, 5, 64, 33},
                        {3, 2, 128, 32}, {6, 3, 256, 5},  {7, 9, 16, 31},
                        {8, 6, 32, 65},  {20, 3, 64, 40}, {13, 2, 512, 64},
                        {9, 300, 16, 3}, {7, 1, 16, 16},  {1, 1, 8192, 3},
                        {9, 2, 8192, 3}, {0, 2, 32, 4},   {3, 2, 32, 0}};
  for (const Size &size : sizes)
    for (int64_t bits : {2, 4, 8})
      for (bool hasZeros : {false, true}) {
        BlockMatmulDesc desc = blocksOf(size.rows, size.blocks, size.block,
                                        size.columns, bits, hasZeros);
        ASSERT_EQ(findFault(desc), "");
        std::vector<ViewData> data = randomArguments(desc);
        fillBytes(data[1].memory, 3);
        if (hasZeros)
          fillBytes(data[3].memory, 5);
        runLibrary(desc, data, 2);
        auto *floats = reinterpret_cast<const float *>(data[0].memory.data());
        std::vector<double> want = expected(
            desc, {floats, floats + desc.x.numElements()},
            data[1].memory.data(),
            reinterpret_cast<const float *>(data[2].memory.data()),
            hasZeros ? reinterpret_cast<const uint8_t *>(data[3].memory.data())
                     : nullptr);
        double tolerance = 2e-6 * largestOf(want);
        for (int64_t r = 0; r < size.rows; ++r)
          for (int64_t c = 0; c < size.columns; ++c)
            ASSERT_NEAR(data.back().get({r, c}), want[r * size.columns + c],
                        tolerance)
                << toString(desc) << " " << size.block << " " << hasZeros;
      }
}

/// Memory of rows that were rounded.
struct Rounded {
  std::vector<int8_t> numbers;
  std::vector<float> scales, sums;
  QuantizedRows rows() { return {numbers.data(), scales.data(), sums.data()}; }
};

Rounded roundRows(const BlockKernels &kernels, const BlockShape &shape,
                  const std::vector<float> &x, int64_t rows, bool isOfFew) {
  Rounded rounded;
  rounded.numbers.resize(rows * shape.rowBytes(kernels.vectorLanes), 77);
  rounded.scales.resize(
      rows * (isOfFew ? shape.paddedLanes(kernels.vectorLanes) : shape.blocks));
  rounded.sums.resize(rows * shape.blocks);
  kernels.quantize(shape, x.data(), 0, rows, isOfFew, rounded.rows());
  return rounded;
}

/// Arguments of a product, and what it gives.
struct Example {
  BlockMatmulDesc desc;
  BlockShape shape;
  std::vector<ViewData> data;
  std::vector<float> x;
  BlockMatrix w;
  std::vector<double> want;

  Example(int64_t rows, int64_t block, int64_t columns, int64_t bits)
      : desc(blocksOf(rows, 5, block, columns, bits, /*hasZeros=*/true)),
        data(randomArguments(desc)) {
    shape.bits = static_cast<int32_t>(bits);
    shape.blocks = 5;
    shape.laneCount = block / shape.groups() / laneBytes;
    fillBytes(data[1].memory, 3);
    fillBytes(data[3].memory, 5);
    auto *floats = reinterpret_cast<const float *>(data[0].memory.data());
    x.assign(floats, floats + desc.x.numElements());
    w = {data[1].memory.data(),
         reinterpret_cast<const float *>(data[2].memory.data()),
         data[3].memory.data()};
    want = expected(desc, x, w.bytes, w.scales, w.zeros);
  }
  void check(const std::vector<float> &y) const {
    double tolerance = 2e-6 * largestOf(want);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(y[i], want[i], tolerance)
          << toString(desc) << " " << shape.blockLength();
  }
};

// All that this machine runs, tiles of all heights; parts of the blocks one
// after another, and columns that fill a panel in part.
TEST(BlockMatmulTest, AllKernels) {
  for (const BlockKernels *kernels : runnableBlockKernels())
    for (int64_t bits : {2, 4, 8})
      for (int64_t block : {16, 32, 64, 128})
        for (int64_t rows = 1; rows <= kernels->maxFewRows; ++rows) {
          int64_t columns = kernels->panelColumns - 5 * (rows % 2);
          Example example(rows, block, columns, bits);
          const BlockShape &shape = example.shape;
          std::vector<float> y(rows * columns, NAN);
          Rounded rounded =
              roundRows(*kernels, shape, example.x, rows, /*isOfFew=*/true);
          kernels->multiplyFew(shape, rounded.rows(), rows, example.w, 0,
                               columns, y.data(), columns);
          example.check(y);

          std::fill(y.begin(), y.end(), NAN);
          rounded =
              roundRows(*kernels, shape, example.x, rows, /*isOfFew=*/false);
          for (int64_t from = 0; from < shape.blocks; from += 3) {
            int64_t count = std::min<int64_t>(3, shape.blocks - from);
            int64_t bytes = count * shape.laneCount * shape.groups() *
                            kernels->panelColumns * laneBytes;
            std::vector<uint8_t> numbers(bytes);
            std::vector<float> scales(count * kernels->panelColumns),
                zeros(scales);
            kernels->part(shape, example.w, 0, columns, from, count,
                          numbers.data(), scales.data(), zeros.data());
            for (int64_t row = 0; row < rows; row += kernels->maxTileRows)
              kernels->multiplyPanel(
                  shape, rounded.rows(), row,
                  std::min(kernels->maxTileRows, rows - row), from, count,
                  numbers.data(), scales.data(), zeros.data(), columns,
                  y.data() + row * columns, columns);
          }
          example.check(y);
        }
}

// Blocks of zeros and of next to nothing, which become zeros, and with what is
// not finite: of that row all is no number.
TEST(BlockMatmulTest, SpecialNumbers) {
  for (int64_t rows : {3, 9}) {
    BlockMatmulDesc desc = blocksOf(rows, 3, 32, 40, 4, /*hasZeros=*/false);
    std::vector<ViewData> data = randomArguments(desc);
    fillBytes(data[1].memory, 3);
    for (int64_t i = 0; i < 3 * 32; ++i)
      data[0].memory.setDouble(i, i < 32 ? 0 : i < 64 ? 1e-37 : 1e-40);
    data[0].memory.setDouble(1 * 96 + 40, INFINITY);
    data[0].memory.setDouble(2 * 96 + 5, NAN);
    runLibrary(desc, data, 2);
    for (int64_t c = 0; c < 40; ++c) {
      EXPECT_EQ(data.back().get({0, c}), 0);
      EXPECT_TRUE(std::isnan(data.back().get({1, c})));
      EXPECT_TRUE(std::isnan(data.back().get({2, c})));
    }
  }
}

TEST(BlockMatmulTest, Faults) {
  BlockMatmulDesc good = blocksOf(2, 3, 32, 5, 4, true);
  EXPECT_EQ(findFault(good), "");
  EXPECT_EQ(toString(LibraryDesc(good)), "block_matmul 2x96 x 96x5 u4");
  EXPECT_EQ(countFlops(good), 2 * 2 * 96 * 5);
  auto isWrong = [&](auto change) {
    BlockMatmulDesc bad = good;
    change(bad);
    return findFault(bad) != "";
  };
  EXPECT_TRUE(isWrong([](auto &d) { d.bits = 3; }));
  EXPECT_NE(findFault(blocksOf(2, 1, 1 << 16, 5, 4, false)), "");
  EXPECT_TRUE(isWrong([](auto &d) { d.bits = 8; }));
  EXPECT_TRUE(isWrong([](auto &d) { d.x.dtype = DType::F16; }));
  EXPECT_TRUE(isWrong([](auto &d) { d.w.dtype = DType::I8; }));
  EXPECT_TRUE(isWrong([](auto &d) { d.x.strides[0] = 100; }));
  EXPECT_TRUE(isWrong([](auto &d) { d.y.sizes[1] = 6; }));
  EXPECT_TRUE(isWrong(
      [](auto &d) { d.scales = TensorDesc::dense(DType::F32, {5, 0}); }));
  EXPECT_TRUE(isWrong(
      [](auto &d) { d.scales = TensorDesc::dense(DType::F32, {5, 2}); }));
  EXPECT_TRUE(isWrong(
      [](auto &d) { d.scales = TensorDesc::dense(DType::F32, {5, 1}); }));
  EXPECT_TRUE(isWrong(
      [](auto &d) { d.scales = TensorDesc::dense(DType::F32, {5, 12}); }));
  EXPECT_TRUE(isWrong(
      [](auto &d) { d.scales = TensorDesc::dense(DType::F32, {4, 3}); }));
}

} // namespace
