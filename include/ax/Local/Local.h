//===- Local.h - The axl dialect --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of ranks: collectives on parts, a rank's place, and what is one
// command.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LOCAL_LOCAL_H
#define AX_LOCAL_LOCAL_H

#include "ax/Dialect/Ax.h"

#include "ax/Local/LocalDialect.h.inc"
#include "ax/Local/LocalEnums.h.inc"
#include "ax/Local/LocalInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ax/Local/LocalAttrs.h.inc"

#define GET_OP_CLASSES
#include "ax/Local/LocalOps.h.inc"

namespace ax {

/// The attribute of a command that says where its results lie, an array of
/// `#axl.place`.
inline constexpr llvm::StringLiteral kPlaces = "axl.places";

/// Where a result of a command lies, after `axl-place-buffers`.
inline PlaceAttr getPlace(mlir::OpResult result) {
  auto places = result.getOwner()->getAttrOfType<mlir::ArrayAttr>(kPlaces);
  return llvm::cast<PlaceAttr>(places[result.getResultNumber()]);
}

} // namespace ax

#endif // AX_LOCAL_LOCAL_H
