//===- PlainConvTransposed.cpp - Of any element type ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For a few places of x at a time, their channels are multiplied by the
// weights: what they add to each place of their windows. Windows that overlap
// are added up in a slab of the result, one thread at a time.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"
#include "WindowPlaces.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// Places of x that are multiplied at a time.
constexpr int64_t blockPlaces = 32;
/// Sums that stay in a cache.
constexpr int64_t slabElements = 1 << 14;

template <typename T>
void addTo(T *__restrict to, const T *__restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}

/// A transposed convolution of T; R is the type of the bias, the residual and
/// the result.
template <typename T, typename R>
class PlainConvTransposed : public CpuOp {
public:
  using S = SumType<T>;

  explicit PlainConvTransposed(ConvDesc descIn)
      : desc(std::move(descIn)), window(desc), dims(desc.strides.size()) {
    inChannels = desc.x.sizes[1] / desc.groups;
    outChannels = desc.y.sizes[1] / desc.groups;
    columns =
        llvm::alignTo(window.kernelPlaces * outChannels, wholeVectors<S>());
    for (size_t d = 1; d < dims; ++d) {
      xRowPlaces *= desc.x.sizes[d + 2];
      yRowPlaces *= desc.y.sizes[d + 2];
    }
    int64_t rows = desc.y.sizes[2];
    int64_t reach = (desc.w.sizes[2] - 1) * desc.dilations[0] + 1;
    threads = getNumThreads();
    // Neighbours repeat the products of windows that reach into both.
    slabRows = std::max(
        4 * reach,
        std::min<int64_t>(llvm::divideCeil(rows, threads),
                          slabElements / std::max<int64_t>(1, rowElements())));
    slabRows = std::max<int64_t>(1, std::min(slabRows, rows));
    slabs = llvm::divideCeil(rows, slabRows);
    threadElements =
        blockPlaces * (inChannels + columns) + slabRows * rowElements();
    workspaceBytes = static_cast<int64_t>(sizeof(S)) *
                     (inChannels * columns + threadElements * threads);
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    if (desc.y.numElements() == 0)
      return llvm::Error::success();
    Operands operands;
    operands.x = static_cast<const T *>(arguments[0]);
    const T *w = static_cast<const T *>(arguments[1]);
    int next = 2;
    if (desc.hasBias)
      operands.bias = static_cast<const R *>(arguments[next++]);
    if (desc.hasResidual)
      operands.residual = static_cast<const R *>(arguments[next++]);
    operands.y = static_cast<R *>(arguments[next]);
    S *weights = static_cast<S *>(workspace);
    operands.weights = weights;
    int64_t count = desc.y.sizes[0] * slabs;
    for (int64_t group = 0; group < desc.groups; ++group) {
      packWeights(w, group, weights);
      parallelUnits(count, threads, [&](int64_t i, int64_t part) {
        runSlab(operands, i / slabs, group, i % slabs * slabRows,
                weights + inChannels * columns + part * threadElements);
      });
    }
    return llvm::Error::success();
  }

private:
  struct Operands {
    const T *x;
    const S *weights;
    const R *bias = nullptr, *residual = nullptr;
    R *y;
  };
  using Index = llvm::SmallVector<int64_t, 4>;

  /// Sums of one group in one row of y's first spatial dimension.
  int64_t rowElements() const { return yRowPlaces * outChannels; }

  /// [channel] x [kernel place, out channel] of one group.
  void packWeights(const T *w, int64_t group, S *to) const {
    const std::vector<int64_t> &strides = desc.w.strides;
    std::fill_n(to, inChannels * columns, S(0));
    for (int64_t c = 0; c < inChannels; ++c)
      for (int64_t p = 0; p < window.kernelPlaces; ++p)
        for (int64_t o = 0; o < outChannels; ++o)
          to[c * columns + p * outChannels + o] =
              widen<S>(w[(group * inChannels + c) * strides[0] +
                         o * strides[1] + window.offset(desc.w, p)]);
  }

  /// The rows from `begin` of y's first spatial dimension.
  void runSlab(const Operands &operands, int64_t batch, int64_t group,
               int64_t begin, S *scratch) const {
    int64_t end = std::min(desc.y.sizes[2], begin + slabRows);
    S *seen = scratch, *products = seen + blockPlaces * inChannels;
    S *sums = products + blockPlaces * columns;
    for (int64_t o = 0; o < outChannels; ++o) {
      S first = operands.bias ? widen<S>(operands.bias[group * outChannels + o])
                              : S(0);
      for (int64_t i = 0; i < (end - begin) * yRowPlaces; ++i)
        sums[i * outChannels + o] = first;
    }
    int64_t reach = (desc.w.sizes[2] - 1) * desc.dilations[0];
    int64_t pad = desc.padsLow[0], stride = desc.strides[0];
    int64_t firstRow = std::max<int64_t>(
        0, llvm::divideCeilSigned(begin + pad - reach, stride));
    int64_t lastRow = std::min(
        desc.x.sizes[2], llvm::divideFloorSigned(end - 1 + pad, stride) + 1);
    const T *x = operands.x + batch * desc.x.strides[0] +
                 group * inChannels * desc.x.strides[1];
    Index place(dims, 0);
    place[0] = firstRow;
    int64_t places = (lastRow - firstRow) * xRowPlaces;
    for (int64_t at = 0; at < places; at += blockPlaces) {
      int64_t count = std::min(blockPlaces, places - at);
      gather(x, firstRow * xRowPlaces + at, count, seen);
      multiplyWide(seen, operands.weights, products, count, inChannels,
                   columns);
      for (int64_t i = 0; i < count; ++i) {
        addWindow(place, begin, end, products + i * columns, sums);
        for (size_t d = dims; d-- > 0;) {
          if (++place[d] < desc.x.sizes[d + 2] || d == 0)
            break;
          place[d] = 0;
        }
      }
    }
    store(operands, batch, group, begin, end, sums);
  }

