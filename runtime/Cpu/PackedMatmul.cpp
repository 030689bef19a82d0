//===- PackedMatmul.cpp - Products with weights packed for our kernels ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// c = act(a b + bias) + residual in f32, where b never changes. b is kept in
// panels of a few columns, each [k][panel width], so that it streams through
// the cache once for each block of rows, the next panel being fetched
// meanwhile. a is packed too, in tiles of a few rows.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "Threads.h"
#include "ax/Runtime/MatmulView.h"
#include "ax/Runtime/VectorKernels.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

namespace {

/// A product of one matrix b; rows of a may be anywhere.
struct RowProduct {
  /// c and the residual have two dimensions, b's batch is of size 1.
  MatmulDesc desc;
  /// Where each row of a begins, in elements.
  std::vector<int64_t> rowOffsets;
};

/// Returns the product by rows; nothing where b, or what c's rows are apart,
/// differs in the batch.
std::optional<RowProduct> asRows(const MatmulDesc &original) {
  RowProduct result{collapse(original), {0}};
  MatmulDesc &desc = result.desc;
  auto isOneRow = [](const TensorDesc &view) {
    return view.sizes[0] == 1 || view.sizes[1] == 1 ||
           view.strides[0] == view.sizes[1] * view.strides[1];
  };
  auto mergeRows = [](TensorDesc &view) {
    if (view.sizes[1] == 1)
      view.strides[1] = view.strides[0];
    view.sizes[1] *= view.sizes[0];
    view.sizes.erase(view.sizes.begin());
    view.strides.erase(view.strides.begin());
  };
  for (size_t d = 0; d + 1 < desc.a.sizes.size(); ++d) {
    std::vector<int64_t> offsets;
    for (int64_t before : result.rowOffsets)
      for (int64_t i = 0; i < desc.c.sizes[d]; ++i)
        offsets.push_back(before +
                          (desc.a.sizes[d] == 1 ? 0 : i * desc.a.strides[d]));
    result.rowOffsets = std::move(offsets);
  }
  for (size_t d = 0; d + 2 < desc.b.sizes.size(); ++d)
    if (desc.b.sizes[d] != 1)
      return std::nullopt;
  while (desc.c.sizes.size() > 2) {
    if (!isOneRow(desc.c) || (desc.hasResidual && !isOneRow(desc.residual)))
      return std::nullopt;
    mergeRows(desc.c);
    if (desc.hasResidual)
      mergeRows(desc.residual);
  }
  return result;
}

/// A block of a panel, and the tiles of a that meet it, stay in the
/// second-level cache.
constexpr int64_t blockK = 512;
/// Rows for which b is streamed once.
constexpr int64_t blockRowTiles = 16;
constexpr int64_t cacheLine = 64;

class PackedMatmul : public CpuOp {
public:
  PackedMatmul(RowProduct product, std::shared_ptr<const HostMemory> weights)
      : desc(std::move(product.desc)),
        rowOffsets(std::move(product.rowOffsets)), weights(std::move(weights)),
        m(desc.c.sizes[0]), n(desc.c.sizes[1]), k(desc.a.sizes.back()),
        panels(llvm::divideCeil(n, kernels.panelWidth)),
        threads(getNumThreads()) {
    readsConstantOperand = false;
    int64_t rows = std::min(m, blockRowTiles * kernels.maxTileRows);
    packedElements = rows * paddedK();
    partialElements = rows * kernels.panelWidth;
    workspaceBytes =
        static_cast<int64_t>(sizeof(float)) *
        (packedElements + (k > blockK ? threads * partialElements : 0));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    Run run;
    run.a = static_cast<const float *>(arguments[0]);
    int next = 2;
    run.bias = desc.hasBias ? static_cast<float *>(arguments[next++]) : nullptr;
    run.residual =
        desc.hasResidual ? static_cast<float *>(arguments[next++]) : nullptr;
    run.c = static_cast<float *>(arguments[next]);
    run.packed = static_cast<float *>(workspace);
    int64_t tiles = llvm::divideCeil(m, kernels.maxTileRows);
    for (int64_t first = 0; first < tiles; first += blockRowTiles) {
      run.firstTile = first;
      run.lastTile = std::min(tiles, first + blockRowTiles);
      runBlock(run);
    }
    return llvm::Error::success();
  }

private:
  struct Run {
    const float *a, *bias, *residual;
    float *c, *packed;
    int64_t firstTile, lastTile;
  };

