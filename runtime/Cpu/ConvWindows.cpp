//===- ConvWindows.cpp - What windows see, as runs of memory --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ConvWindows.h"

#include "Threads.h"
#include "ax/Runtime/VectorKernels.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

/// Along dimension `d`: of a convolution one axis, of a transposed one those of
/// its residues. Empty where some output sees nothing.
static std::vector<Axis> axesOf(const ConvDesc &desc, size_t d, size_t most) {
  int64_t places = desc.w.sizes[d + 2], outputs = desc.y.sizes[d + 2];
  int64_t stride = desc.strides[d], low = desc.padsLow[d];
  // Of what is in memory there are fewer than 2^40 along a dimension.
  constexpr int64_t large = 1 << 20;
  if (stride > large || desc.dilations[d] > large || low > large ||
      low < -large)
    return {};
  if (desc.kind != ConvKind::Transposed)
    return {{outputs, 0, 1, places, 0, 1, -low, stride, desc.dilations[d]}};
  std::vector<Axis> axes;
  for (int64_t output = 0; output < std::min(stride, outputs); ++output) {
    int64_t first = (output + low) % stride;
    if (first >= places || axes.size() == most)
      return {};
    // The last place sees the first element.
    int64_t count = (places - first + stride - 1) / stride;
    axes.push_back({(outputs - output + stride - 1) / stride, output, stride,
                    count, first + (count - 1) * stride, -stride,
                    (output + low) / stride - (count - 1), 1, 1});
  }
  return axes;
}

std::vector<Axes> findAxes(const ConvDesc &desc, size_t most) {
  std::vector<Axes> all(1);
  for (size_t d = 0; d < desc.strides.size(); ++d) {
    std::vector<Axis> axes = axesOf(desc, d, most);
    if (axes.size() * all.size() > most)
      return {};
    std::vector<Axes> longer;
    for (const Axes &before : all)
      for (const Axis &axis : axes) {
        longer.push_back(before);
        longer.back().push_back(axis);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<int64_t> linesOf(const Axes &axes, const TensorDesc &view,
                             llvm::ArrayRef<int64_t> begins,
                             llvm::ArrayRef<int64_t> steps) {
  llvm::SmallVector<int64_t, 3> sizes{view.sizes[0]};
  int64_t origin = 0;
  for (size_t d = 0; d < axes.size(); ++d) {
    origin += begins[d] * view.strides[d + 2];
    if (d + 1 < axes.size())
      sizes.push_back(axes[d].outputs);
  }
  std::vector<int64_t> lines;
  forEachPlace(sizes, [&](llvm::ArrayRef<int64_t> line) {
    int64_t offset = origin + line[0] * view.strides[0];
    for (size_t d = 1; d < line.size(); ++d)
      offset += line[d] * steps[d - 1] * view.strides[d + 1];
    lines.push_back(offset);
  });
  return lines;
}

PaddedInput::PaddedInput(const ConvDesc &desc, llvm::ArrayRef<Axes> all)
    : view(desc.x), low(desc.strides.size(), 0) {
  std::vector<int64_t> sizes = view.sizes;
  isCopy = view.strides[1] != 1 && sizes[1] != 1;
  for (size_t d = 0; d < low.size(); ++d) {
    int64_t high = 0;
    for (const Axes &axes : all) {
      low[d] = std::max(low[d], -axes[d].xBegin);
      high = std::max(high, axes[d].getLast() + 1 - sizes[d + 2]);
    }
    isCopy |= low[d] > 0 || high > 0;
    sizes[d + 2] += low[d] + high;
  }
  if (!isCopy)
    return;
  // Sizes of what is not there yet may be absurd.
  constexpr double much = 4;
  double copied = 1;
  for (int64_t size : sizes)
    copied *= static_cast<double>(size);
  isWorthwhile =
      copied <= much * static_cast<double>(std::max(desc.x.numElements(),
                                                    desc.y.numElements()));
  if (!isWorthwhile)
    return;
  view = TensorDesc::dense(DType::F32, sizes);
  view.strides[1] = 1;
  int64_t stride = sizes[1];
  for (size_t d = sizes.size(); d-- > 2; stride *= sizes[d])
    view.strides[d] = stride;
  view.strides[0] = stride;
}

static void copyLine(const TensorDesc &x, const float *from, float *to) {
  int64_t channels = x.sizes[1], channelStride = x.strides[1];
  int64_t places = x.sizes.back(), placeStride = x.strides.back();
  if ((channelStride == 1 || channels == 1) &&
      (placeStride == channels || places == 1))
    std::memcpy(to, from,
                static_cast<size_t>(places * channels) * sizeof(float));
  else if (placeStride == 1 || places == 1)
    vectorKernels().transpose(from, channelStride, to, channels, places);
  else
    for (int64_t p = 0; p < places; ++p)
      for (int64_t c = 0; c < channels; ++c)
        to[p * channels + c] = from[p * placeStride + c * channelStride];
}

void PaddedInput::copy(const TensorDesc &x, const float *from,
                       float *to) const {
  size_t dims = low.size();
  // All lines of the copy, batches included.
  llvm::SmallVector<int64_t, 3> sizes{view.sizes[0]};
  sizes.append(view.sizes.begin() + 2, view.sizes.end() - 1);
  int64_t channels = x.sizes[1], before = low.back() * channels;
  int64_t lines = 1, length = view.sizes.back() * channels;
  for (int64_t size : sizes)
    lines *= size;
  parallelFor(lines, 1, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      float *at = to + line * length;
      int64_t rest = line, offset = 0;
      bool isInside = true;
      for (size_t d = dims - 1; d-- > 0;) {
        int64_t place = rest % sizes[d + 1] - low[d];
        rest /= sizes[d + 1];
        isInside &= place >= 0 && place < x.sizes[d + 2];
        offset += place * x.strides[d + 2];
      }
      if (!isInside) {
        std::fill(at, at + length, 0.0f);
        continue;
      }
      const float *source = from + offset + rest * x.strides[0];
      int64_t used = x.sizes.back() * channels;
      std::fill(at, at + before, 0.0f);
      copyLine(x, source, at + before);
      std::fill(at + before + used, at + length, 0.0f);
    }
  });
}

int64_t floatBytes(int64_t count) {
  constexpr int64_t alignment = 64;
  return llvm::alignTo(count * static_cast<int64_t>(sizeof(float)), alignment);
}

} // namespace ax::rt
