//===- PlainDepthwiseConv.cpp - Signals, each by its own few weights ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums are made for elements of x that lie together: of several channels at one
// place, or of one channel at places that see as many elements of x.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// Sums made at a time.
constexpr int64_t blockSums = 512;

class PlainDepthwiseConv : public CpuOp {
public:
  explicit PlainDepthwiseConv(ConvDesc descIn)
      : desc(std::move(descIn)), channels(desc.y.sizes[1]),
        places(desc.y.sizes[2]), taps(desc.w.sizes[2]),
        dilation(desc.dilations[0]), isAlongChannels(desc.x.strides[1] == 1) {
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
            w[c * desc.w.strides[0] + t * desc.w.strides[2]];
    int64_t lines = isAlongChannels ? places : channels;
    parallelFor(desc.y.sizes[0] * lines, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (isAlongChannels)
          runPlace(operands, i / lines, i % lines);
        else
          runChannel(operands, i / lines, i % lines);
    });
    return llvm::Error::success();
  }

private:
  struct Operands {
    const float *x, *weights;
    const float *bias = nullptr, *residual = nullptr;
    float *y;
  };

  /// Returns where in x the first tap of `place` is, perhaps outside.
  int64_t firstSeen(int64_t place) const {
    return place * desc.strides[0] - desc.padsLow[0];
  }
  /// Returns which taps of `place` are inside of x: the first, and the one
  /// behind the last.
  std::pair<int64_t, int64_t> tapsInside(int64_t place) const {
    int64_t first = firstSeen(place);
    int64_t begin =
        std::clamp<int64_t>(llvm::divideCeilSigned(-first, dilation), 0, taps);
    int64_t end = std::clamp<int64_t>(
        llvm::divideCeilSigned(desc.x.sizes[2] - first, dilation), begin, taps);
    return {begin, end};
  }

  void runPlace(const Operands &operands, int64_t batch, int64_t place) const {
    auto [begin, end] = tapsInside(place);
    int64_t step = dilation * desc.x.strides[2];
    const float *x = operands.x + batch * desc.x.strides[0] +
                     firstSeen(place) * desc.x.strides[2];
    float sums[blockSums];
    for (int64_t c = 0; c < channels; c += blockSums) {
      int64_t count = std::min(blockSums, channels - c);
      for (int64_t i = 0; i < count; ++i)
        sums[i] = operands.bias ? operands.bias[c + i] : 0;
      if (begin < end)
        vectorKernels().addTapsOfChannels(
            x + c + begin * step, step, operands.weights + begin * channels + c,
            channels, end - begin, sums, count);
      store(operands, batch, c, place, desc.y.strides[1], sums, count);
    }
  }

  void runChannel(const Operands &operands, int64_t batch,
                  int64_t channel) const {
    const float *x =
        operands.x + batch * desc.x.strides[0] + channel * desc.x.strides[1];
    float first = operands.bias ? operands.bias[channel] : 0;
    float sums[blockSums];
    for (int64_t place = 0, next; place < places; place = next) {
      auto [begin, end] = tapsInside(place);
      next = std::min(places, place + blockSums);
      // What the last place sees tells whether all see as much: both ends only
      // fall.
      while (tapsInside(next - 1) != std::pair(begin, end))
        next = place + llvm::divideCeil(next - place, 2);
      std::fill_n(sums, next - place, first);
      if (begin < end)
        vectorKernels().addTaps(x + firstSeen(place) + begin * dilation,
                                dilation,
                                operands.weights + channel * taps + begin,
                                end - begin, sums, next - place);
      store(operands, batch, channel, place, desc.y.strides[2], sums,
            next - place);
    }
  }

  void store(const Operands &operands, int64_t batch, int64_t channel,
             int64_t place, int64_t stride, const float *sums,
             int64_t count) const {
    int64_t at = batch * desc.y.strides[0] + channel * desc.y.strides[1] +
                 place * desc.y.strides[2];
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
  int64_t channels, places, taps, dilation;
  bool isAlongChannels;
};

} // namespace

bool isPlainDepthwiseConv(const ConvDesc &desc) {
  return desc.kind == ConvKind::Forward && desc.x.dtype == DType::F32 &&
         desc.strides.size() == 1 && isDepthwise(desc) &&
         (desc.x.strides[1] == 1 ||
          (desc.x.strides[2] == 1 && desc.strides[0] == 1));
}

ExpectedCpuOp preparePlainDepthwiseConv(const ConvDesc &desc) {
  return std::make_unique<PlainDepthwiseConv>(desc);
}

} // namespace ax::rt
