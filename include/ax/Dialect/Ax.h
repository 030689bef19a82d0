//===- Ax.h - The ax dialect ------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything of the dialect: attributes, enums, interfaces, operations.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_AX_H
#define AX_DIALECT_AX_H

#include "ax/Sharding/Reshard.h"
#include "ax/Sharding/Rule.h"
#include "ax/Support/Dealt.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ax {
struct KnownLayoutsOfThreads;
} // namespace ax

#include "ax/Dialect/AxDialect.h.inc"
#include "ax/Dialect/AxEnums.h"
#include "ax/Dialect/NamedDims.h"
#include "ax/Dialect/OpTraits.h"

#define GET_ATTRDEF_CLASSES
#include "ax/Dialect/AxAttrs.h.inc"

namespace ax {
class GradientBuilder;
} // namespace ax

#include "ax/Dialect/AxInterfaces.h.inc"

namespace ax {

/// Attribute of a plan: the file beside it that its `#ax.stored` constants are
/// in.
inline constexpr llvm::StringLiteral kData = "ax.data";

/// Returns true when shapes and element types agree; layouts may differ.
bool sameWithoutLayout(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// Floats of eight bits: factors of products, whose results are f32.
inline bool isFloat8(mlir::Type element) {
  return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(element);
}

/// Integers of eight bits, with or without a sign.
inline bool isInteger8(mlir::Type element) { return element.isInteger(8); }

/// Floats of 16 and 8 bits: too coarse to add up in.
inline bool isNarrowFloat(mlir::Type element) {
  return element.isF16() || element.isBF16() || isFloat8(element);
}

/// Returns the same, but that f32 may stand for narrow floats, and i32 for
/// integers of eight bits.
bool sameOrUnrounded(mlir::TypeRange inferred, mlir::TypeRange actual);

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// The type without its layout.
mlir::RankedTensorType withoutLayout(mlir::RankedTensorType type);

/// The mesh of the plan that `op` is in; one without axes when there is none.
sharding::Mesh getMesh(mlir::Operation *op);

/// The layout in the type's encoding, replicated when it has none. It lives as
/// long as the type's context and the calling thread.
const sharding::Layout &getLayout(mlir::RankedTensorType type,
                                  const sharding::Mesh &mesh);
/// `type` with `layout` as its encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  const sharding::Layout &layout,
                                  const sharding::Mesh &mesh);

/// The type of the part that a rank holds of a tensor. An addend of narrow
/// floats is f32: only the whole sum is rounded.
mlir::RankedTensorType localPartType(mlir::RankedTensorType type,
                                     const sharding::Mesh &mesh);

/// The shape of NumPy broadcasting; failure when the shapes do not fit.
mlir::FailureOr<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);

/// Name of the ONNX node (or output) that `op` came from, from `node` or its
/// location; empty when unknown. The first, where there are several.
llvm::StringRef getNodeName(mlir::Operation *op);

/// Returns all nodes that `op` computes, each once: passes merge some.
llvm::SmallVector<llvm::StringRef> getMergedNodes(mlir::Operation *op);

/// The attribute by which plans name an operation's nodes: a name, or several
/// in an array.
inline constexpr llvm::StringLiteral kNode = "node";
void setNodes(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> nodes);
/// The location that names them; that of `op` when it has none.
mlir::Location getNodeLocation(mlir::Operation *op);
/// Returns the location of an operation that computes what both do: it names
/// the nodes of `first` and then those of `second`.
mlir::Location mergeLocations(mlir::Operation *first, mlir::Operation *second);

/// Returns all names that users may know `op` by: its node's, that of the
/// exporter's module around it, those of what it was inlined or merged from.
llvm::SmallVector<llvm::StringRef> getNodeNames(mlir::Operation *op);

} // namespace ax

#define GET_OP_CLASSES
#include "ax/Dialect/AxOps.h.inc"

namespace ax {

/// Returns what `sum` adds to `product` as a bias: to a Linear one number for
/// each column, [n], to a convolution one for each channel, [n, 1...]. Null
/// where it adds something else, or to something else.
mlir::Value findBias(mlir::Operation *product, BinaryOp sum);

} // namespace ax

#endif // AX_DIALECT_AX_H
