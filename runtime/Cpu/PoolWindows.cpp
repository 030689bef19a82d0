//===- PoolWindows.cpp - What each window of a pool sees ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PoolWindows.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

static PoolWindows::Span makeSpan(const PoolDesc &desc, size_t d, int64_t o) {
  int64_t start = o * desc.strides[d] - desc.padsLow[d];
  int64_t step = desc.dilations[d], size = desc.x.sizes[d + 2];
  /// The first place of the window that is not before `bound`.
  auto firstFrom = [&](int64_t bound) {
    int64_t steps = start >= bound ? 0 : llvm::divideCeil(bound - start, step);
    return std::min(steps, desc.kernel[d]);
  };
  int64_t first = firstFrom(0), end = firstFrom(size);
  PoolWindows::Span span{0, 0, step, end - first};
  if (first < end) {
    span.begin = start + first * step;
    span.end = start + (end - 1) * step + 1;
  }
  if (desc.countIncludePad)
    span.divisor =
        firstFrom(size + desc.padsHigh[d]) - firstFrom(-desc.padsLow[d]);
  return span;
}

PoolWindows::PoolWindows(const PoolDesc &desc) {
  size_t missing = 3 - desc.kernel.size();
  for (size_t d = 0; d < missing; ++d)
    lines[d] = {{0, 1, 1, 1}};
  for (size_t d = missing; d < 3; ++d)
    for (int64_t o = 0; o < desc.y.sizes[d - missing + 2]; ++o)
      lines[d].push_back(makeSpan(desc, d - missing, o));
  spatialStrides(desc.y, yStrides);
}

void PoolWindows::spatialStrides(const TensorDesc &view, int64_t *strides) {
  size_t missing = 5 - view.sizes.size();
  std::fill_n(strides, missing, 0);
  std::copy(view.strides.begin() + 2, view.strides.end(), strides + missing);
}

} // namespace ax::rt
