//===- ScaledProducts.h - Products of numbers of eight bits -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes ask of a product, `ax.linear`, `ax.dot` or `ax.conv`, whose
// factors stand for others by a scale and a zero point.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_CODEGEN_SCALEDPRODUCTS_H
#define AX_LIB_CODEGEN_SCALEDPRODUCTS_H

#include "ax/Dialect/ScaledFactor.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {

/// The dimension of the product's result that is dimension `dim` of a factor;
/// nothing where that is summed over.
std::optional<int64_t> resultDimOf(mlir::Operation *product, unsigned factor,
                                   int64_t dim);

/// The factor's numbers, less its offset, moved as it is.
mlir::Value numbersOf(const ScaledFactor &factor, mlir::OpBuilder &builder);

/// A factor's parameter, as it broadcasts with the product's result; null where
/// it differs along what is summed over.
mlir::Value alongResult(mlir::Operation *product, unsigned factor,
                        const FactorParameter &parameter, TensorBuilder &t);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_SCALEDPRODUCTS_H
