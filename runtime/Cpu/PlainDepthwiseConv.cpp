//===- PlainDepthwiseConv.cpp - Channels, each by its own few weights -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums are made for elements of x that lie together: of several channels at one
// place, or of one channel of a signal at places that see as many elements of
// x. Where places are a stride apart, what one tap sees is brought together
// with what others do that are so far from it.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// Sums made at a time.
constexpr int64_t blockSums = 512;
/// Places of a line that a thread does at a time.
constexpr int64_t linePlaces = 8 * blockSums;
/// Taps of a window whose places are a stride apart.
constexpr int64_t mostTaps = 1024;

class PlainDepthwiseConv : public CpuOp {
public:
  explicit PlainDepthwiseConv(ConvDesc descIn)
      : desc(std::move(descIn)), channels(desc.y.sizes[1]),
        places(volume(desc.y)), taps(volume(desc.w)),
        isAlongChannels(desc.x.strides[1] == 1 && channels > 1) {
    workspaceBytes = static_cast<int64_t>(sizeof(float)) * channels * taps;
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    Operands operands;
    operands.x = static_cast<const float *>(arguments[0]);
    const float *w = static_cast<const float *>(arguments[1]);
    int next = 2;
    if (desc.hasBias)
      operands.bias = static_cast<const float *>(arguments[next++]);
    if (desc.hasResidual)
      operands.residual = static_cast<const float *>(arguments[next++]);
    operands.y = static_cast<float *>(arguments[next]);
    // Next to each other: of all channels for a tap, or the reverse.
    float *weights = static_cast<float *>(workspace);
    operands.weights = weights;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t t = 0; t < taps; ++t)
        weights[isAlongChannels ? t * channels + c : c * taps + t] =
            w[c * desc.w.strides[0] + offsetOf(desc.w, t)];
    int64_t parts = llvm::divideCeil(places, linePlaces);
    int64_t lines = isAlongChannels ? places : channels * parts;
    parallelFor(desc.y.sizes[0] * lines, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (isAlongChannels)
          runPlace(operands, i / lines, i % lines);
        else
          runChannel(operands, i / lines, i % lines / parts,
                     i % parts * linePlaces);
    });
    return llvm::Error::success();
  }