  /// to[i, channel]: x at the i-th place from `first`.
  void gather(const T *x, int64_t first, int64_t count, S *to) const {
    int64_t last = desc.x.sizes.back(), lastStride = desc.x.strides.back();
    int64_t stride = desc.x.strides[1];
    for (int64_t i = 0; i < count;) {
      int64_t run = std::min(count - i, last - (first + i) % last);
      const T *from = x + window.offset(desc.x, first + i);
      S *rows = to + i * inChannels;
      i += run;
      if constexpr (std::is_same_v<T, float>)
        if (lastStride == 1) {
          vectorKernels().transpose(from, stride, rows, inChannels, run);
          continue;
        }
      for (int64_t j = 0; j < run; ++j)
        for (int64_t c = 0; c < inChannels; ++c)
          rows[j * inChannels + c] =
              widen<S>(from[j * lastStride + c * stride]);
    }
  }

  /// Adds what x adds from `place` to rows `begin` .. `end`.
  void addWindow(const Index &place, int64_t begin, int64_t end,
                 const S *products, S *sums) const {
    size_t last = dims - 1;
    auto lowest = [&](size_t d) { return d == 0 ? begin : 0; };
    auto limit = [&](size_t d) { return d == 0 ? end : desc.y.sizes[d + 2]; };
    auto target = [&](size_t d) {
      return place[d] * desc.strides[d] - desc.padsLow[d];
    };
    int64_t dilation = desc.dilations[last], kernel = desc.w.sizes[last + 2];
    auto stepsTo = [&](int64_t distance) {
      return dilation == 1 ? distance
                           : llvm::divideCeilSigned(distance, dilation);
    };
    int64_t lastTarget = target(last);
    int64_t from = std::max<int64_t>(0, stepsTo(lowest(last) - lastTarget));
    int64_t to = std::min(kernel, stepsTo(limit(last) - lastTarget));
    if (from >= to)
      return;
    int64_t column = lastTarget + from * dilation - lowest(last);
    for (int64_t p = 0; p < window.kernelPlaces; p += kernel) {
      int64_t rest = p / kernel, at = column, size = desc.y.sizes[last + 2];
      bool isInside = true;
      for (size_t d = last; d-- > 0 && isInside;) {
        int64_t out =
            target(d) + rest % desc.w.sizes[d + 2] * desc.dilations[d];
        rest /= desc.w.sizes[d + 2];
        isInside = out >= lowest(d) && out < limit(d);
        at += (out - lowest(d)) * size;
        size *= desc.y.sizes[d + 2];
      }
      if (!isInside)
        continue;
      const S *added = products + (p + from) * outChannels;
      if (dilation == 1)
        addTo(sums + at * outChannels, added, (to - from) * outChannels);
      else
        for (int64_t k = 0; k < to - from; ++k)
          addTo(sums + (at + k * dilation) * outChannels,
                added + k * outChannels, outChannels);
    }
  }

  void store(const Operands &operands, int64_t batch, int64_t group,
             int64_t begin, int64_t end, const S *sums) const {
    int64_t stride = desc.y.strides.back();
    int64_t run = dims == 1 ? end - begin : desc.y.sizes.back();
    bool isBare = !operands.residual && desc.activation == Activation::None;
    for (int64_t i = 0; i < (end - begin) * yRowPlaces; i += run)
      for (int64_t o = 0; o < outChannels; ++o) {
        int64_t at = batch * desc.y.strides[0] +
                     (group * outChannels + o) * desc.y.strides[1] +
                     window.offset(desc.y, begin * yRowPlaces + i);
        const S *from = sums + i * outChannels + o;
        R *y = operands.y + at;
        if (isBare)
          for (int64_t j = 0; j < run; ++j)
            y[j * stride] = narrow<R>(from[j * outChannels]);
        else
          for (int64_t j = 0; j < run; ++j)
            y[j * stride] = narrow<R>(finishSum(
                desc, from[j * outChannels],
                operands.residual ? operands.residual + at + j * stride
                                  : nullptr));
      }
  }

  ConvDesc desc;
  WindowPlaces window;
  size_t dims;
  int64_t inChannels, outChannels;
  /// How many places a row of the first spatial dimension has.
  int64_t xRowPlaces = 1, yRowPlaces = 1;
  int64_t columns, slabRows, slabs;
  int64_t threads, threadElements;
};

} // namespace

ExpectedCpuOp preparePlainConvTransposed(const ConvDesc &desc) {
  if (!isSupported(desc.y.dtype, desc.activation))
    return makeError(ExitCode::Unsupported, "no such convolution");
  return prepareProducts<PlainConvTransposed>(desc, desc.x.dtype, desc.y.dtype);
}

} // namespace ax::rt
