//===- KernelKinds.cpp - What the kernel compiler handles -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementOps.h"
#include "Emitter.h"
#include "ax/Codegen/Kernel.h"

#include "ax/Local/Local.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ax::codegen {

/// Larger constants belong in buffers, not in code.
static constexpr int64_t maxConstantBytes = 1 << 16;

static FusionKind kindOfOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, FusionKind>(op)
      .Case<UnaryOp, BinaryOp, CompareOp, SelectOp, CastOp, RandomOp, IotaOp,
            ReshapeOp, TransposeOp, BroadcastOp, SliceOp, DynamicSliceOp,
            ConcatOp, PadOp, GatherOp, GatherElementsOp, GatherNDOp,
            AxisIndexOp>([](auto) { return FusionKind::Pull; })
      .Case<ConstantOp>([](ConstantOp o) {
        auto values = dyn_cast<DenseElementsAttr>(o.getValue());
        bool fits = values && (values.isSplat() ||
                               values.getRawData().size() <= maxConstantBytes);
        return fits ? FusionKind::Pull : FusionKind::None;
      })
      .Case<ReduceOp, ArgReduceOp, SoftmaxOp, LayerNormOp, RMSNormOp,
            CumulativeOp>([](auto) { return FusionKind::Row; })
      .Case<ScatterElementsOp, ScatterNDOp>(
          [](auto) { return FusionKind::Window; })
      .Default([](Operation *) { return FusionKind::None; });
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
