//===- PlainConv.cpp - Convolutions of any element type -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For a few output places at a time, the elements of x that they see are
// gathered into rows, which are multiplied by the weights.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"
#include "WindowPlaces.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

namespace ax::rt {

namespace {

/// Output places that one thread makes at a time.
constexpr int64_t blockRows = 16;

/// A convolution of T with weights of W; R is the type of the bias, the
/// residual and the result.
template <typename T, typename R, typename W = T>
class PlainConv : public CpuOp {
public:
  using S = SumType<T>;

  explicit PlainConv(ConvDesc descIn) : desc(std::move(descIn)), window(desc) {
    inChannels = desc.x.sizes[1] / desc.groups;
    outChannels = desc.y.sizes[1] / desc.groups;
    k = inChannels * window.kernelPlaces;
    threads = getNumThreads();
    threadElements = blockRows * (k + outChannels);
    workspaceBytes = static_cast<int64_t>(sizeof(S)) *
                     (k * outChannels + threadElements * threads);
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const T *x = static_cast<const T *>(arguments[0]);
    const W *w = static_cast<const W *>(arguments[1]);
    int next = 2;
    const R *bias =
        desc.hasBias ? static_cast<const R *>(arguments[next++]) : nullptr;
    const R *residual =
        desc.hasResidual ? static_cast<const R *>(arguments[next++]) : nullptr;
    R *y = static_cast<R *>(arguments[next]);
    S *weights = static_cast<S *>(workspace);
    int64_t blocks = llvm::divideCeil(window.outPlaces, blockRows);
    for (int64_t group = 0; group < desc.groups; ++group) {
      packWeights(w, group, weights);
      for (int64_t batch = 0; batch < desc.y.sizes[0]; ++batch)
        parallelUnits(blocks, threads, [&](int64_t block, int64_t part) {
          runPlaces(block * blockRows, batch, group, x, weights, bias, residual,
                    y, weights + k * outChannels + part * threadElements);
        });
    }
    return llvm::Error::success();
  }

private:
  /// [channel, kernel place] x [out channel] of one group.
  void packWeights(const W *w, int64_t group, S *to) const {
    const std::vector<int64_t> &strides = desc.w.strides;
    for (int64_t c = 0; c < inChannels; ++c)
      for (int64_t o = 0; o < outChannels; ++o) {
        int64_t from = (group * outChannels + o) * strides[0] + c * strides[1];
        for (int64_t p = 0; p < window.kernelPlaces; ++p)
          to[(c * window.kernelPlaces + p) * outChannels + o] =
              widen<S>(w[from + window.offset(desc.w, p)]);
      }
  }
  void runPlaces(int64_t first, int64_t batch, int64_t group, const T *x,
                 const S *weights, const R *bias, const R *residual, R *y,
                 S *scratch) const {
    int64_t rows = std::min(blockRows, window.outPlaces - first);
    S *seen = scratch, *sums = scratch + blockRows * k;
    const T *source =
        x + batch * desc.x.strides[0] + group * inChannels * desc.x.strides[1];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t p = 0; p < window.kernelPlaces; ++p) {
        int64_t from = window.source(first + r, p);
        for (int64_t c = 0; c < inChannels; ++c)
          seen[r * k + c * window.kernelPlaces + p] =
              from < 0 ? S(0) : widen<S>(source[from + c * desc.x.strides[1]]);
      }
    multiply(seen, weights, outChannels, sums, rows, k, outChannels);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < outChannels; ++o) {
        int64_t channel = group * outChannels + o;
        int64_t at = batch * desc.y.strides[0] + channel * desc.y.strides[1] +
                     window.offset(desc.y, first + r);
        S sum = sums[r * outChannels + o];
        if (bias)
          sum += widen<S>(bias[channel]);
        y[at] =
            narrow<R>(finishSum(desc, sum, residual ? residual + at : nullptr));
      }
  }

  ConvDesc desc;
  WindowPlaces window;
  int64_t inChannels, outChannels, k;
  int64_t threads, threadElements;
};

/// What `prepareProducts` makes an operation of.
template <typename T, typename R>
using OfOneType = PlainConv<T, R>;

/// Integers of eight bits, whose types may differ, in i32.
template <typename T>
ExpectedCpuOp ofIntegers(const ConvDesc &desc) {
  if (desc.w.dtype == DType::I8)
    return std::make_unique<PlainConv<T, int32_t, int8_t>>(desc);
  return std::make_unique<PlainConv<T, int32_t, uint8_t>>(desc);
}

} // namespace

ExpectedCpuOp preparePlainConv(const ConvDesc &desc) {
  if (!isSupported(desc.y.dtype, desc.activation))
    return makeError(ExitCode::Unsupported, "no such convolution");
  if (byteSize(desc.x.dtype) == 1 && desc.y.dtype == DType::I32)
    return desc.x.dtype == DType::I8 ? ofIntegers<int8_t>(desc)
                                     : ofIntegers<uint8_t>(desc);
  return prepareProducts<OfOneType>(desc, desc.x.dtype, desc.y.dtype);
}

} // namespace ax::rt
