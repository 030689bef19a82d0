//===- Epilogue.h - What a library does along with a product ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asked by code generation, which makes one command of a contraction and its
// epilogue, and by what prices a plan: both get the same answer.
//
//===----------------------------------------------------------------------===//
#ifndef AX_COST_EPILOGUE_H
#define AX_COST_EPILOGUE_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Operations behind a contraction, in this order; each is alone in reading
/// what the one before gives, has its type, and belongs to the same list. Null
/// where there is none.
struct Epilogue {
  mlir::Operation *product = nullptr;
  /// Adds to each of the product's columns (channels) a number of its own, or
  /// to all the same.
  BinaryOp bias;
  UnaryOp activation;
  /// Adds a tensor of the result's type.
  BinaryOp residual;
  /// The activation of that sum.
  UnaryOp last;

  /// Returns those that are there.
  llvm::SmallVector<mlir::Operation *, 4> getOps() const;
  /// Returns what all of it gives.
  mlir::Value getResult() const;
  /// Returns what the bias adds, as `findBias` does, or a constant of one
  /// number; null where there is none.
  mlir::Value getBias() const;
  /// Returns what the residual adds; null where there is none.
  mlir::Value getAddend() const;
  /// Returns the operation that the product waits for: what it adds may be
  /// computed later than its factors are. Null where it adds nothing.
  mlir::Operation *getPlace() const;
};

/// What the library of a device does in one call.
class Library {
public:
  virtual ~Library() = default;
  /// Returns whether it does all of `epilogue` with the product.
  virtual bool supports(const Epilogue &epilogue) const = 0;
};

/// Returns that of device `cpu`: behind Linears and convolutions that give the
/// type of their factors a bias, an activation and then a residual, behind
/// convolutions also the activation of the sum with the residual instead;
/// behind transposed ones, but of f32, a bias.
const Library &cpuLibrary();

/// Returns that of GPUs, which is cuBLASLt: behind Linears that give the type
/// of their factors a bias, and then ReLU, GELU by tanh (not of f64), or a
/// residual; behind convolutions nothing.
const Library &gpuLibrary();

/// Returns as much of what stands behind `product` as `library` does with it.
/// Where two products are added, the later one adds the other as its residual.
Epilogue findEpilogue(mlir::Operation *product, const Library &library);

/// Returns the product in whose epilogue `op` is; null where it is in none.
mlir::Operation *findProduct(mlir::Operation *op, const Library &library);

} // namespace ax

#endif // AX_COST_EPILOGUE_H
