//===- Indexing.cpp - Indices of gathers and scatters ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Indexing.h"

#include "InferTypes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ax;

std::optional<SmallVector<int64_t>> ax::getIndexedSizes(Operation *op) {
  using Sizes = SmallVector<int64_t>;
  return llvm::TypeSwitch<Operation *, std::optional<Sizes>>(op)
      .Case<GatherOp, GatherElementsOp, ScatterElementsOp>(
          [](auto o) { return Sizes{shapeOf(o.getOperand())[o.getAxis()]}; })
      .Case<GatherGradientOp>(
          [](GatherGradientOp o) { return Sizes{int64_t(o.getSize())}; })
      .Case<GatherNDOp>([](GatherNDOp o) {
        return Sizes(
            shapeOf(o.getOperand())
                .slice(o.getBatchDims(), shapeOf(o.getIndices()).back()));
      })
      .Case<ScatterNDOp>([](ScatterNDOp o) {
        return Sizes(
            shapeOf(o.getOperand()).take_front(shapeOf(o.getIndices()).back()));
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<std::string> ax::findIndexFault(Operation *op) {
  auto sizes = getIndexedSizes(op);
  if (!sizes || sizes->empty())
    return std::nullopt;
  auto constant = op->getOperand(indicesOperand).getDefiningOp<ConstantOp>();
  auto known = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue())
                        : DenseIntElementsAttr();
  if (!known)
    return std::nullopt;
  for (auto [i, value] : llvm::enumerate(known.getValues<APInt>())) {
    int64_t index = value.getSExtValue(), size = (*sizes)[i % sizes->size()];
    if (index < -size || index >= size)
      return "index " + std::to_string(index) +
             " is out of range of a dimension of " + std::to_string(size);
    // A splat may be of any size, and says nothing new.
    if (known.isSplat() && i + 1 >= sizes->size())
      break;
  }
  return std::nullopt;
}
