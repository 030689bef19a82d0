//===- Multiply.cpp - A product of the simulated cuBLASLt, computed -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Product.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// Of plain numbers only; nothing of it is linked.
#include "ax/Support/Float16.h"
#include "ax/Support/Float8.h"

namespace simcublas {

static double load(uint32_t type, const unsigned char *bytes) {
  uint16_t narrow = 0;
  float single = 0;
  double result = 0;
  int32_t whole = 0;
  switch (type) {
  case CUDA_R_8I:
    return static_cast<int8_t>(*bytes);
  case CUDA_R_32I:
    std::memcpy(&whole, bytes, sizeof(whole));
    return whole;
  case CUDA_R_8F_E4M3:
    return ax::f8BitsToFloat<ax::f8E4M3FN>(*bytes);
  case CUDA_R_8F_E5M2:
    return ax::f8BitsToFloat<ax::f8E5M2>(*bytes);
  case CUDA_R_16F:
    std::memcpy(&narrow, bytes, sizeof(narrow));
    return ax::f16BitsToFloat(narrow);
  case CUDA_R_16BF:
    std::memcpy(&narrow, bytes, sizeof(narrow));
    return ax::bf16BitsToFloat(narrow);
  case CUDA_R_32F:
    std::memcpy(&single, bytes, sizeof(single));
    return single;
  default:
    std::memcpy(&result, bytes, sizeof(result));
    return result;
  }
}

static void store(uint32_t type, double value, unsigned char *bytes) {
  uint16_t narrow = 0;
  auto single = static_cast<float>(value);
  int32_t whole = 0;
  switch (type) {
  case CUDA_R_32I:
    whole = static_cast<int32_t>(static_cast<int64_t>(value));
    std::memcpy(bytes, &whole, sizeof(whole));
    return;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    narrow =
        type == CUDA_R_16F ? ax::Float16(value).bits : ax::BFloat16(value).bits;
    std::memcpy(bytes, &narrow, sizeof(narrow));
    return;
  case CUDA_R_32F:
    std::memcpy(bytes, &single, sizeof(single));
    return;
  default:
    std::memcpy(bytes, &value, sizeof(value));
  }
}

/// To ten bits behind the point.
static double roundToTF32(double value) {
  if (!std::isfinite(value) || value == 0)
    return value;
  int exponent = std::ilogb(value);
  return std::ldexp(std::nearbyint(std::ldexp(value, 10 - exponent)),
                    exponent - 10);
}

static const double geluScale = std::sqrt(2 / std::acos(-1.0));
constexpr double geluCubic = 0.044715;

static double activate(uint32_t epilogue, double x) {
  switch (epilogue & ~static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS)) {
  case CUBLASLT_EPILOGUE_RELU:
    return x < 0 ? 0 : x;
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_AUX:
    return 0.5 * x * (1 + std::tanh(geluScale * (x + geluCubic * x * x * x)));
  default:
    return x;
  }
}

static double geluDerivative(double x) {
  double t = std::tanh(geluScale * (x + geluCubic * x * x * x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * geluScale * (1 + 3 * geluCubic * x * x);
}

namespace {

/// A matrix of a batch in memory.
class Matrix {
public:
  Matrix(const Layout &layout, int64_t batch, bool isTransposed = false)
      : type(layout.type), first(batch * layout.batchStride),
        strides(stridesOf(layout)) {
    if (isTransposed)
      std::swap(strides[0], strides[1]);
  }
  /// The byte where element (i, j) begins.
  int64_t at(int64_t i, int64_t j) const {
    return (first + i * strides[0] + j * strides[1]) *
           static_cast<int64_t>(bytesOf(type));
  }
  std::vector<double> loadAll(const unsigned char *bytes, int64_t rows,
                              int64_t columns) const {
    std::vector<double> values;
    values.reserve(static_cast<size_t>(rows * columns));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        values.push_back(load(type, bytes + at(i, j)));
    return values;
  }

private:
  uint32_t type;
  int64_t first;
  std::array<int64_t, 2> strides;
};

} // namespace

/// Adds a row of a product. All of it at once: so all loads are of neighbours.
// What chooses among clones runs before ThreadSanitizer is there, and calls it.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
static void addRow(const double *a, const double *b, int64_t k, int64_t n,
                   double *sums) {
  for (int64_t l = 0; l < k; ++l)
    for (int64_t j = 0; j < n; ++j)
      sums[j] += a[l] * b[l * n + j];
}

void multiply(const Product &product, const Places &places, double alpha,
              double beta) {
  const Operation &operation = product.operation;
  bool transposeA = operation.transposeA == CUBLAS_OP_T;
  bool transposeB = operation.transposeB == CUBLAS_OP_T;
  auto m = static_cast<int64_t>(product.d.rows);
  auto n = static_cast<int64_t>(product.d.columns);
  auto k =
      static_cast<int64_t>(transposeA ? product.a.rows : product.a.columns);
  size_t biasBytes = bytesOf(product.d.type);
  for (int64_t batch = 0; batch < product.d.batchCount; ++batch) {
    auto a = Matrix(product.a, batch, transposeA).loadAll(places.a, m, k);
    auto b = Matrix(product.b, batch, transposeB).loadAll(places.b, k, n);
    if (operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
      for (std::vector<double> *factor : {&a, &b})
        std::transform(factor->begin(), factor->end(), factor->begin(),
                       roundToTF32);
    Matrix c(product.c, batch), d(product.d, batch),
        aux(product.auxLayout(), batch);
    std::vector<double> sums(static_cast<size_t>(n));
    for (int64_t i = 0; i < m; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      addRow(a.data() + i * k, b.data(), k, n, sums.data());
      for (int64_t j = 0; j < n; ++j) {
        double sum = alpha * sums[static_cast<size_t>(j)];
        if (beta != 0)
          sum += beta * load(product.c.type, places.c + c.at(i, j));
        if (operation.hasBias())
          sum += load(product.d.type,
                      places.bias + static_cast<size_t>(i) * biasBytes);
        unsigned char *kept = places.aux ? places.aux + aux.at(i, j) : nullptr;
        if (operation.writesAux())
          store(product.d.type, sum, kept);
        double result = operation.readsAux()
                            ? sum * geluDerivative(load(product.d.type, kept))
                            : activate(operation.epilogue, sum);
        store(product.d.type, result, places.d + d.at(i, j));
      }
    }
  }
}

} // namespace simcublas
