//===- VectorKernelsTest.cpp - Loops for each processor -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/VectorKernels.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <random>

using namespace ax::rt;

namespace {

template <typename T>
std::vector<T> randomValues(int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(count);
  for (T &value : values)
    value = uniform(random);
  return values;
}

template <typename T>
void checkPanel(MultiplyPanelFn<T> multiply, int64_t rows, int64_t k,
                int64_t columns) {
  // Rows lie further apart than they are long; what is between stays.
  int64_t aStride = k + 3, bStride = columns + 5, cStride = columns + 1;
  std::vector<T> a = randomValues<T>(rows * aStride),
                 b = randomValues<T>(k * bStride), c(rows * cStride, T(7));
  multiply(a.data(), aStride, b.data(), bStride, c.data(), cStride, rows, k,
           columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += static_cast<double>(a[r * aStride + i]) * b[i * bStride + j];
      ASSERT_NEAR(c[r * cStride + j], sum, 1e-5) << r << " " << j;
    }
    ASSERT_EQ(c[r * cStride + columns], T(7));
  }
}

TEST(VectorKernelsTest, Panels) {
  for (const VectorKernels *kernels : runnableVectorKernels())
    for (int64_t rows : {1, 2, 5, 12, 24, 31})
      for (int64_t k : {0, 1, 33})
        for (int64_t columns : {16, 32, 48, 64, 80}) {
          checkPanel(kernels->multiplyPanelF32, rows, k, columns);
          checkPanel(kernels->multiplyPanelF64, rows, k, columns);
          // Vectors have half as many numbers of eight bytes.
          checkPanel(kernels->multiplyPanelF64, rows, k, columns - 8);
        }
}

template <typename T>
void checkTransposed(MultiplyPanelFn<T> add, int64_t rows, int64_t k,
                     int64_t columns) {
  int64_t aStride = rows + 3, bStride = columns + 5, cStride = columns + 1;
  std::vector<T> a = randomValues<T>(k * aStride),
                 b = randomValues<T>(k * bStride), c(rows * cStride, T(7));
  add(a.data(), aStride, b.data(), bStride, c.data(), cStride, rows, k,
      columns);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 7;
      for (int64_t i = 0; i < k; ++i)
        sum += static_cast<double>(a[i * aStride + r]) * b[i * bStride + j];
      ASSERT_NEAR(c[r * cStride + j], sum, 1e-5) << r << " " << j;
    }
    ASSERT_EQ(c[r * cStride + columns], T(7));
  }
}

TEST(VectorKernelsTest, TransposedPanelsAreAdded) {
  for (const VectorKernels *kernels : runnableVectorKernels())
    for (int64_t rows : {1, 2, 5, 12, 24, 31})
      for (int64_t k : {0, 1, 33})
        for (int64_t columns : {16, 48, 80}) {
          checkTransposed(kernels->addTransposedF32, rows, k, columns);
          checkTransposed(kernels->addTransposedF64, rows, k, columns);
        }
}

TEST(VectorKernelsTest, Transpose) {
  for (const VectorKernels *kernels : runnableVectorKernels())
    for (int64_t rows : {1, 16, 35})
      for (int64_t columns : {1, 16, 37}) {
        int64_t stride = columns + 2;
        std::vector<float> from = randomValues<float>(rows * stride),
                           to(rows * columns);
        kernels->transpose(from.data(), stride, to.data(), rows, columns);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j)
            ASSERT_EQ(to[j * rows + i], from[i * stride + j]) << i << " " << j;
      }
}

TEST(VectorKernelsTest, MaximumOfWhatIsNotNaN) {
  float nan = std::numeric_limits<float>::quiet_NaN(),
        infinity = std::numeric_limits<float>::infinity();
  for (const VectorKernels *kernels : runnableVectorKernels())
    for (int64_t count : {0, 1, 63, 64, 200}) {
      EXPECT_EQ(kernels->maximum(nullptr, 0), -infinity);
      std::vector<float> x(count, nan);
      EXPECT_EQ(kernels->maximum(x.data(), count), -infinity);
      for (int64_t at : {count / 3, count - 1})
        if (at >= 0 && at < count) {
          x[at] = static_cast<float>(at);
          EXPECT_EQ(kernels->maximum(x.data(), count), x[at]);
        }
    }
}

} // namespace
