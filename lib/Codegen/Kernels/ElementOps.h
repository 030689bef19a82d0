//===- ElementOps.h - Element-wise operations on scalars --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars in kernels have signless types: what ax calls ui8 is an i8 that the
// operation reads as unsigned, floats of eight bits are i8. Narrow floats are
// computed in f32 and rounded after each operation, as separate kernels would.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_ELEMENTOPS_H
#define AX_CODEGEN_KERNELS_ELEMENTOPS_H

#include "ScalarMath.h"

#include "ax/Dialect/Ax.h"
#include "mlir/IR/Builders.h"

namespace ax::codegen {

/// Whether kernels handle tensors of this element type.
bool isKernelType(mlir::Type elementType);
/// Type of the scalar for an element type of ax.
mlir::Type scalarType(mlir::Type elementType);
/// Returns the type of an element in memory: i1 is a byte, bf16 is moved as an
/// integer.
mlir::Type storageType(mlir::Type elementType);
int64_t storageBytes(mlir::Type elementType);
/// These two convert between that type and the scalar's.
mlir::Value fromStorage(mlir::OpBuilder &builder, mlir::Value stored,
                        mlir::Type elementType);
mlir::Value toStorage(mlir::OpBuilder &builder, mlir::Value x,
                      mlir::Type elementType);

/// `type` is the operands' element type in ax.
mlir::Value emitUnary(mlir::OpBuilder &builder, ScalarUnit unit,
                      ax::UnaryKind kind, mlir::Value x, mlir::Type type);
mlir::Value emitBinary(mlir::OpBuilder &builder, ScalarUnit unit,
                       ax::BinaryKind kind, mlir::Value x, mlir::Value y,
                       mlir::Type type);
mlir::Value emitCompare(mlir::OpBuilder &builder, ScalarUnit unit,
                        ax::CompareKind kind, mlir::Value x, mlir::Value y,
                        mlir::Type type);
mlir::Value emitCast(mlir::OpBuilder &builder, ScalarUnit unit, mlir::Value x,
                     mlir::Type from, mlir::Type to);
/// acc and x combined; sums and products may be done in any order.
mlir::Value emitCombine(mlir::OpBuilder &builder, ax::ReduceOpKind kind,
                        mlir::Value acc, mlir::Value x, mlir::Type type);
/// What combining starts from.
mlir::Value emitNeutral(mlir::OpBuilder &builder, ax::ReduceOpKind kind,
                        mlir::Type type);
mlir::Value emitZero(mlir::OpBuilder &builder, mlir::Type type);
/// Element of an attribute, as a constant of the scalar type.
mlir::Value emitConstant(mlir::OpBuilder &builder, mlir::Attribute element,
                         mlir::Type type);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_ELEMENTOPS_H