  /// Tiles of (nearly) equal size.
  int64_t firstRow(int64_t tile) const {
    return m * tile / llvm::divideCeil(m, kernels.maxTileRows);
  }

  void runBlock(const Run &run) {
    parallelFor(run.lastTile - run.firstTile, 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t t = begin; t < end; ++t)
                    packTile(run, run.firstTile + t);
                });
    // At most one range per thread: each has partial sums of its own.
    int64_t perRange = llvm::divideCeil(panels, threads);
    parallelFor(llvm::divideCeil(panels, perRange), 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r)
                    for (int64_t panel = r * perRange;
                         panel < std::min(panels, (r + 1) * perRange); ++panel)
                      runPanel(run, panel, r);
                });
  }

  int64_t paddedK() const { return llvm::alignTo(k, packedK); }
  /// [k / packedK][rows][packedK] of the tile, after those of the tiles before
  /// it.
  float *packedTile(const Run &run, int64_t tile) const {
    return run.packed + (firstRow(tile) - firstRow(run.firstTile)) * paddedK();
  }
  void packTile(const Run &run, int64_t tile) const {
    int64_t first = firstRow(tile), rows = firstRow(tile + 1) - first;
    int64_t step = desc.a.strides.back();
    const int64_t *offsets = rowOffsets.data() + first;
    float *to = packedTile(run, tile);
    for (int64_t i = 0; i < k; i += packedK, to += rows * packedK) {
      const float *from = run.a + i * step;
      int64_t count = std::min(packedK, k - i);
      if (step == 1 && count == packedK)
        for (int64_t r = 0; r < rows; ++r)
          std::memcpy(to + r * packedK, from + offsets[r],
                      packedK * sizeof(float));
      else // Rows are next to each other, or it does not matter.
        for (int64_t j = 0; j < count; ++j)
          for (int64_t r = 0; r < rows; ++r)
            to[r * packedK + j] = from[offsets[r] + j * step];
    }
  }

  /// The kernels read rows. A residual that lies along columns (it was made
  /// behind a transpose) is brought to where the sums go, while these rows of
  /// it are in the cache.
  void setResidual(PackedTile &tile, const float *residual) const {
    int64_t rowStride = desc.residual.strides[0];
    int64_t columnStride = desc.residual.strides[1];
    tile.residual = residual;
    tile.residualStride = rowStride;
    if (columnStride == 1)
      return;
    for (int64_t j = 0; j < tile.columns; ++j)
      for (int64_t r = 0; r < tile.rows; ++r)
        tile.c[r * tile.cStride + j] =
            residual[r * rowStride + j * columnStride];
    tile.residual = tile.c;
    tile.residualStride = tile.cStride;
  }

  void runPanel(const Run &run, int64_t panel, int64_t range) const {
    const auto *b = static_cast<const float *>(weights->getData()) +
                    panel * k * kernels.panelWidth;
    float *partial = run.packed + packedElements + range * partialElements;
    int64_t tiles = run.lastTile - run.firstTile;
    int64_t blocks = llvm::divideCeil(k, blockK);
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t begin = block * blockK, end = std::min(k, begin + blockK);
      PackedTile tile = {};
      tile.k = end - begin;
      tile.b = b + begin * kernels.panelWidth;
      tile.columns = static_cast<int32_t>(std::min<int64_t>(
          kernels.panelWidth, n - panel * kernels.panelWidth));
      tile.cStride = desc.c.strides[0];
      tile.activation = desc.activation;
      tile.bias = run.bias ? run.bias + panel * kernels.panelWidth : nullptr;
      // What follows this block in memory is what is needed next: a share for
      // each tile.
      const char *following =
          reinterpret_cast<const char *>(b + end * kernels.panelWidth);
      bool last = block + 1 == blocks;
      int64_t left = static_cast<int64_t>(
          reinterpret_cast<const char *>(weights->getData()) +
          weights->getSize() - following);
      int64_t ahead = std::clamp<int64_t>(
          left, 0,
          tile.k * kernels.panelWidth * static_cast<int64_t>(sizeof(float)));
      int64_t share = llvm::divideCeil(ahead / cacheLine, tiles);
      for (int64_t t = run.firstTile; t < run.lastTile; ++t) {
        int64_t first = firstRow(t), rows = firstRow(t + 1) - first;
        float *sums =
            partial + (first - firstRow(run.firstTile)) * kernels.panelWidth;
        tile.rows = static_cast<int32_t>(rows);
        tile.a = packedTile(run, t) + begin * rows;
        tile.partialIn = block > 0 ? sums : nullptr;
        tile.partialOut = last ? nullptr : sums;
        tile.c = run.c + first * desc.c.strides[0] + panel * kernels.panelWidth;
        if (run.residual && last)
          setResidual(tile, run.residual + first * desc.residual.strides[0] +
                                panel * kernels.panelWidth *
                                    desc.residual.strides[1]);
        int64_t done = (t - run.firstTile) * share;
        tile.prefetch = following + done * cacheLine;
        tile.prefetchLines =
            std::clamp<int64_t>(ahead / cacheLine - done, 0, share);
        kernels.packedTile(tile);
      }
    }
  }

  const VectorKernels &kernels = vectorKernels();
  MatmulDesc desc;
  std::vector<int64_t> rowOffsets;
  std::shared_ptr<const HostMemory> weights;
  int64_t m, n, k, panels, threads;
  int64_t packedElements = 0, partialElements = 0;
};

