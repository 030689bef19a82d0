//===- Attention.cpp - softmax(q k^T) v by heads --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "AttentionRows.h"
#include "CpuLibrary.h"

#include "ax/Support/Error.h"

namespace ax::rt {

namespace {

/// A multiple of what the multiplication of panels does at once.
constexpr int64_t blockRows = 24;
/// Query rows for which it pays to pack keys and values.
constexpr int64_t leastReuse = 8;

template <typename T>
class Attention : public AttentionRows<T> {
  using Rows = AttentionRows<T>;
  using Rows::at, Rows::multiplyPanel;
  using Rows::depth, Rows::valueDepth, Rows::scoreStride, Rows::sumStride;
  using Rows::desc, Rows::heads, Rows::kvHeads, Rows::queries, Rows::keys;
  using Rows::keyPanel, Rows::mask, Rows::threads;
  using typename Rows::KeyRange, typename Rows::RowKeys, typename Rows::S;

public:
  explicit Attention(const AttentionDesc &given) : Rows(given) {
    packValues = !std::is_same_v<T, S> || desc.v.strides[3] != 1 ||
                 valueDepth != sumStride ||
                 queries * (heads / kvHeads) >= leastReuse;
    packKeys = !std::is_same_v<T, float> || desc.k.strides[3] != 1 ||
               queries * (heads / kvHeads) >= leastReuse ||
               !vectorKernels().narrowTile[0] ||
               depth % vectorKernels().narrowUnit != 0;
    threadElements = (packKeys ? depth * Rows::roundUp(keys, keyPanel) : 0) +
                     (packValues ? keys * sumStride : 0) +
                     blockRows * (depth + scoreStride + sumStride);
    this->workspaceBytes =
        threads * threadElements * static_cast<int64_t>(sizeof(S));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    q = static_cast<const T *>(arguments[0]);
    k = static_cast<const T *>(arguments[1]);
    v = static_cast<const T *>(arguments[2]);
    this->readMask(desc.hasMask ? arguments[3] : nullptr);
    arguments += desc.hasMask ? 4 : 3;
    out = static_cast<T *>(*arguments++);
    logSums = desc.givesLogSums ? static_cast<float *>(*arguments) : nullptr;
    this->forEachKvHead(workspace, threadElements,
                        [&](int64_t batch, int64_t kvHead, S *scratch) {
                          runKvHead(batch, kvHead, scratch);
                        });
    return llvm::Error::success();
  }

private:
  /// All query heads that share one key/value head.
  void runKvHead(int64_t batch, int64_t kvHead, S *scratch) const {
    KeyRange range = this->seenKeys(batch, kvHead);
    const T *kSource =
        at(k, desc.k, batch, kvHead) + range.begin * desc.k.strides[2];
    const T *vSource =
        at(v, desc.v, batch, kvHead) + range.begin * desc.v.strides[2];
    const S *panels = scratch;
    if (packKeys) {
      this->packPanels(kSource, desc.k, range.size(), scratch);
      scratch += depth * Rows::roundUp(keys, keyPanel);
    }
    const S *values = reinterpret_cast<const S *>(vSource);
    int64_t vStride = desc.v.strides[2];
    if (packValues) {
      Rows::packRows(vSource, desc.v, 0, range.size(), sumStride, scratch);
      values = scratch;
      vStride = sumStride;
      scratch += keys * sumStride;
    }
    int64_t perKv = heads / kvHeads;
    for (int64_t head = kvHead * perKv; head < (kvHead + 1) * perKv; ++head)
      for (int64_t row = 0; row < queries; row += blockRows)
        runBlock(batch, head, row, range, packKeys ? nullptr : kSource, panels,
                 values, vStride, scratch);
  }

  /// Scores of few queries, as of a decoder's step, by keys that are read where
  /// they are: once, and not to be packed.
  void multiplyByRows(const S *query, const T *source, S *scores, int64_t rows,
                      int64_t seen) const {
    if constexpr (std::is_same_v<T, float>) {
      const VectorKernels &kernels = vectorKernels();
      const TileRun all{0, depth};
      PackedTile tile{};
      tile.aStride = desc.k.strides[2];
      tile.runs = &all;
      tile.numRuns = 1;
      tile.bStride = tile.k = depth;
      tile.columns = 1;
      tile.cStride = 1;
      int64_t most = kernels.narrowRows[0];
      for (int64_t t = 0; t < seen; t += most)
        for (int64_t r = 0; r < rows; ++r) {
          tile.a = source + t * tile.aStride;
          tile.rows = static_cast<int32_t>(std::min(most, seen - t));
          tile.b = query + r * depth;
          tile.c = scores + r * scoreStride + t;
          kernels.narrowTile[0](tile);
        }
    }
  }

  /// `keyRows`: where keys of the range are, if they are in no panels.
  void runBlock(int64_t batch, int64_t head, int64_t first, KeyRange range,
                const T *keyRows, const S *panels, const S *values,
                int64_t vStride, S *scratch) const {
    int64_t rows = std::min(blockRows, queries - first);
    S *query = scratch, *scores = query + blockRows * depth,
      *sums = scores + blockRows * scoreStride;
    const T *source = at(q, desc.q, batch, head);
    Rows::packRows(source, desc.q, first, rows, depth, query);
    RowKeys read[blockRows];
    KeyRange block = this->findRowKeys(batch, head, first, rows, range, read);
    int64_t seen = block.size(), skipped = block.begin - range.begin;
    values += skipped * vStride;
    if (keyRows)
      multiplyByRows(query, keyRows + skipped * desc.k.strides[2], scores, rows,
                     seen);
    else
      this->multiplyByPanels(query, depth, panels + skipped * depth, depth,
                             scores, rows, seen);
    S factors[blockRows];
    float *rowSums =
        logSums ? logSums + (batch * heads + head) * queries + first : nullptr;
    for (int64_t r = 0; r < rows; ++r)
      factors[r] = this->softmaxRow(scores + r * scoreStride, block.begin,
                                    read[r], seen, batch, head, first + r,
                                    rowSums ? rowSums + r : nullptr);
    // What causality or a window hides from a row does not count, NaN neither;
    // but 0 NaN is NaN where rows are done together.
    int64_t from = 0, to = seen;
    for (int64_t r = 0; r < rows; ++r) {
      from = std::max(from, read[r].begin);
      to = std::min(to, read[r].end);
    }
    to = std::max(from, to);
    if (areFinite(values, vStride, from) &&
        areFinite(values + to * vStride, vStride, seen - to))
      multiplyPanel(scores, scoreStride, values, vStride, sums, sumStride, rows,
                    seen, sumStride);
    else
      for (int64_t r = 0; r < rows; ++r)
        multiplyPanel(scores + r * scoreStride + read[r].begin, scoreStride,
                      values + read[r].begin * vStride, vStride,
                      sums + r * sumStride, sumStride, 1, read[r].size(),
                      sumStride);
    T *result = at(out, desc.out, batch, head);
    for (int64_t r = 0; r < rows; ++r)
      finishRow(sums + r * sumStride, factors[r],
                result + (first + r) * desc.out.strides[2]);
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

  bool packKeys, packValues;
  int64_t threadElements;
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  T *out = nullptr;
  float *logSums = nullptr;
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
