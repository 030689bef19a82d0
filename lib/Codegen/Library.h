//===- Library.h - Operations that a device's library does ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_LIBRARY_H
#define AX_LIB_CODEGEN_LIBRARY_H

#include "StridedView.h"
#include "ax/Local/Local.h"
#include "ax/Runtime/LibraryOps.h"

namespace ax::codegen {

/// What a library does of `op`: itself, or what an axl.library is about; null
/// of all else.
mlir::Operation *getLibraryCore(mlir::Operation *op);
inline bool isLibraryOp(mlir::Operation *op) { return getLibraryCore(op); }
/// An axl.library of `op`, a library operation, if it is not one.
LibraryOp wrapInLibrary(mlir::Operation *op);
/// Puts what an axl.library does in its place, each operation for itself, and
/// returns that which the library was about.
mlir::Operation *unwrapLibrary(LibraryOp library);
/// Makes `value` operand `number` of the library operation `op`.
void setLibraryOperand(mlir::Operation *op, unsigned number, mlir::Value value);

/// A library operation on values in memory.
struct LibraryCall {
  rt::LibraryDesc desc;
  /// Operands, in the order of the description; then the results.
  struct Argument {
    mlir::Value base;
    int64_t byteOffset = 0;
  };
  llvm::SmallVector<Argument> arguments;
  /// Values that must be in memory, dense, before a description can take the
  /// operands (their strides do not fit). The rest is not valid unless this is
  /// empty.
  llvm::SmallVector<mlir::Value> wantsDense;
};

/// `isConstant` tells which values never change between runs. With `gpu`,
/// operands are to lie as cuBLASLt and cuDNN read them.
LibraryCall makeLibraryCall(mlir::Operation *op,
                            llvm::function_ref<bool(mlir::Value)> isConstant,
                            const MemoryValues &inMemory = {},
                            bool gpu = false);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_LIBRARY_H