/// A part of b, as panels. Columns past the last one are zero already.
struct PanelPart {
  const float *from;
  float *to;
  int64_t k, columns, width, rowStride, columnStride;

  /// Rows that lie in the memory one after another: of some panels at a time,
  /// as what the memory fetches ahead is in a row.
  void packRows() const {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < columns; j += width)
        std::memcpy(to + j * k + i * width, from + i * rowStride + j,
                    static_cast<size_t>(std::min(width, columns - j)) *
                        sizeof(float));
  }
  /// Packs a b that is transposed: in squares, each of which stays in the cache
  /// until it is read and written.
  void packColumns() const {
    constexpr int64_t side = 16;
    for (int64_t panel = 0; panel < columns; panel += width)
      for (int64_t row = 0; row < k; row += side)
        for (int64_t j = panel; j < std::min(panel + width, columns); ++j)
          for (int64_t i = row; i < std::min(row + side, k); ++i)
            to[panel * k + i * width + j - panel] =
                from[i * rowStride + j * columnStride];
  }
};

void packPanels(const MatmulDesc &desc, const float *from, float *to) {
  int64_t k = desc.b.sizes[0], n = desc.b.sizes[1];
  int64_t width = vectorKernels().panelWidth;
  constexpr int64_t panelsAtATime = 8;
  int64_t most = panelsAtATime * width;
  parallelFor(llvm::divideCeil(n, most), 1, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * most; first < std::min(n, end * most);
         first += most) {
      PanelPart part{from + first * desc.b.strides[1],
                     to + first * k,
                     k,
                     std::min(most, n - first),
                     width,
                     desc.b.strides[0],
                     desc.b.strides[1]};
      if (part.columnStride == 1)
        part.packRows();
      else
        part.packColumns();
    }
  });
}

} // namespace

ExpectedCpuOp preparePackedMatmul(const MatmulDesc &original,
                                  const CpuConstant &constant,
                                  PackedWeights &packed) {
  const VectorKernels &kernels = vectorKernels();
  if (!kernels.packedTile || !original.constantB || !constant.data ||
      original.a.dtype != DType::F32 || original.c.dtype != DType::F32)
    return nullptr;
  std::optional<RowProduct> product = asRows(original);
  if (!product)
    return nullptr;
  MatmulDesc &desc = product->desc;
  // Of b only the matrix counts.
  for (auto *dims : {&desc.b.sizes, &desc.b.strides})
    dims->erase(dims->begin(), dims->end() - 2);
  if (desc.c.sizes[0] == 0 || desc.a.sizes.back() == 0 ||
      desc.c.sizes[1] == 0 || desc.c.strides[1] != 1)
    return nullptr;
  int64_t k = desc.b.sizes[0];
  int64_t bytes = llvm::divideCeil(desc.b.sizes[1], kernels.panelWidth) * k *
                  kernels.panelWidth * static_cast<int64_t>(sizeof(float));
  std::string format = "panels " + std::to_string(kernels.panelWidth);
  for (int d = 0; d < 2; ++d)
    format += " " + std::to_string(desc.b.sizes[static_cast<size_t>(d)]) + ":" +
              std::to_string(desc.b.strides[static_cast<size_t>(d)]);
  llvm::Expected<std::shared_ptr<const HostMemory>> weights =
      packed.get(constant, format, bytes, [&](void *to) {
        packPanels(desc, static_cast<const float *>(constant.data),
                   static_cast<float *>(to));
        return llvm::Error::success();
      });
  if (!weights)
    return weights.takeError();
  return std::make_unique<PackedMatmul>(std::move(*product),
                                        std::move(*weights));
}

} // namespace ax::rt
