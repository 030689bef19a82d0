//===- AttentionGradient.cpp - Attention backwards ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As in FlashAttention-2 (Dao, arXiv 2307.08691, algorithm 2) no matrix of all
// queries and keys is ever in memory, and sum(dp p) of a row is sum(gradient
// out). Unlike there the scores of a row lie whole in the cache, so that
// nothing of the softmax needs to be kept from the forward pass:
//
//   block of queries:  p = softmax(q k^T)   dp = g v^T   ds = p (dp - g . out)
//                      dv += p^T g          dq = ds k    dk += ds^T q
//
// dk and dv of a key/value head are summed by one thread, over its query heads
// in order and blocks in order: the same bits on any number of threads.
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "CpuLibrary.h"

#include "ax/Support/Error.h"

namespace ax::rt {

namespace {

/// What blocks of rows come in: of products' tiles.
constexpr int64_t rowUnit = 24;
constexpr int64_t mostRows = 4 * rowUnit;
/// Elements of a block's p, and of its ds: both lie in the second-level cache.
constexpr int64_t blockElements = 1 << 16;

template <typename T>
class AttentionGradient : public AttentionRows<T> {
  using Rows = AttentionRows<T>;
  using Rows::at, Rows::multiplyPanel, Rows::packRows;
  using Rows::depth, Rows::valueDepth, Rows::scoreStride, Rows::sumStride;
  using Rows::desc, Rows::heads, Rows::kvHeads, Rows::queries, Rows::keys;
  using Rows::keyPanel, Rows::mask, Rows::threads;
  using typename Rows::KeyRange, typename Rows::RowKeys, typename Rows::S;

public:
  explicit AttentionGradient(const AttentionGradientDesc &given)
      : Rows(given.forward), gradientDesc(given.gradient), dqDesc(given.dq),
        dkDesc(given.dk), dvDesc(given.dv),
        depthStride(Rows::roundUp(depth, vectorKernels().panelUnit)) {
    int64_t fitting = blockElements / scoreStride / rowUnit * rowUnit;
    blockRows = std::clamp(fitting, rowUnit, mostRows);
    int64_t rounded = Rows::roundUp(keys, keyPanel);
    // Of all keys: panels of both, rows of k, sums of both. Of a block: q, its
    // gradient, g, p, ds, and the slopes of a cap.
    threadElements = rounded * (depth + valueDepth) +
                     keys * (2 * depthStride + sumStride) +
                     blockRows * (2 * depthStride + sumStride +
                                  (desc.softcap > 0 ? 3 : 2) * scoreStride);
    this->workspaceBytes =
        threads * threadElements * static_cast<int64_t>(sizeof(S));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    q = static_cast<const T *>(*arguments++);
    k = static_cast<const T *>(*arguments++);
    v = static_cast<const T *>(*arguments++);
    out = static_cast<const T *>(*arguments++);
    gradient = static_cast<const T *>(*arguments++);
    this->readMask(desc.hasMask ? *arguments++ : nullptr);
    // Rows' sums come along with the probabilities.
    arguments += desc.givesLogSums ? 1 : 0;
    dq = static_cast<T *>(*arguments++);
    dk = static_cast<T *>(*arguments++);
    dv = static_cast<T *>(*arguments++);
    this->forEachKvHead(workspace, threadElements,
                        [&](int64_t batch, int64_t kvHead, S *scratch) {
                          runKvHead(batch, kvHead, scratch);
                        });
    return llvm::Error::success();
  }

private:
  /// Where things lie in a thread's scratch memory.
  struct Scratch {
    S *keyPanels, *valuePanels, *keyRows, *keySums, *valueSums;
    S *query, *queryGradient, *given, *p, *ds, *slopes;
    /// Some row attends to nothing, and is NaN for every key.
    bool isLost = false;
  };

