//===- OpTraits.h - Kinds of operations that passes know --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operation says in its .td file (AxInterfaces.td), so that no pass
// needs a list of operations.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_OPTRAITS_H
#define AX_DIALECT_OPTRAITS_H

#include "mlir/IR/OpDefinition.h"

namespace ax {

template <typename ConcreteOp>
class ElementwiseLike
    : public mlir::OpTrait::TraitBase<ConcreteOp, ElementwiseLike> {};

template <typename ConcreteOp>
class ViewLike : public mlir::OpTrait::TraitBase<ConcreteOp, ViewLike> {};

template <typename ConcreteOp>
class FusesByElement
    : public mlir::OpTrait::TraitBase<ConcreteOp, FusesByElement> {};

template <typename ConcreteOp>
class FusesByRow : public mlir::OpTrait::TraitBase<ConcreteOp, FusesByRow> {};

template <typename ConcreteOp>
class DoneByParts : public mlir::OpTrait::TraitBase<ConcreteOp, DoneByParts> {};

template <typename ConcreteOp>
class SourceLike : public mlir::OpTrait::TraitBase<ConcreteOp, SourceLike> {};

// These are false for a null operation.
inline bool isElementwise(mlir::Operation *op) {
  return op && op->hasTrait<ElementwiseLike>();
}
inline bool isView(mlir::Operation *op) {
  return op && op->hasTrait<ViewLike>();
}
inline bool fusesByElement(mlir::Operation *op) {
  return op &&
         (isElementwise(op) || isView(op) || op->hasTrait<FusesByElement>());
}
inline bool fusesByRow(mlir::Operation *op) {
  return op && op->hasTrait<FusesByRow>();
}
inline bool isSource(mlir::Operation *op) {
  return op && op->hasTrait<SourceLike>();
}

} // namespace ax

#endif // AX_DIALECT_OPTRAITS_H
