//===- Product.h - A product as the simulated cuBLASLt is told --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMCUBLAS_PRODUCT_H
#define AX_TEST_SIMCUBLAS_PRODUCT_H

#include "Descriptors.h"

#include <array>
#include <vector>

namespace simcublas {

/// D = act(alpha A B + beta C + bias), or the gradient of act along with A B,
/// as the descriptors were when it was asked for.
struct Product {
  Operation operation;
  Layout a, b, c, d;

  /// Reads what handles name. INVALID_VALUE where one names nothing.
  cublasStatus_t read(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                      cublasLtMatrixLayout_t d);
  /// Refuses what cuBLASLt does on a card of this capability (90 is 9.0), and
  /// what it is not told here.
  cublasStatus_t check(int capability) const;
  /// Its factors are floats, or integers, of eight bits.
  bool isFloat8() const;
  bool isOfIntegers() const;
  /// Where what an activation is of lies, if there is such.
  Layout auxLayout() const;
  /// Equal ones have equal numbers, wherever their operands are.
  uint64_t hash() const;

private:
  cublasStatus_t checkTypes() const;
  cublasStatus_t checkFloat8(int capability) const;
  cublasStatus_t checkIntegers() const;
  cublasStatus_t checkSizes() const;
  cublasStatus_t checkEpilogue() const;
  cublasStatus_t checkAux() const;
};

/// Bytes of an element; 0: of no type that is known here.
size_t bytesOf(uint32_t type);
/// Elements from one row to the next, and from one column.
std::array<int64_t, 2> stridesOf(const Layout &layout);
/// Bytes from a matrix' first to the last element of the last one of the batch.
size_t reachOf(const Layout &layout);
/// Numbers that cuBLASLt gets, where they really lie.
struct Places {
  const unsigned char *a, *b, *c, *bias;
  unsigned char *d, *aux;
};
/// Every sum in f64, rounded once; with TF32, its factors before.
void multiply(const Product &product, const Places &places, double alpha,
              double beta);

} // namespace simcublas

#endif // AX_TEST_SIMCUBLAS_PRODUCT_H