  Scratch divide(S *memory) const {
    auto take = [&](int64_t count) {
      S *taken = memory;
      memory += count;
      return taken;
    };
    int64_t rounded = Rows::roundUp(keys, keyPanel);
    Scratch to;
    to.keyPanels = take(rounded * depth);
    to.valuePanels = take(rounded * valueDepth);
    to.keyRows = take(keys * depthStride);
    to.keySums = take(keys * depthStride);
    to.valueSums = take(keys * sumStride);
    to.query = take(blockRows * depthStride);
    to.queryGradient = take(blockRows * depthStride);
    to.given = take(blockRows * sumStride);
    to.p = take(blockRows * scoreStride);
    to.ds = take(blockRows * scoreStride);
    to.slopes = desc.softcap > 0 ? take(blockRows * scoreStride) : nullptr;
    return to;
  }

  /// All query heads that share one key/value head.
  void runKvHead(int64_t batch, int64_t kvHead, S *memory) const {
    Scratch scratch = divide(memory);
    const T *kSource = at(k, desc.k, batch, kvHead);
    this->packPanels(kSource, desc.k, keys, scratch.keyPanels);
    this->packPanels(at(v, desc.v, batch, kvHead), desc.v, keys,
                     scratch.valuePanels);
    packRows(kSource, desc.k, 0, keys, depthStride, scratch.keyRows);
    std::fill_n(scratch.keySums, keys * depthStride, S(0));
    std::fill_n(scratch.valueSums, keys * sumStride, S(0));
    int64_t perKv = heads / kvHeads;
    for (int64_t head = kvHead * perKv; head < (kvHead + 1) * perKv; ++head)
      for (int64_t row = 0; row < queries; row += blockRows)
        runBlock(batch, head, row, scratch);
    if (scratch.isLost) {
      S nan = std::numeric_limits<S>::quiet_NaN();
      std::fill_n(scratch.keySums, keys * depthStride, nan);
      std::fill_n(scratch.valueSums, keys * sumStride, nan);
    }
    write(scratch.keySums, depthStride, keys, dkDesc,
          at(dk, dkDesc, batch, kvHead));
    write(scratch.valueSums, sumStride, keys, dvDesc,
          at(dv, dvDesc, batch, kvHead));
  }

  void runBlock(int64_t batch, int64_t head, int64_t first,
                Scratch &scratch) const {
    int64_t rows = std::min(blockRows, queries - first);
    RowKeys read[mostRows];
    KeyRange block =
        this->findRowKeys(batch, head, first, rows, this->allKeys(), read);
    int64_t seen = block.size(), skipped = block.begin;
    packRows(at(q, desc.q, batch, head), desc.q, first, rows, depthStride,
             scratch.query);
    packRows(at(gradient, gradientDesc, batch, head), gradientDesc, first, rows,
             sumStride, scratch.given);
    this->multiplyByPanels(scratch.query, depthStride,
                           scratch.keyPanels + skipped * depth, depth,
                           scratch.p, rows, seen);
    this->multiplyByPanels(scratch.given, sumStride,
                           scratch.valuePanels + skipped * valueDepth,
                           valueDepth, scratch.ds, rows, seen);
    bool isLost[mostRows];
    for (int64_t r = 0; r < rows; ++r)
      isLost[r] = !runRow(batch, head, first + r, r, read[r], block, scratch);
    multiplyPanel(scratch.ds, scoreStride,
                  scratch.keyRows + skipped * depthStride, depthStride,
                  scratch.queryGradient, depthStride, rows, seen, depthStride);
    // The block may see no key at all.
    for (int64_t r = 0; r < rows; ++r)
      if (isLost[r]) {
        std::fill_n(scratch.queryGradient + r * depthStride, depthStride,
                    std::numeric_limits<S>::quiet_NaN());
        scratch.isLost = true;
      }
    write(scratch.queryGradient, depthStride, rows, dqDesc,
          at(dq, dqDesc, batch, head) + first * dqDesc.strides[2]);
    addTransposed(scratch.ds, scratch.query, depthStride,
                  scratch.keySums + skipped * depthStride, seen, rows);
    addTransposed(scratch.p, scratch.given, sumStride,
                  scratch.valueSums + skipped * sumStride, seen, rows);
  }

