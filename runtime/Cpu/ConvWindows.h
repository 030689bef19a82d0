//===- ConvWindows.h - What windows see, as runs of memory ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With channels next to each other a window is a few runs of memory, which lie
// alike for all windows. What is padded, or has channels apart, is copied, with
// zeros around it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CONVWINDOWS_H
#define AX_RUNTIME_CONVWINDOWS_H

#include "ax/Runtime/LibraryOps.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace ax::rt {

/// What outputs see along one dimension: output i, at yBegin + i yStep, sees
/// with place p of its window, whose weight is at wBegin + p wStep, what is at
/// xBegin + i xStep + p placeStep.
struct Axis {
  int64_t outputs, yBegin, yStep;
  int64_t places, wBegin, wStep;
  int64_t xBegin, xStep, placeStep;

  int64_t getLast() const {
    return xBegin + (outputs - 1) * xStep + (places - 1) * placeStep;
  }
};
using Axes = llvm::SmallVector<Axis, 3>;

/// One axis of each dimension, in all ways, the last dimension's varying
/// fastest: of a transposed convolution there are several, one for each residue
/// of the strides; of others one. Empty where some output sees nothing, or
/// there are more than `most`.
std::vector<Axes> findAxes(const ConvDesc &desc, size_t most);

/// Calls fn(index) for all indices below `sizes`, the last one fastest.
template <typename Fn>
void forEachPlace(llvm::ArrayRef<int64_t> sizes, Fn &&fn) {
  llvm::SmallVector<int64_t, 4> index(sizes.size(), 0);
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  for (; count > 0; --count) {
    fn(llvm::ArrayRef<int64_t>(index));
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d])
        break;
      index[d] = 0;
    }
  }
}

/// Where the lines of outputs begin in `view`, x or y, all batches of them:
/// `begins` are the first outputs' places, `steps` lie between outputs.
std::vector<int64_t> linesOf(const Axes &axes, const TensorDesc &view,
                             llvm::ArrayRef<int64_t> begins,
                             llvm::ArrayRef<int64_t> steps);

/// x, or a copy whose channels are next to each other, with zeros around it.
struct PaddedInput {
  /// Where it is a copy the first elements are zeros: `low` of each dimension.
  TensorDesc view;
  std::vector<int64_t> low;
  bool isCopy = false;
  /// A copy is not mostly zeros; where it would be there is none, and no view.
  bool isWorthwhile = true;

  PaddedInput(const ConvDesc &desc, llvm::ArrayRef<Axes> all);

  int64_t countCopied() const { return isCopy ? view.numElements() : 0; }
  /// Fills `to`, of as many elements, with `from`, which is as `x` says.
  void copy(const TensorDesc &x, const float *from, float *to) const;
};

/// Bytes of so many floats, as places in a workspace have.
int64_t floatBytes(int64_t count);

} // namespace ax::rt

#endif // AX_RUNTIME_CONVWINDOWS_H
