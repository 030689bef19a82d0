//===- AttentionRows.h - Scores of blocks of queries ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention and its gradient do alike: a block of query rows at a time, so
// that scores of all their keys stay in the cache.
//
// Keys lie in panels of 32, [depth][32], and values in one [keys][value depth]:
// what a tile of scores, or of sums, reads lies together. Straight from a
// tensor with all keys of one depth in a row, it would be a cache line in each
// 4 KiB, which all want the same few places of the first-level cache.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPU_ATTENTIONROWS_H
#define AX_RUNTIME_CPU_ATTENTIONROWS_H

#include "AttentionKeys.h"
#include "Threads.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

template <typename T>
class AttentionRows : public AttentionKeys<T> {
  using Keys = AttentionKeys<T>;

protected:
  using Keys::desc, Keys::mask, Keys::keyPanel;
  using Keys::heads, Keys::kvHeads, Keys::queries, Keys::keys;
  using typename Keys::RowKeys, typename Keys::S;

  /// What rows of scores come in units of: whole vectors.
  static constexpr int64_t scoreUnit = 16;

  static constexpr int64_t roundUp(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
  }

  explicit AttentionRows(AttentionDesc descIn)
      : Keys(std::move(descIn)), depth(desc.q.sizes[3]),
        valueDepth(desc.v.sizes[3]),
        scoreStride(roundUp(keys, keyPanel) + scoreUnit),
        sumStride(roundUp(valueDepth, vectorKernels().panelUnit)),
        threads(getNumThreads()) {}

  /// Calls fn(batch, kv head, scratch) for each, in as many threads as there
  /// are: `threadElements` of `workspace` each. Which are done one after the
  /// other does not change a result.
  template <typename Fn>
  void forEachKvHead(void *workspace, int64_t threadElements, Fn fn) const {
    parallelUnits(desc.q.sizes[0] * kvHeads, threads,
                  [&](int64_t unit, int64_t part) {
                    fn(unit / kvHeads, unit % kvHeads,
                       static_cast<S *>(workspace) + part * threadElements);
                  });
  }

  template <typename E>
  static E *at(E *base, const TensorDesc &view, int64_t batch, int64_t head) {
    return base + batch * view.strides[0] + head * view.strides[1];
  }

  /// The last panel is filled up with zeros.
  /// `view`: of keys, or of values, of which there are so many.
  void packPanels(const T *source, const TensorDesc &view, int64_t total,
                  S *to) const {
    int64_t row = view.strides[2], column = view.strides[3];
    int64_t width = view.sizes[3];
    for (int64_t t = 0; t < total; t += keyPanel, to += width * keyPanel) {
      const T *from = source + t * row;
      int64_t count = std::min(keyPanel, total - t);
      if constexpr (std::is_same_v<T, float>)
        if (column == 1 && count == keyPanel) {
          vectorKernels().transpose(from, row, to, keyPanel, width);
          continue;
        }
      for (int64_t d = 0; d < width; ++d)
        for (int64_t lane = 0; lane < keyPanel; ++lane)
          to[d * keyPanel + lane] =
              lane < count ? widen<S>(from[lane * row + d * column]) : S(0);
    }
  }

  /// Copies what lies together, of one type; false: nothing is copied.
  template <typename From, typename To>
  static bool copyRow(const From *from, int64_t fromStep, To *to,
                      int64_t toStep, int64_t count) {
    if constexpr (std::is_same_v<From, To>)
      if (fromStep == 1 && toStep == 1) {
        std::copy_n(from, count, to);
        return true;
      }
    return false;
  }

  /// Rows `first` ... of a view, `stride` elements apart, filled up with zeros.
  static void packRows(const T *source, const TensorDesc &view, int64_t first,
                       int64_t count, int64_t stride, S *to) {
    int64_t row = view.strides[2], column = view.strides[3];
    int64_t width = view.sizes[3];
    for (int64_t t = first; t < first + count; ++t, to += stride) {
      const T *from = source + t * row;
      if (!copyRow(from, column, to, 1, width))
        for (int64_t d = 0; d < width; ++d)
          to[d] = widen<S>(from[d * column]);
      std::fill(to + width, to + stride, S(0));
    }
  }

  static void multiplyPanel(const S *a, int64_t aStride, const S *b,
                            int64_t bStride, S *c, int64_t cStride,
                            int64_t rows, int64_t k, int64_t columns) {
    const VectorKernels &kernels = vectorKernels();
    if constexpr (std::is_same_v<S, float>)
      kernels.multiplyPanelF32(a, aStride, b, bStride, c, cStride, rows, k,
                               columns);
    else
      kernels.multiplyPanelF64(a, aStride, b, bStride, c, cStride, rows, k,
                               columns);
  }

  /// Scores of `rows` queries, aStride elements apart, and the first `seen`
  /// keys of some panels.
  void multiplyByPanels(const S *a, int64_t aStride, const S *panels,
                        int64_t width, S *scores, int64_t rows,
                        int64_t seen) const {
    for (int64_t t = 0; t < seen; t += keyPanel)
      multiplyPanel(a, aStride, panels + t * width, keyPanel, scores + t,
                    scoreStride, rows, width, keyPanel);
  }

