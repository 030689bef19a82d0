//===- PackedProduct.cpp - Products with weights in panels ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PackedProduct.h"

#include "Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

/// A part of a panel, and the tiles of a that meet it, stay in the second-level
/// cache.
static constexpr int64_t blockK = mostOfRun;
/// Rows for which b is streamed once, in tiles.
static constexpr int64_t blockTiles = 16;
static constexpr int64_t cacheLine = 64;

PackedProduct::PackedProduct(PackedProductDesc descIn, int64_t threads)
    : desc(std::move(descIn)), isNarrow(hasFewColumns()),
      tileRows(rowsOfTiles()),
      tilesPerLine(llvm::divideCeil(desc.rowsPerLine, tileRows)),
      tiles(tilesPerLine * static_cast<int64_t>(desc.cLines.size())),
      panels(llvm::divideCeil(desc.columns, kernels.panelWidth)),
      threads(threads), depths(splitDepth()) {
  kernel = isPacked() ? kernels.packedTile : kernels.directTile;
  if (desc.aStep != 1)
    kernel = kernels.transposedTile;
  if (isNarrow)
    kernel = kernels.narrowTile[desc.columns - 1];
  int64_t blocks = llvm::divideCeil(tiles, blockTiles);
  // Few panels are not enough for the threads. Rows that need no packing are
  // shared without a wait between blocks, too, but leave some threads idle at
  // the end unless there are many.
  constexpr int64_t many = 4;
  bool isMany = !isPacked() && blocks >= many * threads;
  sharesRows = threads > 1 && (panels < threads || isMany);
  int64_t rows = std::min(tiles, blockTiles) * tileRows;
  packedElements = isPacked() ? rows * llvm::alignTo(desc.depth, packedK) : 0;
  partialElements = depths.size() > 1 ? rows * kernels.panelWidth : 0;
  workspaceBytes =
      static_cast<int64_t>(sizeof(float)) *
      ((sharesRows ? threads : 1) * packedElements + threads * partialElements);
}

bool PackedProduct::hasFewColumns() const {
  return !isPacked() && desc.columns <= maxNarrowColumns && desc.aStep == 1 &&
         llvm::all_of(desc.runs, [&](const TileRun &run) {
           return run.length % kernels.narrowUnit == 0;
         });
}

int64_t PackedProduct::rowsOfTiles() const {
  if (isNarrow)
    return kernels.narrowRows[desc.columns - 1];
  return isPacked() ? kernels.maxTileRows : kernels.maxDirectRows;
}

std::vector<PackedProduct::Depth> PackedProduct::splitDepth() const {
  std::vector<Depth> parts;
  llvm::ArrayRef<TileRun> runs = desc.runs;
  for (int64_t begin = 0; begin < desc.depth;) {
    Depth part{begin, std::min(desc.depth, begin + blockK), {}};
    if (!isPacked()) {
      size_t count = 0;
      int64_t length = 0;
      while (count < runs.size() && length + runs[count].length <= blockK)
        length += runs[count++].length;
      part.end = begin + length;
      part.runs = runs.take_front(count);
      runs = runs.drop_front(count);
    }
    parts.push_back(part);
    begin = part.end;
  }
  return parts;
}

/// Tiles of a line are of (nearly) equal size.
PackedProduct::Rows PackedProduct::rowsOf(int64_t tile) const {
  int64_t ofLine = tile % tilesPerLine;
  int64_t first = desc.rowsPerLine * ofLine / tilesPerLine;
  int64_t last = desc.rowsPerLine * (ofLine + 1) / tilesPerLine;
  return {tile / tilesPerLine, first, last - first};
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
    return Block{operands, b * blockTiles,
                 std::min(tiles, (b + 1) * blockTiles),
                 workspace + range * packedElements};
  };
  int64_t blocks = llvm::divideCeil(tiles, blockTiles);
  if (sharesRows)
    return forEachInRanges(blocks, threads, [&](int64_t b, int64_t range) {
      Block block = blockAt(b, range);
      packTiles(block, 1, pack);
      for (int64_t panel = 0; panel < panels; ++panel)
        runPanel(block, panel, partials + range * partialElements);
    });
  for (int64_t b = 0; b < blocks; ++b) {
    Block block = blockAt(b, 0);
    packTiles(block, threads, pack);
    forEachInRanges(panels, threads, [&](int64_t panel, int64_t range) {
      runPanel(block, panel, partials + range * partialElements);
    });
  }
}

/// Behind the places of the tiles before it in the block.
float *PackedProduct::packedTile(const Block &block, int64_t tile) const {
  return block.packed + (tile - block.firstTile) * tileRows *
                            llvm::alignTo(desc.depth, packedK);
}

