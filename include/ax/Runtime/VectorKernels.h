//===- VectorKernels.h - Loops compiled for several processors --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same source, VectorKernels.inc, is compiled for AVX-512, AVX2 and any
// processor; `vectorKernels()` is the best that this machine runs.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_VECTORKERNELS_H
#define AX_RUNTIME_VECTORKERNELS_H

#include "ax/Runtime/LibraryOps.h"

#include <cstdint>
#include <vector>

namespace ax::rt {

/// sources[0] op sources[1] op ...: always in this order, element by element,
/// to every destination. Destinations may be sources.
using ReduceFn = void (*)(const void *const *sources, int32_t numSources,
                          void *const *destinations, int32_t numDestinations,
                          int64_t count);

enum class ReduceOp { Sum, Max, Min };
constexpr int numReduceOps = 3;
constexpr int numDTypes = 15;

/// c = a b, row-major: a has rows x k, b has k x n, c has rows x n elements. a
/// and c are dense; b's rows are `bStride` elements apart.
template <typename T>
using MultiplyFn = void (*)(const T *a, const T *b, int64_t bStride, T *c,
                            int64_t rows, int64_t k, int64_t n);

/// c = a b, row-major: a has rows x k, b has k x columns, c has rows x columns
/// elements; rows are `aStride`, `bStride`, `cStride` elements apart. `columns`
/// is a multiple of VectorKernels::panelUnit, of T of eight bytes of half of it
/// (whole vectors).
template <typename T>
using MultiplyPanelFn = void (*)(const T *a, int64_t aStride, const T *b,
                                 int64_t bStride, T *c, int64_t cStride,
                                 int64_t rows, int64_t k, int64_t columns);

/// Steps of k that lie together in a packed row.
constexpr int64_t packedK = 16;

/// What is read at a time of rows that lie next to each other.
constexpr int64_t transposedRows = 16;

/// Elements of a row of a that are evenly apart, `offset` from where the row
/// begins.
struct TileRun {
  int64_t offset, length;
};

/// Columns of a narrow tile at most.
constexpr int64_t maxNarrowColumns = 4;
/// Elements of the largest tile.
constexpr int64_t maxTileElements = 12 * 32;

/// A tile of c = act(a b + bias) + residual, or with `activationLast` of
/// act(a b + bias + residual); rows x at most `panelWidth`.
struct PackedTile {
  /// [k / packedK][rows][packedK], dense; of a direct tile the first row, with
  /// rows `aStride` elements apart, each of `numRuns` runs of elements next to
  /// each other; of a transposed one rows are next to each other and elements
  /// of runs `aStride` apart.
  const float *a;
  int64_t aStride;
  const TileRun *runs;
  int64_t numRuns;
  /// [k][panelWidth], dense; of a narrow tile columns `bStride` elements apart.
  const float *b;
  int64_t bStride;
  int64_t k;
  int32_t rows;
  int32_t columns;
  /// [rows][panelWidth]: added to the product; not in the first block of k.
  const float *partialIn;
  /// Where the sum goes without an epilogue; null in the last block of k.
  float *partialOut;
  float *c;
  int64_t cStride;
  /// Null where there is none.
  const float *bias;
  const float *residual;
  int64_t residualStride;
  Activation activation;
  bool activationLast;
  /// Cache lines to fetch meanwhile, at most one for each 4 steps of k; packed
  /// tiles of one row fetch none.
  const char *prefetch;
  int64_t prefetchLines;
};

struct VectorKernels {
  /// Null without AVX2; tiles of at most `maxTileRows` and `maxDirectRows`.
  void (*packedTile)(const PackedTile &tile);
  void (*directTile)(const PackedTile &tile);
  void (*transposedTile)(const PackedTile &tile);
  /// As directTile, of as many columns as there are functions or fewer, which
  /// would leave most of a vector idle: the runs' elements lie along vectors
  /// instead. Lengths of runs are multiples of `narrowUnit`; tiles have
  /// `narrowRows`.
  void (*narrowTile[maxNarrowColumns])(const PackedTile &tile);
  int32_t narrowRows[maxNarrowColumns];
  int32_t narrowUnit;
  int32_t panelWidth;
  int32_t maxTileRows, maxDirectRows;
  /// Null: Bool sums.
  ReduceFn reduce[numReduceOps][numDTypes];
  MultiplyFn<float> multiplyF32;
  MultiplyFn<double> multiplyF64;
  /// Columns of a panel's result come in units of so many.
  int32_t panelUnit;
  MultiplyPanelFn<float> multiplyPanelF32;
  MultiplyPanelFn<double> multiplyPanelF64;
  /// c += a^T b: a has k x rows elements, all else is as for multiplyPanel.
  MultiplyPanelFn<float> addTransposedF32;
  MultiplyPanelFn<double> addTransposedF64;
  /// Two's complement: overflow wraps.
  MultiplyFn<uint32_t> multiplyI32;
  MultiplyFn<uint64_t> multiplyI64;
  /// x[i] = exp(scale x[i] - shift), and their sum. Results below the range of
  /// normal numbers become 0.
  float (*expSum)(float *x, int64_t count, float scale, float shift);
  /// Returns the largest element that is not NaN; -infinity if there is none.
  float (*maximum)(const float *x, int64_t count);
  /// to[i] = factor from[i]
  void (*scaled)(const float *from, float *to, int64_t count, float factor);
  /// x[i] = factor x[i] + added[i]
  void (*scaleAdd)(float *x, int64_t count, float factor, const float *added);
  /// x[i] = attend[i] ? factor x[i] : -infinity
  void (*scaleWhere)(float *x, int64_t count, float factor, const bool *attend);
  /// p[i] = factor p[i]; dp[i] = scale p[i] (dp[i] - total)
  void (*softmaxGradient)(float *p, float *dp, int64_t count, float factor,
                          float total, float scale);
  /// sums[i] += w[t] x[t xStride + i], for all t < taps
  void (*addTaps)(const float *x, int64_t xStride, const float *w, int64_t taps,
                  float *sums, int64_t count);
  /// sums[i] += w[t wStride + i] x[t xStride + i], for all t < taps
  void (*addTapsOfChannels)(const float *x, int64_t xStride, const float *w,
                            int64_t wStride, int64_t taps, float *sums,
                            int64_t count);
  /// Where x[i] is larger than best[i], or NaN: best[i] = x[i], where[i] =
  /// here.
  void (*largest)(const float *x, int64_t count, int32_t here, float *best,
                  int32_t *where);
  /// The largest of the bits without their signs.
  uint32_t (*largestBits32)(const uint32_t *x, int64_t count);
  uint16_t (*largestBits16)(const uint16_t *x, int64_t count);
  /// to[j rows + i] = from[i stride + j] for i < rows, j < columns
  void (*transpose)(const float *from, int64_t stride, float *to, int64_t rows,
                    int64_t columns);
  /// Null without AVX2: to[i packedK + j] = from[j stride + i] for i < rows <=
  /// maxTileRows, j < packedK; as many i are read as `transposedRows`.
  void (*transposeRows)(const float *from, int64_t stride, float *to,
                        int64_t rows);
  void (*f16ToF32)(const uint16_t *from, float *to, int64_t count);
  void (*f32ToF16)(const float *from, uint16_t *to, int64_t count);
  void (*bf16ToF32)(const uint16_t *from, float *to, int64_t count);
  void (*f32ToBF16)(const float *from, uint16_t *to, int64_t count);
};

const VectorKernels &vectorKernels();
/// All that this machine runs, the best first.
std::vector<const VectorKernels *> runnableVectorKernels();

} // namespace ax::rt

#endif // AX_RUNTIME_VECTORKERNELS_H
