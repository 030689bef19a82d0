//===- WideBuilder.h - Element-wise steps in f32 or f64 ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_WIDEBUILDER_H
#define AX_CODEGEN_KERNELS_WIDEBUILDER_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// Builds element-wise ops and reductions on f32 (or f64) tensors, before `op`.
struct WideBuilder {
  using Value = mlir::Value;

  WideBuilder(mlir::Operation *op, mlir::Type narrow)
      : b(op), loc(op->getLoc()),
        element(narrow.isF64() ? mlir::Type(b.getF64Type()) : b.getF32Type()) {}

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, element);
  }
  Value cast(Value x, mlir::Type to);
  Value wide(Value x) { return cast(x, element); }
  /// The first operand has the result's shape.
  Value binary(BinaryKind kind, Value x, Value y) {
    return BinaryOp::create(b, loc, type(tensorType(x).getShape()), kind, x, y);
  }
  Value sub(Value x, Value y) { return binary(BinaryKind::sub, x, y); }
  Value mul(Value x, Value y) { return binary(BinaryKind::mul, x, y); }
  Value add(Value x, Value y) { return binary(BinaryKind::add, x, y); }
  Value unary(UnaryKind kind, Value x) {
    return UnaryOp::create(b, loc, x.getType(), kind, x);
  }
  Value number(double value);
  /// Reduces `dims` of `x`, of each of which 1 is left.
  Value reduce(ReduceOpKind kind, Value x, llvm::ArrayRef<int64_t> dims);
  /// The norm `op` of `x`, whose dimensions `dims` are those that it is over.
  /// Scale and bias may be null; they are broadcast.
  template <typename NormOp>
  Value normalize(NormOp op, Value x, llvm::ArrayRef<int64_t> dims, Value scale,
                  Value bias);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::Type element;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_WIDEBUILDER_H
