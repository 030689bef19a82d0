//===- AttentionRows.h - Scores of blocks of queries ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attention and its gradient do alike: a block of query rows at a time, so
// that scores of all their keys stay in the cache. Keys that causality hides
// from the whole block are never touched; nor does attention read those before
// the first key, and behind the last one, that a mask lets anybody see.
//
// Keys lie in panels of 32, [depth][32], and values in one [keys][value depth]:
// what a tile of scores, or of sums, reads lies together. Straight from a
// tensor with all keys of one depth in a row, it would be a cache line in each
// 4 KiB, which all want the same few places of the first-level cache.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPU_ATTENTIONROWS_H
#define AX_RUNTIME_CPU_ATTENTIONROWS_H

#include "PlainMath.h"
#include "Threads.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

template <typename T>
class AttentionRows {
public:
  using S = SumType<T>;

  static constexpr int64_t keyPanel = 32;
  /// What rows of scores come in units of: whole vectors.
  static constexpr int64_t scoreUnit = 16;

  static constexpr int64_t roundUp(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
  }

protected:
  explicit AttentionRows(AttentionDesc descIn)
      : desc(std::move(descIn)), heads(desc.q.sizes[1]),
        kvHeads(desc.k.sizes[1]), queries(desc.q.sizes[2]),
        keys(desc.k.sizes[2]), depth(desc.q.sizes[3]),
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

  /// Notes what there is, if there is one.
  void readMask(const void *given) {
    bool isNumber = given && desc.mask.dtype == DType::I64;
    mask = isNumber ? nullptr : given;
    lastOfFirst = keys;
    if (isNumber)
      lastOfFirst =
          std::clamp(*static_cast<const int64_t *>(given), -queries, keys);
  }

  template <typename E>
  static E *at(E *base, const TensorDesc &view, int64_t batch, int64_t head) {
    return base + batch * view.strides[0] + head * view.strides[1];
  }

  /// Keys begin .. end - 1.
  struct KeyRange {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  KeyRange allKeys() const { return {0, keys}; }

  /// Outside of these the mask hides all keys from all queries of the heads
  /// that share one, as from a cache that is not full what is behind: their
  /// exponentials are 0. It begins with a panel, so that vectors of scores are
  /// the same, and so are sums. A query that sees nothing may be an average of
  /// all: then all are in it.
  KeyRange seenKeys(int64_t batch, int64_t kvHead) const {
    if (!mask)
      return {0, std::max(limit(queries - 1), std::min<int64_t>(keys, 1))};
    if (desc.mask.dtype == DType::Bool)
      return seenKeys(batch, kvHead, static_cast<const bool *>(mask),
                      [](bool attends) { return attends; });
    // As exporters hide them: the lowest number of f32, beside which a score is
    // nothing, or of bf16; or infinity.
    auto isSeen = [](auto added) {
      constexpr S hidden = static_cast<S>(-1e38);
      return !(widen<S>(added) <= hidden);
    };
    if (desc.mask.dtype == DType::F32)
      return seenKeys(batch, kvHead, static_cast<const float *>(mask), isSeen);
    return seenKeys(batch, kvHead, static_cast<const T *>(mask), isSeen);
  }
  template <typename E, typename Fn>
  KeyRange seenKeys(int64_t batch, int64_t kvHead, const E *values,
                    Fn isSeen) const {
    const auto &strides = desc.mask.strides;
    int64_t perKv = heads / kvHeads, step = strides[3];
    int64_t numHeads = strides[1] ? perKv : 1,
            numQueries = strides[2] ? queries : 1;
    KeyRange range{keys, 0};
    for (int64_t head = 0; head < numHeads; ++head)
      for (int64_t query = 0; query < numQueries; ++query) {
        const E *row = values + batch * strides[0] +
                       (kvHead * perKv + head) * strides[1] +
                       query * strides[2];
        int64_t first = 0, last = keys;
        // Of a mask that is the same for all queries, the first sees least.
        int64_t most = limit(query);
        while (first < most && !isSeen(row[first * step]))
          ++first;
        if (first == most)
          return allKeys();
        while (last > range.end && !isSeen(row[(last - 1) * step]))
          --last;
        range = {std::min(first, range.begin), last};
      }
    return {range.begin / keyPanel * keyPanel, range.end};
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

  /// Number of keys that query `row` may see.
  int64_t limit(int64_t row) const {
    int64_t last = std::min(keys - 1, row + lastOfFirst);
    if (desc.causal)
      last = std::min(last, row + keys - queries);
    return std::max<int64_t>(last + 1, 0);
  }
  /// Of a range.
  int64_t limit(int64_t row, KeyRange range) const {
    return std::clamp<int64_t>(limit(row) - range.begin, 0, range.size());
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

  /// Scores of a range, of which a block sees the first, become exp(score -
  /// max); returns what the weighted sum of values is to be multiplied by.
  /// `logSum`: AttentionDesc::givesLogSums.
  S softmaxRow(S *row, KeyRange range, int64_t seen, int64_t batch,
               int64_t head, int64_t query, float *logSum = nullptr) const {
    constexpr S none = -std::numeric_limits<S>::infinity();
    if (logSum)
      *logSum = static_cast<float>(none);
    // A sum over nothing, as products have it.
    if (keys == 0)
      return S(0);
    int64_t count = limit(query, range);
    S scale = static_cast<S>(desc.scale);
    if (desc.softcap > 0 || mask || scale < 0) {
      prepareScores(row, range.begin, count, batch, head, query);
      scale = 1;
    }
    // Whole vectors: what is behind is none, and its exponential 0.
    int64_t padded = scale > 0 ? roundUp(count, scoreUnit) : count;
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

  AttentionDesc desc;
  int64_t heads, kvHeads, queries, keys, depth, valueDepth;
  /// Distances of rows: of scores, and of packed values and their sums.
  int64_t scoreStride, sumStride;
  int64_t threads;
  const void *mask = nullptr;
  /// The last key that the first query sees; others see one more than the one
  /// before. No less than all where no mask says so.
  int64_t lastOfFirst = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CPU_ATTENTIONROWS_H
