//===- LocalizeIndices.cpp - No index is out of range ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Localizer.h"
#include "ax/Dialect/IndexRange.h"

#include "ax/Dialect/Indexing.h"
#include "ax/Local/Local.h"

using namespace mlir;

namespace ax::codegen {

llvm::Expected<Value> Localizer::checkedIndices(Operation *op) {
  if (std::optional<std::string> why = findIndexFault(op))
    return fault(op, *why);
  Value global = op->getOperand(indicesOperand);
  Value indices = mapping.lookup(global);
  Value zero;
  for (auto [dim, layout] : llvm::enumerate(layoutOf(global).dims)) {
    if (sharding::digitsOf(layout))
      continue;
    if (!zero)
      zero =
          constant(builder.getZeroAttr(tensorType(indices).getElementType()));
    indices = maskDim(indices, dim, layout, zero);
  }
  SmallVector<int64_t> sizes = *getIndexedSizes(op);
  if (sizes.empty() || tensorType(indices).getNumElements() == 0)
    return indices;
  int64_t smallest = *llvm::min_element(sizes);
  IndexRange range = findRange(global);
  if (range.low >= -smallest && range.high < smallest)
    return indices;
  return check(op, indices, global, sizes).getResult();
}

CheckIndicesOp Localizer::check(Operation *op, Value local, Value global,
                                ArrayRef<int64_t> sizes) {
  return CheckIndicesOp::create(builder, local, sizes, global.getType(),
                                opNumber);
}

llvm::Error Localizer::localize(AtMostOp op) {
  Value local = mapping.lookup(op.getOperand());
  for (auto [dim, layout] : llvm::enumerate(layoutOf(op.getOperand()).dims))
    if (!sharding::digitsOf(layout))
      local = maskDim(
          local, dim, layout,
          constant(builder.getZeroAttr(tensorType(local).getElementType())));
  CheckIndicesOp made = check(op, local, op.getOperand(),
                              {static_cast<int64_t>(op.getLimit()) + 1});
  made.setIsCount(true);
  mapping.map(op.getResult(), made.getResult());
  return llvm::Error::success();
}

} // namespace ax::codegen
