//===- PackedProduct.cpp - Products with weights in panels ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PackedProduct.h"

#include "Threads.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

/// A block of a panel, and the tiles of a that meet it, stay in the
/// second-level cache.
static constexpr int64_t blockK = 512;
/// Rows for which b is streamed once, in tiles.
static constexpr int64_t blockRowTiles = 16;
static constexpr int64_t cacheLine = 64;

static int64_t paddedDepth(const PackedProductDesc &desc) {
  return llvm::alignTo(desc.depth, packedK);
}

PackedProduct::PackedProduct(const PackedProductDesc &desc)
    : desc(desc), tiles(llvm::divideCeil(desc.rows, kernels.maxTileRows)),
      panels(llvm::divideCeil(desc.columns, kernels.panelWidth)),
      threads(getNumThreads()) {
  int64_t blocks = llvm::divideCeil(tiles, blockRowTiles);
  // Few panels are not enough for the threads, and blocks leave some idle at
  // the end unless there are many.
  constexpr int64_t many = 4;
  sharesRows = threads > 1 && (panels < threads || blocks >= many * threads);
  int64_t rows = std::min(desc.rows, blockRowTiles * kernels.maxTileRows);
  packedElements = rows * paddedDepth(desc);
  partialElements = desc.depth > blockK ? rows * kernels.panelWidth : 0;
  workspaceBytes =
      static_cast<int64_t>(sizeof(float)) *
      ((sharesRows ? threads : 1) * packedElements + threads * partialElements);
}

/// Tiles are of (nearly) equal size.
int64_t PackedProduct::firstRow(int64_t tile) const {
  return desc.rows * tile / tiles;
}

/// Calls fn(index, range) for indices below `count`, of at most one range per
/// thread.
template <typename Fn>
static void forEachInRanges(int64_t count, int64_t threads, Fn &&fn) {
  int64_t perRange = llvm::divideCeil(count, threads);
  parallelFor(llvm::divideCeil(count, perRange), 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r)
                  for (int64_t i = r * perRange;
                       i < std::min(count, (r + 1) * perRange); ++i)
                    fn(i, r);
              });
}

void PackedProduct::run(const Operands &operands, PackRows pack) const {
  auto *workspace = static_cast<float *>(operands.workspace);
  float *partials = workspace + (sharesRows ? threads : 1) * packedElements;
  auto blockAt = [&](int64_t b, int64_t range) {
    return Block{operands, b * blockRowTiles,
                 std::min(tiles, (b + 1) * blockRowTiles),
                 workspace + range * packedElements};
  };
  int64_t blocks = llvm::divideCeil(tiles, blockRowTiles);
  if (sharesRows)
    return forEachInRanges(blocks, threads, [&](int64_t b, int64_t range) {
      Block block = blockAt(b, range);
      for (int64_t tile = block.firstTile; tile < block.lastTile; ++tile)
        packTile(block, tile, pack);
      for (int64_t panel = 0; panel < panels; ++panel)
        runPanel(block, panel, partials + range * partialElements);
    });
  for (int64_t b = 0; b < blocks; ++b) {
    Block block = blockAt(b, 0);
    forEachInRanges(block.lastTile - block.firstTile, threads,
                    [&](int64_t tile, int64_t) {
                      packTile(block, block.firstTile + tile, pack);
                    });
    forEachInRanges(panels, threads, [&](int64_t panel, int64_t range) {
      runPanel(block, panel, partials + range * partialElements);
    });
  }
}

/// Behind those of the tiles before it in the block.
float *PackedProduct::packedTile(const Block &block, int64_t tile) const {
  return block.packed +
         (firstRow(tile) - firstRow(block.firstTile)) * paddedDepth(desc);
}

void PackedProduct::packTile(const Block &block, int64_t tile,
                             PackRows pack) const {
  int64_t first = firstRow(tile);
  pack(first, firstRow(tile + 1) - first, packedTile(block, tile));
}

/// The kernels read rows. A residual that lies along columns (it was made
/// behind a transpose) is brought to where the sums go, while these rows of it
/// are in the cache.
void PackedProduct::setResidual(PackedTile &tile, const float *residual) const {
  tile.residual = residual;
  tile.residualStride = desc.residualRowStride;
  if (desc.residualColumnStride == 1)
    return;
  for (int64_t j = 0; j < tile.columns; ++j)
    for (int64_t r = 0; r < tile.rows; ++r)
      tile.c[r * tile.cStride + j] =
          residual[r * desc.residualRowStride + j * desc.residualColumnStride];
  tile.residual = tile.c;
  tile.residualStride = tile.cStride;
}

