//===- Strides.cpp - Values in memory, seen with strides ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Local/Strides.h"

using namespace mlir;

namespace ax {

static SmallVector<int64_t> denseStrides(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> strides(sizes.size(), 1);
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * sizes[i + 1];
  return strides;
}

StridedView StridedView::whole(Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  return {value, 0, SmallVector<int64_t>(shape), denseStrides(shape)};
}

bool StridedView::isDense() const {
  if (llvm::is_contained(sizes, 0))
    return true;
  int64_t expected = 1;
  for (auto [size, stride] :
       llvm::zip_equal(llvm::reverse(sizes), llvm::reverse(strides))) {
    if (size != 1 && stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

std::optional<SmallVector<int64_t>> reshapeStrides(ArrayRef<int64_t> sizes,
                                                   ArrayRef<int64_t> strides,
                                                   ArrayRef<int64_t> newSizes) {
  if (llvm::is_contained(sizes, 0))
    return denseStrides(newSizes);
  // Runs of dimensions that are one dimension in memory, minor first.
  struct Run {
    int64_t size, stride;
  };
  SmallVector<Run> runs;
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    if (sizes[i] == 1)
      continue;
    if (!runs.empty() && strides[i] == runs.back().stride * runs.back().size)
      runs.back().size *= sizes[i];
    else
      runs.push_back({sizes[i], strides[i]});
  }
  SmallVector<int64_t> result(newSizes.size(), 1);
  size_t run = 0;
  int64_t taken = 1;
  for (int64_t i = static_cast<int64_t>(newSizes.size()) - 1; i >= 0; --i) {
    if (newSizes[i] == 1)
      continue;
    if (run < runs.size() && taken == runs[run].size) {
      ++run;
      taken = 1;
    }
    if (run == runs.size() || runs[run].size % (taken * newSizes[i]) != 0)
      return std::nullopt;
    result[i] = runs[run].stride * taken;
    taken *= newSizes[i];
  }
  return result;
}

std::optional<StridedView> whereMoved(Value made,
                                      llvm::function_ref<bool(Value)> isWhole) {
  if (isWhole(made))
    return StridedView::whole(made);
  if (!made.hasOneUse())
    return std::nullopt;
  OpOperand &use = *made.use_begin();
  Operation *user = use.getOwner();
  if (!isa<TransposeOp, ReshapeOp, ConcatOp>(user))
    return std::nullopt;
  std::optional<StridedView> to = whereMoved(user->getResult(0), isWhole);
  if (!to)
    return std::nullopt;
  ArrayRef<int64_t> shape = tensorType(made).getShape();
  StridedView place{to->base, to->offset, SmallVector<int64_t>(shape),
                    to->strides};
  if (isa<ReshapeOp>(user)) {
    auto strides = reshapeStrides(to->sizes, to->strides, shape);
    if (!strides)
      return std::nullopt;
    place.strides = *strides;
  } else if (auto transpose = dyn_cast<TransposeOp>(user)) {
    for (auto [i, from] : llvm::enumerate(transpose.getPermutation()))
      place.strides[from] = to->strides[i];
  } else {
    int64_t dim = static_cast<int64_t>(cast<ConcatOp>(user).getDim());
    for (Value before : user->getOperands().take_front(use.getOperandNumber()))
      place.offset += tensorType(before).getDimSize(dim) * to->strides[dim];
  }
  return place;
}

} // namespace ax
