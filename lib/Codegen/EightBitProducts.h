//===- EightBitProducts.h - Products of eight bits by cuBLASLt --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_EIGHTBITPRODUCTS_H
#define AX_LIB_CODEGEN_EIGHTBITPRODUCTS_H

#include "ax/Local/Local.h"
#include "ax/Support/Target.h"

namespace ax::codegen {

/// Whether cuBLASLt multiplies floats of eight bits on all cards that code for
/// the target runs on.
bool hasFloat8Products(const GpuTarget &target);
/// Whether cuBLASLt, on such cards, multiplies the factors of `op` as
/// they are, in eight bits: a product of two of which one at least is f8E4M3FN,
/// whose sums have a multiple of 16 terms, and whose result has a multiple of
/// 16 rows, and of columns in its last dimension.
bool multipliesFloat8(mlir::Operation *op);

/// Whether cuBLASLt multiplies integers with signs in the place of the factors
/// of `product`, ax.linear or ax.dot, once these are padded: it has rows and
/// columns, and no sum leaves i32.
bool mayMultiplyIntegers(mlir::Operation *product);
/// Whether it multiplies the factors of `op` as they are: a product of two of i8
/// in i32, whose sums have a multiple of 16 terms, and whose result has such a
/// number of columns in its last dimension.
bool multipliesIntegers(mlir::Operation *op);

/// Marks a product whose factors have eight bits in the plan, and more for a
/// GPU's library.
inline constexpr llvm::StringLiteral kWidened = "axl.widened";

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_EIGHTBITPRODUCTS_H