private:
  struct Operands {
    const float *x, *weights;
    const float *bias = nullptr, *residual = nullptr;
    float *y;
  };

  /// Returns how many places, or taps, there are.
  static int64_t volume(const TensorDesc &view) {
    return llvm::product_of(llvm::ArrayRef(view.sizes).drop_front(2));
  }
  /// Returns where one of them is, of its number in row-major order.
  static int64_t offsetOf(const TensorDesc &view, int64_t number) {
    int64_t offset = 0;
    for (size_t d = view.sizes.size(); d-- > 2; number /= view.sizes[d])
      offset += number % view.sizes[d] * view.strides[d];
    return offset;
  }

  /// Returns where in dimension `d` of x the first tap of `place` is, perhaps
  /// outside.
  int64_t firstSeen(size_t d, int64_t place) const {
    return place * desc.strides[d] - desc.padsLow[d];
  }
  /// Returns which taps of `place` are inside of x: the first, and the one
  /// behind the last.
  std::pair<int64_t, int64_t> tapsInside(size_t d, int64_t place) const {
    int64_t first = firstSeen(d, place), dilation = desc.dilations[d],
            size = desc.w.sizes[d + 2];
    int64_t begin =
        std::clamp<int64_t>(llvm::divideCeilSigned(-first, dilation), 0, size);
    int64_t end = std::clamp<int64_t>(
        llvm::divideCeilSigned(desc.x.sizes[d + 2] - first, dilation), begin,
        size);
    return {begin, end};
  }

  /// The taps of `place` that lie in one line of the window.
  struct TapLine {
    /// In x from its first place, and how many taps there are.
    int64_t offset, count;
    /// Of the first tap in the window.
    int64_t number;
  };

  /// Calls `visit` with each of the lines of `place` that are not outside.
  template <typename Visit>
  void forEachLine(int64_t place, Visit visit) const {
    size_t last = desc.strides.size() - 1;
    int64_t size = desc.y.sizes[last + 2], width = desc.w.sizes[last + 2];
    auto [begin, end] = tapsInside(last, place % size);
    if (begin == end)
      return;
    int64_t inLine =
        (firstSeen(last, place % size) + begin * desc.dilations[last]) *
        desc.x.strides[last + 2];
    for (int64_t line = 0; line < taps / width; ++line) {
      int64_t offset = inLine, tap = line, at = place / size;
      bool isInside = true;
      for (size_t d = last; d-- > 0;
           tap /= desc.w.sizes[d + 2], at /= desc.y.sizes[d + 2]) {
        int64_t seen = firstSeen(d, at % desc.y.sizes[d + 2]) +
                       tap % desc.w.sizes[d + 2] * desc.dilations[d];
        isInside &= seen >= 0 && seen < desc.x.sizes[d + 2];
        offset += seen * desc.x.strides[d + 2];
      }
      if (isInside)
        visit(TapLine{offset, end - begin, line * width + begin});
    }
  }

  void runPlace(const Operands &operands, int64_t batch, int64_t place) const {
    int64_t step = desc.dilations.back() * desc.x.strides.back();
    const float *x = operands.x + batch * desc.x.strides[0];
    float sums[blockSums];
    for (int64_t c = 0; c < channels; c += blockSums) {
      int64_t count = std::min(blockSums, channels - c);
      for (int64_t i = 0; i < count; ++i)
        sums[i] = operands.bias ? operands.bias[c + i] : 0;
      forEachLine(place, [&](const TapLine &line) {
        vectorKernels().addTapsOfChannels(x + c + line.offset, step,
                                          operands.weights +
                                              line.number * channels + c,
                                          channels, line.count, sums, count);
      });
      store(operands, batch, c, offsetOf(desc.y, place), desc.y.strides[1],
            sums, count);
    }
  }

  /// Of a part of its places, from `from` on.
  void runChannel(const Operands &operands, int64_t batch, int64_t channel,
                  int64_t from) const {
    const float *x =
        operands.x + batch * desc.x.strides[0] + channel * desc.x.strides[1];
    float first = operands.bias ? operands.bias[channel] : 0;
    float sums[blockSums];
    int64_t last = std::min(places, from + linePlaces);
    for (int64_t place = from, next; place < last; place = next) {
      auto [begin, end] = tapsInside(0, place);
      next = std::min(last, place + blockSums);
      // What the last place sees tells whether all see as much: both ends only
      // fall.
      while (tapsInside(0, next - 1) != std::pair(begin, end))
        next = place + llvm::divideCeil(next - place, 2);
      std::fill_n(sums, next - place, first);
      if (begin < end)
        addTaps(x + firstSeen(0, place) + begin * desc.dilations[0],
                operands.weights + channel * taps + begin, end - begin, sums,
                next - place);
      store(operands, batch, channel, place * desc.y.strides[2],
            desc.y.strides[2], sums, next - place);
    }
  }

  /// Adds `count` taps to sums of places, of which the first sees `x` with the
  /// first of them.
  void addTaps(const float *x, const float *weights, int64_t count, float *sums,
               int64_t places) const {
    const VectorKernels &kernels = vectorKernels();
    int64_t stride = desc.strides[0];
    if (stride == 1)
      return kernels.addTaps(x, desc.dilations[0], weights, count, sums,
                             places);
    float seen[blockSums + mostTaps], some[mostTaps];
    for (int64_t tap = 0; tap < std::min(stride, count); ++tap) {
      int64_t taps = llvm::divideCeil(count - tap, stride);
      for (int64_t i = 0; i < taps; ++i)
        some[i] = weights[tap + i * stride];
      for (int64_t i = 0; i < places + taps - 1; ++i)
        seen[i] = x[tap + i * stride];
      kernels.addTaps(seen, 1, some, taps, sums, places);
    }
  }

  /// `place`: where it is in y.
  void store(const Operands &operands, int64_t batch, int64_t channel,
             int64_t place, int64_t stride, const float *sums,
             int64_t count) const {
    int64_t at =
        batch * desc.y.strides[0] + channel * desc.y.strides[1] + place;
    float *y = operands.y + at;
    if (operands.residual || desc.activation != Activation::None)
      for (int64_t i = 0; i < count; ++i)
        y[i * stride] = finishSum(
            desc, sums[i],
            operands.residual ? operands.residual + at + i * stride : nullptr);
    else if (stride == 1)
      std::copy_n(sums, count, y);
    else
      for (int64_t i = 0; i < count; ++i)
        y[i * stride] = sums[i];
  }

  ConvDesc desc;
  int64_t channels, places, taps;
  bool isAlongChannels;
};

} // namespace

bool isFilter(const ConvDesc &desc) {
  return desc.kind == ConvKind::Forward && desc.x.dtype == DType::F32 &&
         desc.y.dtype == DType::F32 && desc.x.sizes[1] == 1 &&
         desc.y.sizes[1] == 1 && desc.strides.size() == 1 &&
         desc.x.strides[2] == 1 &&
         (desc.strides[0] == 1 ||
          (desc.dilations[0] == 1 && desc.w.sizes[2] <= mostTaps));
}

bool isPlainDepthwiseConv(const ConvDesc &desc) {
  return desc.kind == ConvKind::Forward && desc.x.dtype == DType::F32 &&
         isDepthwise(desc) &&
         (desc.x.strides[1] == 1 ||
          (desc.strides.size() == 1 && desc.x.strides[2] == 1 &&
           desc.strides[0] == 1));
}

ExpectedCpuOp preparePlainDepthwiseConv(const ConvDesc &desc) {
  return std::make_unique<PlainDepthwiseConv>(desc);
}

} // namespace ax::rt
