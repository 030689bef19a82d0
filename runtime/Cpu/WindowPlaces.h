//===- WindowPlaces.h - Which elements a window sees ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_WINDOWPLACES_H
#define AX_RUNTIME_WINDOWPLACES_H

#include "ax/Runtime/LibraryOps.h"

namespace ax::rt {

/// Spatial places of a convolution, numbered in row-major order. The
/// description must outlive it.
class WindowPlaces {
public:
  explicit WindowPlaces(const ConvDesc &desc) : desc(desc) {
    for (size_t d = 0; d < desc.strides.size(); ++d) {
      kernelPlaces *= desc.w.sizes[d + 2];
      outPlaces *= desc.y.sizes[d + 2];
    }
  }

  /// Returns the offset of the p-th place of `view`.
  int64_t offset(const TensorDesc &view, int64_t p) const {
    int64_t offset = 0;
    for (size_t d = desc.strides.size(); d-- > 0;) {
      offset += p % view.sizes[d + 2] * view.strides[d + 2];
      p /= view.sizes[d + 2];
    }
    return offset;
  }
  /// Offset in x of what kernel place `p` sees from output place `out`, -1 in
  /// the padding.
  int64_t source(int64_t out, int64_t p) const {
    int64_t offset = 0;
    for (size_t d = desc.strides.size(); d-- > 0;) {
      int64_t o = out % desc.y.sizes[d + 2];
      out /= desc.y.sizes[d + 2];
      int64_t kernel = p % desc.w.sizes[d + 2] * desc.dilations[d];
      p /= desc.w.sizes[d + 2];
      int64_t in = o * desc.strides[d] - desc.padsLow[d] + kernel;
      if (in < 0 || in >= desc.x.sizes[d + 2])
        return -1;
      offset += in * desc.x.strides[d + 2];
    }
    return offset;
  }

  int64_t kernelPlaces = 1, outPlaces = 1;

private:
  const ConvDesc &desc;
};

} // namespace ax::rt

#endif // AX_RUNTIME_WINDOWPLACES_H
