//===- AttentionValues.cpp - Attention and its gradient alike -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/AttentionValues.h"

#include "ax/Dialect/Tensors.h"

using namespace mlir;
using namespace ax;

LogicalResult ax::checkAttentionMask(std::optional<Location> location, Value q,
                                     Value k, Value mask) {
  ArrayRef<int64_t> queries = shapeOf(q), sizes = shapeOf(mask);
  int64_t full[] = {queries[0], queries[1], queries[2], shapeOf(k)[2]};
  auto fits = [](auto pair) {
    return std::get<0>(pair) == 1 || std::get<0>(pair) == std::get<1>(pair);
  };
  if (sizes.size() != std::size(full) ||
      !llvm::all_of(llvm::zip(sizes, full), fits))
    return emitOptionalError(location, "mask ", mask.getType(),
                             " does not broadcast to [", full[0], ", ", full[1],
                             ", ", full[2], ", ", full[3], "]");
  Type element = elementType(mask);
  if (element.isInteger(64) && sizes[2] == 1)
    return success();
  if (!element.isInteger(1) && !element.isF32() && element != elementType(q))
    return emitOptionalError(location, "mask ", mask.getType(),
                             " is neither i1 nor f32 nor ", elementType(q),
                             ", nor i64 and the same for all queries");
  return success();
}
