//===- LookUps.h - Matrices that are looked up ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_LOOKUPS_H
#define AX_LIB_CODEGEN_LOOKUPS_H

#include "ax/Gradients/TensorBuilder.h"

#include "llvm/ADT/SetVector.h"

namespace ax::codegen {

/// A matrix for each of some indices, which is gathered along the first
/// dimension, or made of what is, by the same indices, each for itself.
struct LookUp {
  mlir::Value indices;
  /// How many matrices there are.
  int64_t groups = 0;
  /// The matrix, and what it is made of, up to what is gathered.
  llvm::SmallSetVector<mlir::Value, 16> made;

  int64_t numIndices() const { return tensorType(indices).getNumElements(); }
  int64_t rankOfIndices() const { return tensorType(indices).getRank(); }
  /// All matrices, [groups, ...], or those of other indices, [count, ...], made
  /// as those that are looked up are.
  mlir::Value allOf(TensorBuilder &t) const { return make(t, groups, {}); }
  mlir::Value of(TensorBuilder &t, mlir::Value others) const {
    return make(t, tensorType(others).getNumElements(), others);
  }

private:
  /// `others` are null for all.
  mlir::Value make(TensorBuilder &t, int64_t count, mlir::Value others) const;
};

/// What `matrix`, of the rank of some indices and two dimensions more, is
/// looked up by; nothing where it is not, or not by all of it.
std::optional<LookUp> lookUpOf(mlir::Value matrix);

/// Whether the transpose turns matrices, each in its place.
bool turnsMatrices(TransposeOp op);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_LOOKUPS_H
