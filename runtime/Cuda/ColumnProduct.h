//===- ColumnProduct.h - A product as cuBLASLt is asked for it --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuBLASLt's matrices have columns one behind another, and its bias is one
// number for each row. Ours have rows, and a bias for each column: a row-major
// c is c^T to cuBLASLt, which is b^T a^T with a bias for each row. So its A is
// our b and its B is our a, as they lie. It knows row-major matrices, too, but
// no bias of their columns.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CUDA_COLUMNPRODUCT_H
#define AX_RUNTIME_CUDA_COLUMNPRODUCT_H

#include "ax/Runtime/LibraryOps.h"

#include "llvm/Support/Error.h"

#include <optional>

namespace ax::rt::cuda {

/// Element (i, j) of the matrix in memory is at i + j * leading.
struct ColumnMatrix {
  DType dtype = DType::F32;
  int64_t rows = 0, columns = 0, leading = 0;
  /// The product takes the transposed one.
  bool isTransposed = false;
  /// Elements from one matrix of the batch to the next one.
  int64_t batchStride = 0;
};

/// d = act(a b + bias), a b + bias + c, or (a b) act'(input), each of `batch`
/// matrices.
struct ColumnProduct {
  ColumnMatrix a, b, c, d;
  /// What an activation is of, where that is kept or read.
  std::optional<ColumnMatrix> input;
  int64_t batch = 1;
  /// Where the operands of one call begin, in bytes behind the arguments.
  struct Call {
    int64_t a = 0, b = 0, c = 0, d = 0, input = 0;
  };
  /// Together they are the product: there are several where batches do not lie
  /// at one distance, and none where the result is empty.
  std::vector<Call> calls;
};

/// Whether factors are floats or integers of eight bits.
bool hasEightBits(const MatmulDesc &desc);
/// Whether factors are integers of eight bits with a sign, and sums i32.
bool isOfIntegers(const MatmulDesc &desc);

/// An Unsupported error where cuBLASLt has no such product.
llvm::Expected<ColumnProduct> toColumns(const MatmulDesc &desc);

/// The matrices of a call, where equal ones have equal texts.
std::string toText(const ColumnProduct &product);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_COLUMNPRODUCT_H
