//===- TransposedNorms.cpp - Norms where their operand lies ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// x [N, C, H, W] that lies as m [N, H, W, C], normalised as [N, G, C/G H W]:
// dimensions become factors N, G, C/G, H, W, in the order of m.
//
//===----------------------------------------------------------------------===//
#include "TransposedNorms.h"

#include "Kernels/WideBuilder.h"
#include "StridedView.h"

using namespace mlir;

namespace ax::codegen {

namespace {

/// What both the transpose's result and the norm's operand are made of.
struct Factor {
  int64_t size, turnedDim, normDim;
};

/// Returns factors that both shapes are made of; nothing where a dimension of
/// one overlaps a part of one of the other.
std::optional<SmallVector<Factor>> commonFactors(ArrayRef<int64_t> turned,
                                                 ArrayRef<int64_t> norm) {
  SmallVector<Factor> factors;
  size_t t = 0, n = 0;
  int64_t leftOfTurned = 1, leftOfNorm = 1;
  while (true) {
    while (leftOfTurned == 1 && t < turned.size())
      leftOfTurned = turned[t++];
    while (leftOfNorm == 1 && n < norm.size())
      leftOfNorm = norm[n++];
    if (leftOfTurned == 1 && leftOfNorm == 1)
      return factors;
    int64_t size = std::min(leftOfTurned, leftOfNorm);
    if (size <= 1 || leftOfTurned % size != 0 || leftOfNorm % size != 0)
      return std::nullopt;
    factors.push_back(
        {size, static_cast<int64_t>(t) - 1, static_cast<int64_t>(n) - 1});
    leftOfTurned /= size;
    leftOfNorm /= size;
  }
}

bool readsAcrossMemory(Value turned) {
  StridedView view = viewOf(turned);
  for (auto [size, stride] :
       llvm::zip_equal(llvm::reverse(view.sizes), llvm::reverse(view.strides)))
    if (size != 1)
      return stride != 1;
  return false;
}

template <typename NormOp>
void normalize(NormOp op) {
  Value x = op.getX();
  RankedTensorType type = tensorType(x);
  auto reshape = x.getDefiningOp<ReshapeOp>();
  auto turned = (reshape ? reshape.getOperand() : x)
                    .template getDefiningOp<TransposeOp>();
  if (!turned || type.getNumElements() == 0 || !readsAcrossMemory(turned))
    return;
  RankedTensorType turnedType = tensorType(turned);
  auto factors = commonFactors(turnedType.getShape(), type.getShape());
  if (!factors)
    return;

  WideBuilder f(op, type.getElementType());
  Value inMemory = turned.getOperand();
  ArrayRef<int64_t> memoryDims = turned.getPermutation();
  // Places of factors in memory.
  auto order = llvm::to_vector(llvm::seq<size_t>(factors->size()));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return memoryDims[(*factors)[a].turnedDim] <
           memoryDims[(*factors)[b].turnedDim];
  });
  int64_t axis = op.getAxis();
  SmallVector<int64_t> sizes, dims;
  for (auto [place, number] : llvm::enumerate(order)) {
    sizes.push_back((*factors)[number].size);
    if ((*factors)[number].normDim >= axis)
      dims.push_back(place);
  }
  auto reshaped = [&](Value value, ArrayRef<int64_t> shape) -> Value {
    RankedTensorType from = tensorType(value);
    if (from.getShape() == shape)
      return value;
    return ReshapeOp::create(f.b, f.loc, from.clone(shape), value);
  };
  // A scale or bias has dimensions `axis` and those behind it.
  auto parameter = [&](Value value) -> Value {
    if (!value)
      return value;
    SmallVector<int64_t> ones(sizes.size(), 1), shape, permutation;
    SmallVector<int64_t> position(factors->size(), -1);
    for (auto [number, factor] : llvm::enumerate(*factors))
      if (factor.normDim >= axis) {
        position[number] = shape.size();
        shape.push_back(factor.size);
      }
    SmallVector<int64_t> inOrder;
    for (auto [place, number] : llvm::enumerate(order))
      if (position[number] >= 0) {
        permutation.push_back(position[number]);
        inOrder.push_back(sizes[place]);
        ones[place] = sizes[place];
      }
    value = reshaped(value, shape);
    if (!llvm::is_sorted(permutation))
      value = TransposeOp::create(f.b, f.loc, tensorType(value).clone(inOrder),
                                  value, permutation);
    return reshaped(value, ones);
  };
  Value y = f.normalize(op, reshaped(inMemory, sizes), dims,
                        parameter(op.getScale()), parameter(op.getBias()));
  y = reshaped(f.cast(y, type.getElementType()),
               tensorType(inMemory).getShape());
  Value back = TransposeOp::create(f.b, f.loc, turnedType, y, memoryDims);
  // A reshape that undoes the one before the norm is no obstacle to the
  // transpose on its way down.
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (isa<ReshapeOp>(user) && user->getResult(0).getType() == turnedType)
      user->getResult(0).replaceAllUsesWith(back);
  op->getResult(0).replaceAllUsesWith(reshaped(back, type.getShape()));
  op->erase();
}

} // namespace

void normalizeInMemoryOrder(Operation *op) {
  if (auto norm = dyn_cast<LayerNormOp>(op))
    normalize(norm);
  else if (auto norm = dyn_cast<RMSNormOp>(op))
    normalize(norm);
}

} // namespace ax::codegen
