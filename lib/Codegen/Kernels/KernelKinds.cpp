//===- KernelKinds.cpp - What the kernel compiler handles -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementOps.h"
#include "Emitter.h"
#include "ax/Codegen/Kernel.h"

#include "ax/Dialect/Ax.h"

using namespace mlir;

namespace ax::codegen {

/// Larger constants belong in buffers, not in code.
static constexpr int64_t maxConstantBytes = 1 << 16;

static FusionKind kindOfOp(Operation *op) {
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto values = dyn_cast<DenseElementsAttr>(constant.getValue());
    bool fits = values && (values.isSplat() ||
                           values.getRawData().size() <= maxConstantBytes);
    return fits ? FusionKind::Pull : FusionKind::None;
  }
  if (fusesByElement(op))
    return FusionKind::Pull;
  if (fusesByRow(op))
    return FusionKind::Row;
  return isa<ScatterElementsOp, ScatterNDOp>(op) ? FusionKind::Window
                                                 : FusionKind::None;
}

FusionKind fusionKind(Operation *op) {
  FusionKind kind = kindOfOp(op);
  auto isHandled = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() &&
           isKernelType(tensor.getElementType());
  };
  if (!llvm::all_of(op->getOperandTypes(), isHandled) ||
      !llvm::all_of(op->getResultTypes(), isHandled))
    return FusionKind::None;
  return kind;
}

} // namespace ax::codegen
