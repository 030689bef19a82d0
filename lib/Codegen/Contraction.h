//===- Contraction.h - Contractions as strided matrix products --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_CONTRACTION_H
#define AX_LIB_CODEGEN_CONTRACTION_H

#include "ax/Runtime/LibraryOps.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace ax::codegen {

/// One loop of a contraction: its extent, and its stride in a, b, c and the
/// residual; -1 in a tensor that does not have it.
struct ContractionDim {
  int64_t size = 1;
  int64_t a = -1, b = -1, c = -1, residual = -1;
};

struct Contraction {
  llvm::SmallVector<ContractionDim> batch, m, n, k;
  DType aType = DType::F32, bType = DType::F32, resultType = DType::F32;
  bool hasResidual = false;
  /// Of a factor rows lie one behind another, or columns, and none is repeated;
  /// of the residual rows do, or all are one.
  bool needsMatrices = false;
  /// Factors of eight bits for cuBLASLt: what is summed over lies innermost in
  /// both, and is in pieces that begin at multiples of `eightBitMultiple`
  /// elements; the result of each matrix has such a number of columns, and of
  /// floats such a number of rows, too.
  bool isOfEightBits = false;
};

/// Of factors of eight bits that cuBLASLt takes, columns of the result (of
/// floats rows, too) and terms of a sum are multiples of it, and so are the
/// bytes where these begin.
inline constexpr int64_t eightBitMultiple = 16;

/// Which operand stands in the way.
struct ContractionFault {
  bool a = false, b = false, residual = false;
};

/// The contraction as one batched matrix product. Loops that are one loop in
/// memory are joined; more loops of m or n become batch dimensions.
std::optional<rt::MatmulDesc> toMatmul(const Contraction &contraction,
                                       ContractionFault &fault);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_CONTRACTION_H
