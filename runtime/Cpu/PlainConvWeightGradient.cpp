//===- PlainConvWeightGradient.cpp - Of any element type ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread makes the gradients of a few input channels of one group: for some
// output places at a time, the elements of x that they see, transposed, are
// multiplied by the gradients there.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"
#include "WindowPlaces.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

constexpr int64_t blockPlaces = 64;
constexpr int64_t mostChannels = 8;

/// A weight gradient of T; R is the type of the result.
template <typename T, typename R>
class PlainConvWeightGradient : public CpuOp {
public:
  using S = SumType<T>;

  explicit PlainConvWeightGradient(ConvDesc descIn)
      : desc(std::move(descIn)), window(desc) {
    inChannels = desc.x.sizes[1] / desc.groups;
    outChannels = desc.y.sizes[1] / desc.groups;
    threads = getNumThreads();
    if (desc.w.numElements() == 0)
      return;
    blockChannels =
        std::clamp<int64_t>(desc.x.sizes[1] / threads, 1, mostChannels);
    blocks = llvm::divideCeil(inChannels, blockChannels);
    rows = std::min(inChannels, blockChannels) * window.kernelPlaces;
    threadElements =
        rows * blockPlaces + blockPlaces * outChannels + 2 * rows * outChannels;
    workspaceBytes = static_cast<int64_t>(sizeof(S)) * threadElements * threads;
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const T *x = static_cast<const T *>(arguments[0]);
    const T *dy = static_cast<const T *>(arguments[1]);
    R *dw = static_cast<R *>(arguments[2]);
    int64_t count = desc.groups * blocks;
    int64_t perRange = std::max<int64_t>(1, llvm::divideCeil(count, threads));
    parallelFor(
        llvm::divideCeil(count, perRange), 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            S *scratch = static_cast<S *>(workspace) + r * threadElements;
            for (int64_t i = r * perRange;
                 i < std::min(count, (r + 1) * perRange); ++i)
              runChannels(i / blocks, i % blocks * blockChannels, x, dy, dw,
                          scratch);
          }
        });
    return llvm::Error::success();
  }

private:
  void runChannels(int64_t group, int64_t first, const T *x, const T *dy, R *dw,
                   S *scratch) const {
    int64_t channels = std::min(blockChannels, inChannels - first);
    int64_t used = channels * window.kernelPlaces;
    S *seen = scratch, *gradients = seen + rows * blockPlaces;
    S *product = gradients + blockPlaces * outChannels;
    S *sums = product + rows * outChannels;
    std::fill_n(sums, used * outChannels, S(0));
    for (int64_t batch = 0; batch < desc.x.sizes[0]; ++batch) {
      const T *from = x + batch * desc.x.strides[0] +
                      (group * inChannels + first) * desc.x.strides[1];
      const T *gradient = dy + batch * desc.y.strides[0] +
                          group * outChannels * desc.y.strides[1];
      for (int64_t place = 0; place < window.outPlaces; place += blockPlaces) {
        int64_t places = std::min(blockPlaces, window.outPlaces - place);
        gather(from, gradient, channels, place, places, seen, gradients);
        multiply(seen, gradients, outChannels, product, used, places,
                 outChannels);
        for (int64_t i = 0; i < used * outChannels; ++i)
          sums[i] += product[i];
      }
    }
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < window.kernelPlaces; ++p)
        for (int64_t o = 0; o < outChannels; ++o)
          dw[(group * outChannels + o) * desc.w.strides[0] +
             (first + c) * desc.w.strides[1] + window.offset(desc.w, p)] =
              narrow<R>(sums[(c * window.kernelPlaces + p) * outChannels + o]);
  }

  /// seen: [channel, kernel place] x [place]; gradients: [place] x [out
  /// channel].
  void gather(const T *x, const T *dy, int64_t channels, int64_t first,
              int64_t places, S *seen, S *gradients) const {
    for (int64_t i = 0; i < places; ++i) {
      for (int64_t p = 0; p < window.kernelPlaces; ++p) {
        int64_t from = window.source(first + i, p);
        for (int64_t c = 0; c < channels; ++c)
          seen[(c * window.kernelPlaces + p) * places + i] =
              from < 0 ? S(0) : widen<S>(x[from + c * desc.x.strides[1]]);
      }
      int64_t at = window.offset(desc.y, first + i);
      for (int64_t o = 0; o < outChannels; ++o)
        gradients[i * outChannels + o] =
            widen<S>(dy[at + o * desc.y.strides[1]]);
    }
  }

  ConvDesc desc;
  WindowPlaces window;
  int64_t inChannels, outChannels, threads;
  /// There are no blocks when there is nothing to make.
  int64_t blockChannels = 1, blocks = 0, rows = 0, threadElements = 0;
};

} // namespace

ExpectedCpuOp preparePlainConvWeightGradient(const ConvDesc &desc) {
  return visitFactors(
      desc.x.dtype, desc.w.dtype, [&](auto tag, auto to) -> ExpectedCpuOp {
        using T = typename decltype(tag)::type;
        using R = typename decltype(to)::type;
        if constexpr (std::is_integral_v<T>)
          llvm_unreachable("gradients are of floats");
        else
          return std::make_unique<PlainConvWeightGradient<T, R>>(desc);
      });
}

} // namespace ax::rt