void PackedProduct::packTiles(const Block &block, int64_t threads,
                              PackRows pack) const {
  if (!isPacked())
    return;
  auto packTile = [&](int64_t i, int64_t) {
    int64_t tile = block.firstTile + i;
    Rows rows = rowsOf(tile);
    pack(rows.line * desc.rowsPerLine + rows.first, rows.count,
         packedTile(block, tile));
  };
  int64_t count = block.lastTile - block.firstTile;
  if (threads > 1)
    return forEachInRanges(count, threads, packTile);
  for (int64_t i = 0; i < count; ++i)
    packTile(i, 0);
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
  PackedTile tile = {};
  tile.columns = static_cast<int32_t>(
      std::min<int64_t>(kernels.panelWidth, desc.columns - firstColumn));
  tile.cStride = desc.cStride;
  tile.aStride = desc.aStep == 1 ? desc.aStride : desc.aStep;
  tile.bStride = desc.depth;
  tile.activation = desc.activation;
  tile.activationLast = desc.activationLast;
  tile.bias = operands.bias ? operands.bias + firstColumn : nullptr;
  for (const Depth &part : depths) {
    tile.k = part.end - part.begin;
    tile.b = operands.b + firstColumn * desc.depth +
             part.begin * (isNarrow ? 1 : kernels.panelWidth);
    tile.runs = part.runs.data();
    tile.numRuns = static_cast<int64_t>(part.runs.size());
    runTiles(block, part, tile, firstColumn, partial);
  }
}

/// `tile` has what all tiles of the block have in common.
void PackedProduct::runTiles(const Block &block, const Depth &part,
                             PackedTile tile, int64_t firstColumn,
                             float *partial) const {
  const Operands &operands = block.operands;
  bool isFirst = part.begin == 0, isLast = part.end == desc.depth;
  // What follows this part in memory is what is needed next: a share for each
  // tile.
  const float *following =
      isNarrow ? operands.bEnd : tile.b + tile.k * kernels.panelWidth;
  int64_t ahead = std::min<int64_t>(operands.bEnd - following,
                                    tile.k * kernels.panelWidth) *
                  static_cast<int64_t>(sizeof(float)) / cacheLine;
  int64_t share = llvm::divideCeil(ahead, block.lastTile - block.firstTile);
  for (int64_t t = block.firstTile; t < block.lastTile; ++t) {
    int64_t index = t - block.firstTile;
    Rows rows = rowsOf(t);
    tile.rows = static_cast<int32_t>(rows.count);
    auto line = static_cast<size_t>(rows.line);
    if (isPacked())
      tile.a = packedTile(block, t) + part.begin * rows.count;
    else
      tile.a = operands.a + desc.aLines[line] + rows.first * desc.aStride;
    float *sums = partial + index * tileRows * kernels.panelWidth;
    tile.partialIn = isFirst ? nullptr : sums;
    tile.partialOut = isLast ? nullptr : sums;
    tile.c = operands.c + desc.cLines[line] + rows.first * desc.cStride +
             firstColumn * desc.cColumnStride;
    const float *residual = nullptr;
    if (operands.residual)
      residual = operands.residual + desc.cLines[line] +
                 rows.first * desc.residualRowStride +
                 firstColumn * desc.residualColumnStride;
    tile.prefetch =
        reinterpret_cast<const char *>(following) + index * share * cacheLine;
    tile.prefetchLines = std::clamp<int64_t>(ahead - index * share, 0, share);
    runTile(tile, residual);
  }
}

/// The kernels write rows, too: columns that are apart come from a tile beside,
/// once all of the depth is done.
void PackedProduct::runTile(PackedTile &tile, const float *residual) const {
  if (tile.partialOut)
    return kernel(tile);
  float *c = tile.c;
  alignas(cacheLine) float beside[maxTileElements];
  if (desc.cColumnStride != 1) {
    tile.c = beside;
    tile.cStride = kernels.panelWidth;
  }
  if (residual)
    setResidual(tile, residual);
  kernel(tile);
  if (desc.cColumnStride == 1)
    return;
  for (int64_t j = 0; j < tile.columns; ++j)
    for (int64_t r = 0; r < tile.rows; ++r)
      c[r * desc.cStride + j * desc.cColumnStride] =
          beside[r * kernels.panelWidth + j];
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

int64_t PackedProduct::getPanelElements() const {
  int64_t columns =
      isNarrow ? desc.columns : llvm::alignTo(desc.columns, kernels.panelWidth);
  // Panels that follow are read in whole vectors.
  return llvm::alignTo(columns * desc.depth, kernels.panelWidth);
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

void PackedProduct::packPanels(const PanelRows &rows, float *panels) const {
  int64_t depth = desc.depth, columns = desc.columns;
  if (isNarrow) {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows.count; ++i)
        panels[j * depth + rows.first + i] =
            rows.from[i * rows.rowStride + j * rows.columnStride];
    return;
  }
  int64_t width = kernels.panelWidth;
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
