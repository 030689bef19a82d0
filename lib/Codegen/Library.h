//===- Library.h - Operations that a device's library does ------*- C++ -*-===//
#ifndef AX_LIB_CODEGEN_LIBRARY_H
#define AX_LIB_CODEGEN_LIBRARY_H

#include "Views.h"
#include "ax/Runtime/LibraryOps.h"

namespace ax::codegen {

bool isLibraryOp(mlir::Operation *op);

/// A library operation on values in memory.
struct LibraryCall {
  rt::LibraryDesc desc;
  /// Operands, in the order of the description; then the results.
  struct Argument {
    mlir::Value base;
    int64_t byteOffset = 0;
  };
  llvm::SmallVector<Argument> arguments;
  /// Not empty: values that must be in memory, dense, before a description
  /// can take the operands (their strides do not fit). The rest is not valid.
  llvm::SmallVector<mlir::Value> wantsDense;
};

/// `isConstant` tells which values never change between runs.
LibraryCall makeLibraryCall(mlir::Operation *op,
                            llvm::function_ref<bool(mlir::Value)> isConstant,
                            const MemoryValues &inMemory = {});

/// Library ops may write their result transposed: result dimension i of the
/// op is dimension `ax.result_permutation`[i] of what it computes. A residual
/// is transposed as the result is.
inline constexpr llvm::StringLiteral kResultPermutation =
    "ax.result_permutation";
bool canPermuteResult(mlir::Operation *op);

/// On a convolution: its activation comes after the residual.
inline constexpr llvm::StringLiteral kActivationLast = "ax.activation_last";

/// The activation as a library does it; nothing when it has none like it.
std::optional<rt::Activation> libraryActivation(UnaryKind kind);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_LIBRARY_H
