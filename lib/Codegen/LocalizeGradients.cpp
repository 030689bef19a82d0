//===- LocalizeGradients.cpp - Gradient ops as others ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Localizer.h"

#include "ax/Support/Error.h"

using namespace mlir;

namespace ax::codegen {

using sharding::DimLayout;

/// Scattered into zeros, the indexed dimension in front. What belongs to other
/// ranks becomes 0.
llvm::Error Localizer::localize(GatherGradientOp op) {
  if (llvm::Error error = maskReduced(op))
    return error;
  int64_t axis = op.getAxis();
  sharding::DimLayout dim = layoutOf(op.getResult()).dims[axis];
  auto checked = checkedIndices(op);
  if (!checked)
    return checked.takeError();
  Value indices = *checked;
  RankedTensorType type = localType(op.getType());
  Type element = type.getElementType();
  if (isNarrowFloat(element))
    element = builder.getF32Type();
  Value updates = castTo(mapping.lookup(op.getUpdates()), element);
  if (dim.isSplit()) {
    auto [valid, local] = localIndex(indices, dim);
    SmallVector<int64_t> shape(tensorType(updates).getRank(), 1);
    llvm::copy(tensorType(valid).getShape(), shape.begin() + axis);
    indices = local;
    updates = select(reshape(valid, shape), updates,
                     constant(builder.getZeroAttr(element)));
  }
  SmallVector<int64_t> columns(tensorType(indices).getShape());
  int64_t depth = columns.size(), rank = tensorType(updates).getRank();
  columns.push_back(1);

  auto dims = llvm::to_vector(llvm::seq<int64_t>(axis, axis + depth));
  llvm::append_range(dims, llvm::seq<int64_t>(0, axis));
  llvm::append_range(dims, llvm::seq<int64_t>(axis + depth, rank));
  if (axis > 0)
    updates = TransposeOp::create(builder, updates, dims);
  SmallVector<int64_t> shape{type.getDimSize(axis)};
  llvm::append_range(shape, tensorType(updates).getShape().drop_front(depth));
  auto scattered = RankedTensorType::get(shape, element);
  Value zeros = ConstantOp::create(
      builder, DenseElementsAttr::get(scattered, builder.getZeroAttr(element)));
  Value sum = ScatterNDOp::create(builder, scattered, ScatterKind::add, zeros,
                                  reshape(indices, columns), updates);
  if (axis > 0) {
    auto back = llvm::to_vector(llvm::seq<int64_t>(1, axis + 1));
    back.push_back(0);
    llvm::append_range(back, llvm::seq<int64_t>(axis + 1, type.getRank()));
    sum = TransposeOp::create(builder, sum, back);
  }
  mapping.map(op.getResult(), castTo(sum, type.getElementType()));
  return llvm::Error::success();
}

} // namespace ax::codegen