void PackedProduct::runPanel(const Block &block, int64_t panel,
                             float *partial) const {
  const Operands &operands = block.operands;
  int64_t firstColumn = panel * kernels.panelWidth;
  const float *b = operands.b + firstColumn * desc.depth;
  int64_t tilesOfBlock = block.lastTile - block.firstTile;
  for (int64_t begin = 0; begin < desc.depth; begin += blockK) {
    int64_t end = std::min(desc.depth, begin + blockK);
    PackedTile tile = {};
    tile.k = end - begin;
    tile.b = b + begin * kernels.panelWidth;
    tile.columns = static_cast<int32_t>(
        std::min<int64_t>(kernels.panelWidth, desc.columns - firstColumn));
    tile.cStride = desc.cStride;
    tile.activation = desc.activation;
    tile.activationLast = desc.activationLast;
    tile.bias = operands.bias ? operands.bias + firstColumn : nullptr;
    // What follows this block in memory is what is needed next: a share for
    // each tile.
    const float *following = b + end * kernels.panelWidth;
    bool last = end == desc.depth;
    int64_t ahead = std::min<int64_t>(operands.bEnd - following,
                                      tile.k * kernels.panelWidth) *
                    static_cast<int64_t>(sizeof(float)) / cacheLine;
    int64_t share = llvm::divideCeil(ahead, tilesOfBlock);
    for (int64_t t = block.firstTile; t < block.lastTile; ++t) {
      int64_t first = firstRow(t), rows = firstRow(t + 1) - first;
      float *sums =
          partial + (first - firstRow(block.firstTile)) * kernels.panelWidth;
      tile.rows = static_cast<int32_t>(rows);
      tile.a = packedTile(block, t) + begin * rows;
      tile.partialIn = begin > 0 ? sums : nullptr;
      tile.partialOut = last ? nullptr : sums;
      tile.c = operands.c + first * desc.cStride + firstColumn;
      if (operands.residual && last)
        setResidual(tile, operands.residual + first * desc.residualRowStride +
                              firstColumn * desc.residualColumnStride);
      int64_t done = (t - block.firstTile) * share;
      tile.prefetch =
          reinterpret_cast<const char *>(following) + done * cacheLine;
      tile.prefetchLines = std::clamp<int64_t>(ahead - done, 0, share);
      kernels.packedTile(tile);
    }
  }
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

int64_t panelElements(int64_t depth, int64_t columns) {
  return llvm::alignTo(columns, vectorKernels().panelWidth) * depth;
}

namespace {

/// A part of b, as panels.
struct PanelPart {
  const float *from;
  float *to;
  int64_t rows, columns, width, depth, rowStride, columnStride;

  /// Rows that lie in the memory one after another: of some panels at a time,
  /// as what the memory fetches ahead is in a row.
  void packRows() const {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; j += width)
        std::memcpy(to + j * depth + i * width, from + i * rowStride + j,
                    static_cast<size_t>(std::min(width, columns - j)) *
                        sizeof(float));
  }
  /// Packs a b that is transposed: in squares, each of which stays in the cache
  /// until it is read and written.
  void packColumns() const {
    constexpr int64_t side = 16;
    for (int64_t panel = 0; panel < columns; panel += width)
      for (int64_t row = 0; row < rows; row += side)
        for (int64_t j = panel; j < std::min(panel + width, columns); ++j)
          for (int64_t i = row; i < std::min(row + side, rows); ++i)
            to[panel * depth + i * width + j - panel] =
                from[i * rowStride + j * columnStride];
  }
};

} // namespace

void packPanels(const PanelRows &rows, int64_t depth, int64_t columns,
                float *panels) {
  int64_t width = vectorKernels().panelWidth;
  constexpr int64_t panelsAtATime = 8;
  int64_t most = panelsAtATime * width;
  parallelFor(llvm::divideCeil(columns, most), 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t first = begin * most;
                     first < std::min(columns, end * most); first += most) {
                  PanelPart part{rows.from + first * rows.columnStride,
                                 panels + first * depth + rows.first * width,
                                 rows.count,
                                 std::min(most, columns - first),
                                 width,
                                 depth,
                                 rows.rowStride,
                                 rows.columnStride};
                  if (part.columnStride == 1)
                    part.packRows();
                  else
                    part.packColumns();
                }
              });
}

} // namespace ax::rt