  /// Scores become p, and dp becomes ds, by which keys and queries are
  /// multiplied: with the scale in it. False where all of them are NaN.
  bool runRow(int64_t batch, int64_t head, int64_t query, int64_t r,
              RowKeys read, KeyRange block, Scratch &scratch) const {
    S *p = scratch.p + r * scoreStride, *ds = scratch.ds + r * scoreStride;
    int64_t from = read.begin, count = read.end, seen = block.size();
    S *slopes = nullptr;
    if (desc.softcap > 0) {
      slopes = scratch.slopes + r * scoreStride;
      for (int64_t t = from; t < count; ++t) {
        S capped = std::tanh(p[t] * static_cast<S>(desc.scale / desc.softcap));
        slopes[t] = 1 - capped * capped;
      }
    }
    S factor = this->softmaxRow(p, block.begin, read, seen, batch, head, query);
    if (std::isnan(factor)) {
      std::fill_n(p, seen, factor);
      std::fill_n(ds, seen, factor);
      return false;
    }
    const S *given = scratch.given + r * sumStride;
    const T *result =
        at(out, desc.out, batch, head) + query * desc.out.strides[2];
    softmaxGradient(p + from, ds + from, count - from, factor,
                    dot(given, result));
    for (int64_t t = from; slopes && t < count; ++t)
      ds[t] *= slopes[t];
    std::fill(ds, ds + from, S(0));
    std::fill(ds + count, ds + seen, S(0));
    return true;
  }

  /// Of a row of the gradient and one of the result, `valueDepth` long.
  S dot(const S *given, const T *result) const {
    // Several sums hide how long one addition takes.
    constexpr int64_t lanes = 8;
    S sums[lanes] = {};
    int64_t step = desc.out.strides[3];
    for (int64_t d = 0; d < valueDepth; d += lanes)
      for (int64_t j = 0; j < std::min(lanes, valueDepth - d); ++j)
        sums[j] += given[d + j] * widen<S>(result[(d + j) * step]);
    S total = 0;
    for (S sum : sums)
      total += sum;
    return total;
  }

  void softmaxGradient(S *p, S *dp, int64_t count, S factor, S total) const {
    S scale = static_cast<S>(desc.scale);
    if constexpr (std::is_same_v<S, float>)
      return vectorKernels().softmaxGradient(p, dp, count, factor, total,
                                             scale);
    for (int64_t t = 0; t < count; ++t) {
      p[t] *= factor;
      dp[t] = scale * p[t] * (dp[t] - total);
    }
  }

  void addTransposed(const S *a, const S *b, int64_t stride, S *sums,
                     int64_t seen, int64_t rows) const {
    const VectorKernels &kernels = vectorKernels();
    if constexpr (std::is_same_v<S, float>)
      kernels.addTransposedF32(a, scoreStride, b, stride, sums, stride, seen,
                               rows, stride);
    else
      kernels.addTransposedF64(a, scoreStride, b, stride, sums, stride, seen,
                               rows, stride);
  }

  static void write(const S *from, int64_t stride, int64_t rows,
                    const TensorDesc &view, T *to) {
    int64_t width = view.sizes[3], column = view.strides[3];
    for (int64_t r = 0; r < rows; ++r, from += stride, to += view.strides[2])
      if (!Rows::copyRow(from, 1, to, column, width))
        for (int64_t d = 0; d < width; ++d)
          to[d * column] = narrow<T>(from[d]);
  }

  TensorDesc gradientDesc, dqDesc, dkDesc, dvDesc;
  /// Distance of rows of q and k, packed, and of their gradients.
  int64_t depthStride;
  int64_t blockRows;
  int64_t threadElements;
  const T *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr,
          *gradient = nullptr;
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

} // namespace

ExpectedCpuOp prepareAttentionGradient(const AttentionGradientDesc &desc) {
  return visitDType(desc.forward.q.dtype, [&](auto tag) -> ExpectedCpuOp {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      return makeError(ExitCode::Unsupported, "no attention of integers");
    else
      return std::make_unique<AttentionGradient<T>>(desc);
  });
}

} // namespace ax::rt
