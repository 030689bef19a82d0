//===- Attention.cpp - softmax(q k^T) v by heads --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of query rows at a time: scores of all their keys stay in the cache.
// Keys that causality hides from the whole block are never touched.
//
// Keys lie in panels of 32, [depth][32], and values in one [keys][value depth]:
// what a tile of scores, or of sums, reads lies together. Straight from a
// tensor with all keys of one depth in a row, it would be a cache line in each
// 4 KiB, which all want the same few places of the first-level cache.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

namespace {

/// A multiple of what the multiplication of panels does at once.
constexpr int64_t blockRows = 24;
constexpr int64_t keyPanel = 32;
/// Query rows for which it pays to pack values.
constexpr int64_t leastReuse = 8;

constexpr int64_t roundUp(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

template <typename T>
class Attention : public CpuOp {
public:
  using S = SumType<T>;

  explicit Attention(AttentionDesc descIn)
      : desc(std::move(descIn)), heads(desc.q.sizes[1]),
        kvHeads(desc.k.sizes[1]), queries(desc.q.sizes[2]),
        keys(desc.k.sizes[2]), depth(desc.q.sizes[3]),
        valueDepth(desc.v.sizes[3]),
        scoreStride(roundUp(keys, keyPanel) + panelUnit),
        sumStride(roundUp(valueDepth, panelUnit)), threads(getNumThreads()) {
    packValues = !std::is_same_v<T, S> || desc.v.strides[3] != 1 ||
                 valueDepth != sumStride ||
                 queries * (heads / kvHeads) >= leastReuse;
    threadElements = depth * roundUp(keys, keyPanel) +
                     (packValues ? keys * sumStride : 0) +
                     blockRows * (depth + scoreStride + sumStride);
    workspaceBytes = threads * threadElements * static_cast<int64_t>(sizeof(S));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    q = static_cast<const T *>(arguments[0]);
    k = static_cast<const T *>(arguments[1]);
    v = static_cast<const T *>(arguments[2]);
    mask = desc.hasMask ? arguments[3] : nullptr;
    out = static_cast<T *>(arguments[desc.hasMask ? 4 : 3]);
    int64_t units = desc.q.sizes[0] * kvHeads;
    int64_t perRange = std::max<int64_t>(1, (units + threads - 1) / threads);
    parallelFor(
        (units + perRange - 1) / perRange, 1, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r)
            for (int64_t unit = r * perRange;
                 unit < std::min(units, (r + 1) * perRange); ++unit)
              runKvHead(unit / kvHeads, unit % kvHeads,
                        static_cast<S *>(workspace) + r * threadElements);
        });
    return llvm::Error::success();
  }

private:
  template <typename E>
  static E *at(E *base, const TensorDesc &view, int64_t batch, int64_t head) {
    return base + batch * view.strides[0] + head * view.strides[1];
  }

  /// All query heads that share one key/value head.
  void runKvHead(int64_t batch, int64_t kvHead, S *scratch) const {
    const T *kSource = at(k, desc.k, batch, kvHead);
    const T *vSource = at(v, desc.v, batch, kvHead);
    packKeys(kSource, scratch);
    const S *panels = scratch;
    scratch += depth * roundUp(keys, keyPanel);
    const S *values = reinterpret_cast<const S *>(vSource);
    int64_t vStride = desc.v.strides[2];
    if (packValues) {
      pack(vSource, vStride, scratch);
      values = scratch;
      vStride = sumStride;
      scratch += keys * sumStride;
    }
    int64_t perKv = heads / kvHeads;
    for (int64_t head = kvHead * perKv; head < (kvHead + 1) * perKv; ++head)
      for (int64_t row = 0; row < queries; row += blockRows)
        runBlock(batch, head, row, panels, values, vStride, scratch);
  }

