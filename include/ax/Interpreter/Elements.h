//===- Elements.h - MLIR attributes and host tensors ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types and constants in both worlds. i1 is Bool; signless integers
// are signed, `ui` ones unsigned.
//
//===----------------------------------------------------------------------===//
#ifndef AX_INTERPRETER_ELEMENTS_H
#define AX_INTERPRETER_ELEMENTS_H

#include "ax/Support/HostTensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ax::interpreter {

/// Returns the DType of an MLIR element type; nothing for one that tensors at
/// run time cannot have.
std::optional<DType> toDType(mlir::Type elementType);
mlir::Type toElementType(DType type, mlir::MLIRContext *context);

/// Returns the plain tensor type of `tensor`.
mlir::RankedTensorType toTensorType(const HostTensor &tensor,
                                    mlir::MLIRContext *context);

/// Returns the values of dense, splat or resource elements. Fails for other
/// attributes, element types, or a resource without its bytes.
llvm::Expected<HostTensor> toHostTensor(mlir::ElementsAttr elements);

/// Returns `dense<...>` of the values; of one value when all are the same bits.
mlir::DenseElementsAttr toElementsAttr(const HostTensor &tensor,
                                       mlir::MLIRContext *context);

} // namespace ax::interpreter

#endif // AX_INTERPRETER_ELEMENTS_H
