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
        int number = desc.bits == 8
                         ? w[byte]
                         : w[byte / 2] >> (byte % 2 == 0 ? 0 : 4) & 15;
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
    for (int64_t bits : {4, 8})
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
            reinterpret_cast<const uint8_t *>(data[1].memory.data()),
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
  rounded.numbers.resize(rows * kernels.rowBytes(shape), 77);
  rounded.scales.resize(rows *
                        (isOfFew ? kernels.paddedLanes(shape) : shape.blocks));
  rounded.sums.resize(rows * shape.blocks);
  kernels.quantize(shape, x.data(), 0, rows, isOfFew, rounded.rows());
  return rounded;
}

// All that this machine runs; parts of the blocks one after another.
TEST(BlockMatmulTest, AllKernels) {
  for (const BlockKernels *kernels : runnableBlockKernels())
    for (int64_t bits : {4, 8})
      for (int64_t block : {16, 32, 64, 128}) {
        int64_t rows = 2, blocks = 5, columns = kernels->panelColumns - 3;
        BlockMatmulDesc desc =
            blocksOf(rows, blocks, block, columns, bits, /*hasZeros=*/true);
        BlockShape shape;
        shape.bits = static_cast<int32_t>(bits);
        shape.blocks = blocks;
        shape.laneCount = block / shape.groups() / laneBytes;
        std::vector<ViewData> data = randomArguments(desc);
        fillBytes(data[1].memory, 3);
        fillBytes(data[3].memory, 5);
        auto *floats = reinterpret_cast<const float *>(data[0].memory.data());
        std::vector<float> x(floats, floats + rows * blocks * block);
        BlockMatrix w = {
            reinterpret_cast<const uint8_t *>(data[1].memory.data()),
            reinterpret_cast<const float *>(data[2].memory.data()),
            reinterpret_cast<const uint8_t *>(data[3].memory.data())};
        std::vector<double> want =
            expected(desc, x, w.bytes, w.scales, w.zeros);
        double tolerance = 2e-6 * largestOf(want);

        std::vector<float> few(rows * columns), panel(rows * columns);
        Rounded rounded = roundRows(*kernels, shape, x, rows, true);
        kernels->multiplyFew(shape, rounded.rows(), rows, w, 0, columns,
                             few.data(), columns);
        rounded = roundRows(*kernels, shape, x, rows, false);
        for (int64_t from = 0; from < blocks; from += 3) {
          int64_t count = std::min<int64_t>(3, blocks - from);
          int64_t lanes = count * shape.laneCount * shape.groups();
          std::vector<uint8_t> numbers(lanes * kernels->panelColumns *
                                       laneBytes);
          std::vector<float> scales(count * kernels->panelColumns),
              zeros(scales);
          kernels->part(shape, w, 0, columns, from, count, numbers.data(),
                        scales.data(), zeros.data());
          kernels->multiplyPanel(shape, rounded.rows(), 0, rows, from, count,
                                 numbers.data(), scales.data(), zeros.data(),
                                 columns, panel.data(), columns);
        }
        for (int64_t i = 0; i < rows * columns; ++i) {
          ASSERT_NEAR(few[i], want[i], tolerance) << bits << " " << block;
          ASSERT_NEAR(panel[i], want[i], tolerance) << bits << " " << block;
        }
      }
}

// Blocks of zeros, and with what is not finite: of that row all is no number.
TEST(BlockMatmulTest, SpecialNumbers) {
  for (int64_t rows : {3, 9}) {
    BlockMatmulDesc desc = blocksOf(rows, 3, 32, 40, 4, /*hasZeros=*/false);
    std::vector<ViewData> data = randomArguments(desc);
    fillBytes(data[1].memory, 3);
    for (int64_t i = 0; i < 3 * 32; ++i)
      data[0].memory.setDouble(i, 0);
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
  EXPECT_TRUE(isWrong([](auto &d) { d.bits = 2; }));
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
