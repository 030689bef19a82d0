//===- SpreadConvTransposed.cpp - To few channels, windows side by side ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the windows of a transposed convolution lie side by side, each number
// of y is one sum over channels. Of few channels these sums would fill no
// vector: they are made for many places of a line of x at a time, and then
// brought to where they belong.
//
//===----------------------------------------------------------------------===//

#include "ConvWindows.h"
#include "CpuLibrary.h"
#include "Threads.h"
#include "ax/Runtime/VectorKernels.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// Places of x for which sums are made at a time: what they see stays in the
/// first-level cache.
constexpr int64_t blockPlaces = 64;

/// Numbers next to each other that a place of x makes at most.
constexpr int64_t mostNumbers = 24;

/// to[i unit + j] = from[j blockPlaces + i] + bias[j]
template <int64_t unit>
void interleave(const float *__restrict from, const float *__restrict bias,
                float *__restrict to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < unit; ++j)
      to[i * unit + j] = from[j * blockPlaces + i] + bias[j];
}

/// `interleave` of `unit`, which is `most` or less.
template <int64_t most = mostNumbers>
auto interleaveOf(int64_t unit) {
  if constexpr (most > 1)
    if (unit < most)
      return interleaveOf<most - 1>(unit);
  return interleave<most>;
}

class SpreadConvTransposed : public CpuOp {
public:
  explicit SpreadConvTransposed(ConvDesc descIn)
      : desc(std::move(descIn)), channels(desc.x.sizes[1]),
        unit(desc.w.sizes.back() * desc.y.sizes[1]),
        columns(desc.w.numElements() / channels),
        blocksPerLine(llvm::divideCeil(desc.x.sizes.back(), blockPlaces)),
        threads(getNumThreads()), bring(interleaveOf(unit)) {
    workspaceBytes = floatBytes(columns * channels) + floatBytes(unit) +
                     threads * scratchBytes();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    auto *bytes = static_cast<char *>(workspace);
    auto *weights = reinterpret_cast<float *>(bytes);
    auto *biases =
        reinterpret_cast<float *>(bytes + floatBytes(columns * channels));
    bytes = reinterpret_cast<char *>(biases) + floatBytes(unit);
    const auto *x = static_cast<const float *>(arguments[0]);
    packWeights(static_cast<const float *>(arguments[1]), weights);
    int64_t outputs = desc.y.sizes[1];
    for (int64_t j = 0; j < unit; ++j)
      biases[j] = desc.hasBias
                      ? static_cast<const float *>(arguments[2])[j % outputs]
                      : 0;
    auto *y = static_cast<float *>(arguments[desc.hasBias ? 3 : 2]);
    int64_t blocks =
        blocksPerLine * desc.x.numElements() / channels / desc.x.sizes.back();
    int64_t perRange = llvm::divideCeil(blocks, threads);
    parallelFor(
        llvm::divideCeil(blocks, perRange), 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r)
            for (int64_t block = r * perRange;
                 block < std::min(blocks, (r + 1) * perRange); ++block)
              runBlock(x, weights, biases, y, block,
                       reinterpret_cast<float *>(bytes + r * scratchBytes()));
        });
    return llvm::Error::success();
  }