  /// Scores of `seen` keys from `firstKey` on become exp(score - max), those
  /// that the row does not read 0; returns what the weighted sum of values is
  /// to be multiplied by. `logSum`: AttentionDesc::givesLogSums.
  S softmaxRow(S *row, int64_t firstKey, RowKeys read, int64_t seen,
               int64_t batch, int64_t head, int64_t query,
               float *logSum = nullptr) const {
    constexpr S none = -std::numeric_limits<S>::infinity();
    if (logSum)
      *logSum = static_cast<float>(none);
    // A sum over nothing, as products have it.
    if (keys == 0)
      return S(0);
    int64_t count = read.end;
    if (read.isMean) {
      std::fill_n(row, count, S(1));
      if (logSum)
        *logSum = static_cast<float>(std::log(static_cast<S>(count)));
      return 1 / static_cast<S>(count);
    }
    S scale = static_cast<S>(desc.scale);
    if (desc.softcap > 0 || mask || scale <= 0) {
      prepareScores(row + read.begin, firstKey + read.begin, read.size(), batch,
                    head, query);
      scale = 1;
    }
    // Whole vectors: what is around is none, and its exponential 0.
    int64_t padded = roundUp(count, scoreUnit);
    std::fill(row, row + read.begin, none);
    std::fill(row + count, row + padded, none);
    S largest = maximum(row, padded) * scale;
    if (padded < seen)
      std::fill(row + padded, row + seen, S(0));
    if (count == 0 || largest == none) {
      bool isEmpty = std::none_of(row, row + count,
                                  [](S score) { return std::isnan(score); });
      std::fill_n(row, padded, S(0));
      constexpr S lost = std::numeric_limits<S>::quiet_NaN();
      if (logSum && !isEmpty)
        *logSum = static_cast<float>(lost);
      return isEmpty && desc.emptyRowsZero ? S(0) : lost;
    }
    S sum = expSum(row, padded, scale, largest);
    if (logSum)
      *logSum = static_cast<float>(largest + std::log(sum));
    return 1 / sum;
  }

  void prepareScores(S *row, int64_t first, int64_t count, int64_t batch,
                     int64_t head, int64_t query) const {
    S scale = static_cast<S>(desc.scale), cap = static_cast<S>(desc.softcap);
    if (cap > 0) {
      for (int64_t t = 0; t < count; ++t)
        row[t] = cap * std::tanh(row[t] * scale / cap);
      scale = 1;
    }
    if (!mask) {
      for (int64_t t = 0; t < count; ++t)
        row[t] *= scale;
      return;
    }
    int64_t offset =
        batch * desc.mask.strides[0] + head * desc.mask.strides[1] +
        query * desc.mask.strides[2] + first * desc.mask.strides[3];
    if (desc.mask.dtype == DType::Bool)
      hide(row, count, scale, static_cast<const bool *>(mask) + offset);
    else if (this->hasPlaces())
      hideOutside(row, count, scale, first - query,
                  static_cast<const int64_t *>(mask) + offset);
    else if (desc.mask.dtype == DType::F32)
      add(row, count, scale, static_cast<const float *>(mask) + offset);
    else
      add(row, count, scale, static_cast<const T *>(mask) + offset);
  }
  void hide(S *row, int64_t count, S scale, const bool *attend) const {
    int64_t step = desc.mask.strides[3];
    if constexpr (std::is_same_v<S, float>)
      if (step == 1)
        return vectorKernels().scaleWhere(row, count, scale, attend);
    for (int64_t t = 0; t < count; ++t)
      row[t] = attend[t * step] ? row[t] * scale
                                : -std::numeric_limits<S>::infinity();
  }
  /// `difference`: of the first key's place and the query's.
  void hideOutside(S *row, int64_t count, S scale, int64_t difference,
                   const int64_t *places) const {
    int64_t step = desc.mask.strides[3];
    for (int64_t t = 0; t < count; ++t)
      row[t] = this->isInBand(this->placeOf(places[t * step]), difference + t)
                   ? row[t] * scale
                   : -std::numeric_limits<S>::infinity();
  }
  template <typename E>
  void add(S *row, int64_t count, S scale, const E *added) const {
    int64_t step = desc.mask.strides[3];
    if constexpr (std::is_same_v<E, float> && std::is_same_v<S, float>)
      if (step == 1)
        return vectorKernels().scaleAdd(row, count, scale, added);
    for (int64_t t = 0; t < count; ++t)
      row[t] = row[t] * scale + widen<S>(added[t * step]);
  }

  static S maximum(const S *row, int64_t count) {
    if constexpr (std::is_same_v<S, float>)
      return vectorKernels().maximum(row, count);
    S largest = -std::numeric_limits<S>::infinity();
    for (int64_t t = 0; t < count; ++t)
      largest = row[t] > largest ? row[t] : largest;
    return largest;
  }
  static S expSum(S *row, int64_t count, S scale, S shift) {
    if constexpr (std::is_same_v<S, float>)
      return vectorKernels().expSum(row, count, scale, shift);
    S sum = 0;
    for (int64_t t = 0; t < count; ++t)
      sum += row[t] = std::exp(row[t] * scale - shift);
    return sum;
  }

  int64_t depth, valueDepth;
  /// Distances of rows: of scores, and of packed values and their sums.
  int64_t scoreStride, sumStride;
  int64_t threads;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CPU_ATTENTIONROWS_H
