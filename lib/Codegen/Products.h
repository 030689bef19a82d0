//===- Products.h - Products with a matrix ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_PRODUCTS_H
#define AX_LIB_CODEGEN_PRODUCTS_H

#include "ax/Dialect/Tensors.h"

#include <optional>

namespace ax::codegen {

/// Whether elements of the result cost hardly more than reading operands.
bool isMadeInPassing(mlir::Operation *op);

/// A product x W, or x W^T, of which W is a matrix of floats.
struct Product {
  mlir::Operation *op;
  mlir::Value x, weight;
  /// The weight is W^T: [n, k].
  bool isTransposed;
  int64_t rows, k, n;
  /// Each row of x has a weight of its own: [rows, n, k].
  bool isOfEachRow = false;

  /// Addends would be rounded before they are added up.
  bool mayComeApart() const;
};

/// What `op` is as a product; none of other operations, of weights of eight
/// bits, and where there is nothing to multiply.
std::optional<Product> productOf(mlir::Operation *op);

/// The same of rows that have a weight each, as those have that are looked up.
std::optional<Product> productOfEachRow(mlir::Operation *op);

/// Into how many numbers the bytes come apart, which a product's weight is made
/// of, along its last dimension: 2 of four bits.
int64_t numbersOfByte(mlir::Value weight);

/// Makes a product of one row, or of rows with a weight each, a sum of f32 or
/// wider, of which a kernel makes one from what the weight is made of; its
/// operation is erased. On a processor x lies such that numbers of the same
/// byte are not neighbours.
void composeRow(const Product &product, bool gpu);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_PRODUCTS_H