private:
  int64_t scratchBytes() const {
    return floatBytes(blockPlaces * (channels + columns));
  }

  /// [place of the window, out channel][channel]
  void packWeights(const float *from, float *to) const {
    llvm::ArrayRef<int64_t> window = llvm::ArrayRef(desc.w.sizes).drop_front(2);
    forEachPlace(window, [&](llvm::ArrayRef<int64_t> place) {
      int64_t offset = 0;
      for (size_t d = 0; d < place.size(); ++d)
        offset += place[d] * desc.w.strides[d + 2];
      for (int64_t o = 0; o < desc.y.sizes[1]; ++o)
        for (int64_t c = 0; c < channels; ++c)
          *to++ = from[offset + c * desc.w.strides[0] + o * desc.w.strides[1]];
    });
  }

  void runBlock(const float *x, const float *weights, const float *biases,
                float *y, int64_t block, float *scratch) const {
    int64_t first = block % blocksPerLine * blockPlaces;
    int64_t count = std::min(blockPlaces, desc.x.sizes.back() - first);
    // The line's place in dimensions but the last.
    llvm::SmallVector<int64_t, 3> place(desc.strides.size() - 1);
    int64_t line = block / blocksPerLine;
    for (size_t d = place.size(); d-- > 0; line /= desc.x.sizes[d + 2])
      place[d] = line % desc.x.sizes[d + 2];
    int64_t from = line * desc.x.strides[0] + first * desc.x.strides.back();
    int64_t to = line * desc.y.strides[0] + first * unit;
    for (size_t d = 0; d < place.size(); ++d) {
      from += place[d] * desc.x.strides[d + 2];
      to += place[d] * desc.strides[d] * desc.y.strides[d + 2];
    }
    float *seen = scratch, *sums = scratch + blockPlaces * channels;
    gather(x + from, count, seen);
    // Places behind the last are multiplied, too, and not looked at.
    const VectorKernels &kernels = vectorKernels();
    kernels.multiplyPanelF32(weights, channels, seen, count, sums, blockPlaces,
                             columns, channels,
                             llvm::alignTo(count, kernels.panelUnit));
    llvm::ArrayRef<int64_t> lines =
        llvm::ArrayRef(desc.w.sizes).drop_front(2).drop_back();
    forEachPlace(lines, [&](llvm::ArrayRef<int64_t> ofWindow) {
      int64_t at = to;
      for (size_t d = 0; d < ofWindow.size(); ++d)
        at += ofWindow[d] * desc.y.strides[d + 2];
      bring(sums, biases, y + at, count);
      sums += unit * blockPlaces;
    });
  }

  /// to[channel][place]
  void gather(const float *from, int64_t count, float *to) const {
    int64_t stride = desc.x.strides.back(), apart = desc.x.strides[1];
    if (apart == 1)
      return vectorKernels().transpose(from, stride, to, count, channels);
    for (int64_t c = 0; c < channels; ++c, from += apart, to += count)
      if (stride == 1)
        std::copy_n(from, count, to);
      else
        for (int64_t i = 0; i < count; ++i)
          to[i] = from[i * stride];
  }

  ConvDesc desc;
  int64_t channels;
  /// Numbers of a line of y that a place of x makes, and all of them.
  int64_t unit, columns;
  int64_t blocksPerLine, threads;
  decltype(&interleave<1>) bring;
};

bool isSpread(const ConvDesc &desc) {
  int64_t outputs = desc.y.sizes[1];
  bool isSpread = desc.kind == ConvKind::Transposed && desc.groups == 1 &&
                  desc.x.dtype == DType::F32 && desc.y.dtype == DType::F32 &&
                  desc.x.numElements() > 0 && desc.y.numElements() > 0 &&
                  desc.activation == Activation::None && !desc.hasResidual &&
                  // What a place adds to a line of y lies together.
                  (desc.y.strides[1] == 1 || outputs == 1) &&
                  desc.y.strides.back() == outputs &&
                  desc.w.sizes.back() * outputs <= mostNumbers;
  for (size_t d = 0; d < desc.strides.size(); ++d) {
    int64_t window = desc.w.sizes[d + 2];
    isSpread &= desc.strides[d] == window && desc.padsLow[d] == 0 &&
                (desc.dilations[d] == 1 || window == 1) &&
                desc.y.sizes[d + 2] == desc.x.sizes[d + 2] * window;
  }
  return isSpread;
}

} // namespace

ExpectedCpuOp prepareSpreadConvTransposed(const ConvDesc &desc) {
  if (!isSpread(desc))
    return nullptr;
  return std::make_unique<SpreadConvTransposed>(desc);
}

} // namespace ax::rt
