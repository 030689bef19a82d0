//===- Attention.cpp - softmax(q k^T) v by heads --------------------------===//
//
// A block of query rows at a time: scores of all their keys stay in the cache.
// Keys that causality hides from the whole block are never touched.
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

constexpr int64_t blockRows = 32;
/// Keys of a block are rounded up to this many, which the multiplication does
/// at once.
constexpr int64_t keyUnit = 32;

template <typename T>
class Attention : public CpuOp {
public:
  using S = SumType<T>;

  explicit Attention(AttentionDesc descIn)
      : desc(std::move(descIn)), heads(desc.q.sizes[1]),
        kvHeads(desc.k.sizes[1]), queries(desc.q.sizes[2]),
        keys(desc.k.sizes[2]), depth(desc.q.sizes[3]),
        valueDepth(desc.v.sizes[3]), threads(getNumThreads()) {
    packKeys = !std::is_same_v<T, S> || desc.k.strides[2] != 1;
    packValues = !std::is_same_v<T, S> || desc.v.strides[3] != 1;
    threadElements = (packKeys ? depth * keys : 0) +
                     (packValues ? keys * valueDepth : 0) +
                     blockRows * (depth + keys + valueDepth);
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
    const S *kTransposed, *values;
    int64_t kStride = keys, vStride = valueDepth;
    if (packKeys) {
      packTransposed(kSource, scratch);
      kTransposed = scratch;
      scratch += depth * keys;
    } else {
      kTransposed = reinterpret_cast<const S *>(kSource);
      kStride = desc.k.strides[3];
    }
    if (packValues) {
      for (int64_t t = 0; t < keys; ++t)
        for (int64_t d = 0; d < valueDepth; ++d)
          scratch[t * valueDepth + d] =
              widen<S>(vSource[t * desc.v.strides[2] + d * desc.v.strides[3]]);
      values = scratch;
      scratch += keys * valueDepth;
    } else {
      values = reinterpret_cast<const S *>(vSource);
      vStride = desc.v.strides[2];
    }
    int64_t perKv = heads / kvHeads;
    for (int64_t head = kvHead * perKv; head < (kvHead + 1) * perKv; ++head)
      for (int64_t row = 0; row < queries; row += blockRows)
        runBlock(batch, head, row, kTransposed, kStride, values, vStride,
                 scratch);
  }

  void packTransposed(const T *source, S *to) const {
    int64_t row = desc.k.strides[2], column = desc.k.strides[3];
    if constexpr (std::is_same_v<T, float>)
      if (column == 1)
        return vectorKernels().transpose(source, row, to, keys, depth);
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t t = 0; t < keys; ++t)
        to[d * keys + t] = widen<S>(source[t * row + d * column]);
  }

  /// Number of keys that query `row` may see.
  int64_t limit(int64_t row) const {
    if (!desc.causal)
      return keys;
    return std::clamp<int64_t>(row + keys - queries + 1, 0, keys);
  }

  void runBlock(int64_t batch, int64_t head, int64_t first,
                const S *kTransposed, int64_t kStride, const S *values,
                int64_t vStride, S *scratch) const {
    int64_t rows = std::min(blockRows, queries - first);
    S *query = scratch, *scores = query + blockRows * depth,
      *sums = scores + blockRows * keys;
    const T *source = at(q, desc.q, batch, head);
    for (int64_t r = 0; r < rows; ++r) {
      const T *from = source + (first + r) * desc.q.strides[2];
      for (int64_t d = 0; d < depth; ++d)
        query[r * depth + d] = widen<S>(from[d * desc.q.strides[3]]);
    }
    int64_t seen = limit(first + rows - 1);
    seen = std::min(keys, (seen + keyUnit - 1) / keyUnit * keyUnit);
    multiply(query, kTransposed, kStride, scores, rows, depth, seen);
    S factors[blockRows];
    for (int64_t r = 0; r < rows; ++r)
      factors[r] = softmaxRow(scores + r * seen, seen, batch, head, first + r);
    multiply(scores, values, vStride, sums, rows, seen, valueDepth);
    T *to = at(out, desc.out, batch, head);
    for (int64_t r = 0; r < rows; ++r)
      finishRow(sums + r * valueDepth, factors[r],
                to + (first + r) * desc.out.strides[2]);
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
      largest = row[t] > largest || row[t] != row[t] ? row[t] : largest;
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
  int64_t heads, kvHeads, queries, keys, depth, valueDepth, threads;
  bool packKeys, packValues;
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