  /// The last panel is filled up with zeros.
  void packKeys(const T *source, S *to) const {
    int64_t row = desc.k.strides[2], column = desc.k.strides[3];
    for (int64_t t = 0; t < keys; t += keyPanel, to += depth * keyPanel) {
      const T *from = source + t * row;
      int64_t count = std::min(keyPanel, keys - t);
      if constexpr (std::is_same_v<T, float>)
        if (column == 1 && count == keyPanel) {
          vectorKernels().transpose(from, row, to, keyPanel, depth);
          continue;
        }
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t lane = 0; lane < keyPanel; ++lane)
          to[d * keyPanel + lane] =
              lane < count ? widen<S>(from[lane * row + d * column]) : S(0);
    }
  }

  void pack(const T *source, int64_t row, S *to) const {
    int64_t column = desc.v.strides[3];
    for (int64_t t = 0; t < keys; ++t, to += sumStride) {
      for (int64_t d = 0; d < valueDepth; ++d)
        to[d] = widen<S>(source[t * row + d * column]);
      std::fill(to + valueDepth, to + sumStride, S(0));
    }
  }

  /// Number of keys that query `row` may see.
  int64_t limit(int64_t row) const {
    if (!desc.causal)
      return keys;
    return std::clamp<int64_t>(row + keys - queries + 1, 0, keys);
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

  void runBlock(int64_t batch, int64_t head, int64_t first, const S *panels,
                const S *values, int64_t vStride, S *scratch) const {
    int64_t rows = std::min(blockRows, queries - first);
    S *query = scratch, *scores = query + blockRows * depth,
      *sums = scores + blockRows * scoreStride;
    const T *source = at(q, desc.q, batch, head);
    for (int64_t r = 0; r < rows; ++r) {
      const T *from = source + (first + r) * desc.q.strides[2];
      for (int64_t d = 0; d < depth; ++d)
        query[r * depth + d] = widen<S>(from[d * desc.q.strides[3]]);
    }
    int64_t seen = limit(first + rows - 1);
    for (int64_t t = 0; t < seen; t += keyPanel)
      multiplyPanel(query, depth, panels + t * depth, keyPanel, scores + t,
                    scoreStride, rows, depth, keyPanel);
    S factors[blockRows];
    for (int64_t r = 0; r < rows; ++r)
      factors[r] =
          softmaxRow(scores + r * scoreStride, seen, batch, head, first + r);
    // What causality hides from a row does not count, NaN neither; but 0 NaN is
    // NaN where rows are done together.
    int64_t shared = limit(first);
    if (areFinite(values + shared * vStride, vStride, seen - shared))
      multiplyPanel(scores, scoreStride, values, vStride, sums, sumStride, rows,
                    seen, sumStride);
    else
      for (int64_t r = 0; r < rows; ++r)
        multiplyPanel(scores + r * scoreStride, scoreStride, values, vStride,
                      sums + r * sumStride, sumStride, 1, limit(first + r),
                      sumStride);
    T *to = at(out, desc.out, batch, head);
    for (int64_t r = 0; r < rows; ++r)
      finishRow(sums + r * sumStride, factors[r],
                to + (first + r) * desc.out.strides[2]);
  }

  bool areFinite(const S *values, int64_t stride, int64_t count) const {
    for (int64_t t = 0; t < count; ++t)
      for (int64_t d = 0; d < valueDepth; ++d)
        if (!std::isfinite(values[t * stride + d]))
          return false;
    return true;
  }

  void finishRow(const S *sums, S factor, T *to) const {
    int64_t step = desc.out.strides[3];
    if constexpr (std::is_same_v<T, float>)
      if (step == 1)
        return vectorKernels().scaled(sums, to, valueDepth, factor);
    for (int64_t d = 0; d < valueDepth; ++d)
      to[d * step] = narrow<T>(sums[d] * factor);
  }

  /// Scores become exp(score - max); returns what the weighted sum of values is
  /// to be multiplied by.
  S softmaxRow(S *row, int64_t seen, int64_t batch, int64_t head,
               int64_t query) const {
    // A sum over nothing, as products have it.
    if (keys == 0)
      return S(0);
    int64_t count = limit(query);
    S scale = static_cast<S>(desc.scale);
    if (desc.softcap > 0 || mask || scale < 0) {
      prepareScores(row, count, batch, head, query);
      scale = 1;
    }
    S largest = maximum(row, count) * scale;
    std::fill(row + count, row + seen, S(0));
    if (count == 0 || largest == -std::numeric_limits<S>::infinity()) {
      bool isEmpty = std::none_of(row, row + count,
                                  [](S score) { return std::isnan(score); });
      std::fill_n(row, count, S(0));
      return isEmpty && desc.emptyRowsZero
                 ? S(0)
                 : std::numeric_limits<S>::quiet_NaN();
    }
    return 1 / expSum(row, count, scale, largest);
  }

  void prepareScores(S *row, int64_t count, int64_t batch, int64_t head,
                     int64_t query) const {
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
    int64_t offset = batch * desc.mask.strides[0] +
                     head * desc.mask.strides[1] + query * desc.mask.strides[2];
    if (desc.mask.dtype == DType::Bool)
      hide(row, count, scale, static_cast<const bool *>(mask) + offset);
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
  void add(S *row, int64_t count, S scale, const T *added) const {
    int64_t step = desc.mask.strides[3];
    if constexpr (std::is_same_v<T, float>)
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
  bool packValues;
  int64_t threadElements;
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  const void *mask = nullptr;
  T *out = nullptr;
};

} // namespace

ExpectedCpuOp prepareAttention(const AttentionDesc &desc) {
  if (desc.q.getRank() != 4 || desc.k.getRank() != 4 || desc.k.sizes[1] == 0 ||
      desc.q.sizes[1] % desc.k.sizes[1] != 0)
    return makeError(ExitCode::Unsupported, "impossible heads");
  return visitDType(desc.q.dtype, [&](auto tag) -> ExpectedCpuOp {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      return makeError(ExitCode::Unsupported, "no attention of integers");
    else
      return std::make_unique<Attention<T>>(desc);
  });
}

} // namespace ax::rt
