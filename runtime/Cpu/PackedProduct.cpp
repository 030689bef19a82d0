//===- PackedProduct.cpp - Products with weights in panels ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PackedProduct.h"

#include "Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ax::rt {

/// A part of a panel, and the tiles of a that meet it, stay in the second-level
/// cache.
static constexpr int64_t blockK = mostOfRun;
/// Rows for which b is streamed once, in tiles.
static constexpr int64_t blockTiles = 16;
static constexpr int64_t cacheLine = 64;
/// Blocks of rows that panels are packed for at most, so that packing them
/// hardly counts, and the rows are still in a cache.
static constexpr int64_t mostBlocks = 6;
/// Panels that meet a part of the depth one after another: they take half of
/// the second-level cache. As many are packed at a time, as what the memory
/// fetches ahead is in a row of b.
static constexpr int64_t panelsAtATime = 8;

PackedProduct::PackedProduct(PackedProductDesc descIn, int64_t threads)
    : desc(std::move(descIn)), isNarrow(hasFewColumns()),
      tileRows(rowsOfTiles()),
      tilesPerLine(llvm::divideCeil(desc.rowsPerLine, tileRows)),
      tiles(tilesPerLine * static_cast<int64_t>(desc.cLines.size())),
      panels(llvm::divideCeil(desc.columns, kernels.panelWidth)),
      threads(threads), depths(splitDepth()) {
  kernel = packsRows() ? kernels.packedTile : kernels.directTile;
  if (desc.aStep != 1)
    kernel = kernels.transposedTile;
  if (isNarrow)
    kernel = kernels.narrowTile[desc.columns - 1];
  assert((packsRows() || !desc.packsB) && "b is packed with its rows");
  shareWork();
}

void PackedProduct::shareWork() {
  int64_t blocks = llvm::divideCeil(tiles, blockTiles);
  // Few panels are not enough for the threads. Rows that need no packing are
  // shared without a wait between blocks, too, but leave some threads idle at
  // the end unless there are many.
  constexpr int64_t many = 4;
  bool isMany = !packsRows() && blocks >= many * threads;
  sharesRows = threads > 1 && ((panels < threads && panels < blocks) || isMany);
  // As many groups, or passes, for each thread.
  int64_t ofThread = llvm::divideCeil(panels, threads);
  groups = std::min(panels, threads * static_cast<int64_t>(llvm::divideCeil(
                                          ofThread, panelsAtATime)));
  panelsPerGroup = llvm::divideCeil(panels, groups);
  if (desc.packsB) {
    panelElements =
        panelsPerGroup * kernels.panelWidth * std::min(desc.depth, blockK);
    int64_t passes = llvm::divideCeil(blocks, mostBlocks);
    if (sharesRows)
      passes = std::min<int64_t>(blocks, llvm::alignTo(passes, threads));
    blocksPerPass = llvm::divideCeil(blocks, passes);
  }
  int64_t rows = std::min(tiles, blocksPerPass * blockTiles) * tileRows;
  if (packsRows())
    packedElements = rows * llvm::alignTo(desc.depth, packedK);
  if (depths.size() > 1)
    partialElements = rows * panelsPerGroup * kernels.panelWidth;
  int64_t passes = llvm::divideCeil(tiles, blocksPerPass * blockTiles);
  int64_t busy = std::min(threads, sharesRows ? passes : groups);
  copies = sharesRows ? busy : 1;
  workspaceBytes =
      static_cast<int64_t>(sizeof(float)) *
      (copies * packedElements + busy * (partialElements + panelElements));
}

bool PackedProduct::hasFewColumns() const {
  return !packsRows() && desc.columns <= maxNarrowColumns && desc.aStep == 1 &&
         llvm::all_of(desc.runs, [&](const TileRun &run) {
           return run.length % kernels.narrowUnit == 0;
         });
}

int64_t PackedProduct::rowsOfTiles() const {
  if (isNarrow)
    return kernels.narrowRows[desc.columns - 1];
  return packsRows() ? kernels.maxTileRows : kernels.maxDirectRows;
}

std::vector<PackedProduct::Depth> PackedProduct::splitDepth() const {
  std::vector<Depth> parts;
  llvm::ArrayRef<TileRun> runs = desc.runs;
  // Of one row there are several sums, and nothing is read twice.
  constexpr int64_t ofOneRow = 4 * blockK;
  bool isRow =
      packsRows() && !desc.packsB && tiles == 1 && desc.rowsPerLine == 1;
  int64_t most = isRow ? ofOneRow : blockK;
  for (int64_t begin = 0; begin < desc.depth;) {
    Depth part{begin, std::min(desc.depth, begin + most), {}};
    if (!packsRows()) {
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
  float *scratch = workspace + copies * packedElements;
  int64_t perThread = partialElements + panelElements;
  int64_t perPass = blocksPerPass * blockTiles;
  auto passAt = [&](int64_t p, int64_t range) {
    return Pass{p * perPass, std::min(tiles, (p + 1) * perPass),
                workspace + range * packedElements};
  };
  int64_t passes = llvm::divideCeil(tiles, perPass);
  if (sharesRows)
    return forEachInRanges(passes, threads, [&](int64_t p, int64_t range) {
      Pass pass = passAt(p, range);
      packTiles(pass, 1, pack);
      for (int64_t group = 0; group < groups; ++group)
        runGroup(operands, pass, group, scratch + range * perThread);
    });
  for (int64_t p = 0; p < passes; ++p) {
    Pass pass = passAt(p, 0);
    packTiles(pass, threads, pack);
    forEachInRanges(groups, threads, [&](int64_t group, int64_t range) {
      runGroup(operands, pass, group, scratch + range * perThread);
    });
  }
}

/// Behind the places of the tiles before it in the pass.
float *PackedProduct::packedTile(const Pass &pass, int64_t tile) const {
  return pass.packed + (tile - pass.firstTile) * tileRows *
                           llvm::alignTo(desc.depth, packedK);
}

void PackedProduct::packTiles(const Pass &pass, int64_t threads,
                              PackRows pack) const {
  if (!packsRows())
    return;
  auto packTile = [&](int64_t i, int64_t) {
    int64_t tile = pass.firstTile + i;
    Rows rows = rowsOf(tile);
    pack(rows.line * desc.rowsPerLine + rows.first, rows.count,
         packedTile(pass, tile));
  };
  int64_t count = pass.lastTile - pass.firstTile;
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

/// A part of the depth at a time, so that what rows have of it is in the
/// second-level cache when the next panel meets them.
void PackedProduct::runGroup(const Operands &operands, const Pass &pass,
                             int64_t group, float *scratch) const {
  for (size_t d = 0; d < depths.size(); ++d) {
    Part part = partAt(operands, group, d, scratch + partialElements);
    for (int64_t tile = pass.firstTile; tile < pass.lastTile;
         tile += blockTiles) {
      Block block{operands, pass, tile,
                  std::min(pass.lastTile, tile + blockTiles)};
      for (int64_t panel = part.firstPanel; panel < part.lastPanel; ++panel)
        runPanel(block, part, panel, scratch);
    }
  }
}

/// Panels that are packed now go to `memory`.
PackedProduct::Part PackedProduct::partAt(const Operands &operands,
                                          int64_t group, size_t depthIndex,
                                          float *memory) const {
  int64_t width = kernels.panelWidth;
  const Depth &part = depths[depthIndex];
  int64_t length = part.end - part.begin;
  int64_t first = panels * group / groups, last = panels * (group + 1) / groups;
  if (desc.packsB) {
    int64_t columns = std::min(last * width, desc.columns) - first * width;
    // Sums are made of columns that there are not, too, and never stored.
    if (columns < (last - first) * width)
      std::fill_n(memory + (last - first - 1) * length * width, length * width,
                  0.0f);
    packSome({operands.b + part.begin * desc.bRowStride, 0, length,
              desc.bRowStride, desc.bColumnStride},
             first * width, columns, memory, length);
    return {part, first, last, memory, length * width, nullptr};
  }
  const float *ofGroup = operands.b + first * width * desc.depth;
  if (isNarrow)
    return {part, first, last, ofGroup + part.begin, 0, nullptr};
  const float *next = depthIndex + 1 < depths.size()
                          ? ofGroup + part.end * width
                          : operands.b + last * width * desc.depth;
  return {part, first, last, ofGroup + part.begin * width, desc.depth * width,
          next};
}

void PackedProduct::runPanel(const Block &block, const Part &part,
                             int64_t panel, float *partial) const {
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
  tile.k = part.depth.end - part.depth.begin;
  tile.b = part.b + (panel - part.firstPanel) * part.panelStride;
  tile.runs = part.depth.runs.data();
  tile.numRuns = static_cast<int64_t>(part.depth.runs.size());
  // A share for each tile. What has just been packed is in the cache.
  int64_t tiles = block.lastTile - block.firstTile, lines = 0;
  if (part.next) {
    const float *next =
        panel + 1 < part.lastPanel ? tile.b + part.panelStride : part.next;
    tile.prefetch = reinterpret_cast<const char *>(next);
    lines =
        std::min<int64_t>(operands.bEnd - next, tile.k * kernels.panelWidth) *
        static_cast<int64_t>(sizeof(float)) / cacheLine;
  }
  int64_t share = llvm::divideCeil(lines, tiles);
  // Sums of parts lie by blocks, then by panels.
  float *sums = partial + (block.firstTile - block.pass.firstTile) *
                              panelsPerGroup * tileRows * kernels.panelWidth;
  sums += (panel - part.firstPanel) * tiles * tileRows * kernels.panelWidth;
  for (int64_t t = block.firstTile; t < block.lastTile; ++t) {
    tile.prefetchLines = std::clamp<int64_t>(lines, 0, share);
    tile.partialIn = part.depth.begin == 0 ? nullptr : sums;
    tile.partialOut = part.depth.end == desc.depth ? nullptr : sums;
    runTile(block, part.depth.begin, t, tile, firstColumn);
    tile.prefetch += share * cacheLine;
    lines -= share;
    sums += tileRows * kernels.panelWidth;
  }
}

/// `tile` has what all tiles of the panel have in common, and what to fetch.
void PackedProduct::runTile(const Block &block, int64_t firstDepth,
                            int64_t index, PackedTile tile,
                            int64_t firstColumn) const {
  const Operands &operands = block.operands;
  Rows rows = rowsOf(index);
  tile.rows = static_cast<int32_t>(rows.count);
  auto line = static_cast<size_t>(rows.line);
  if (packsRows())
    tile.a = packedTile(block.pass, index) + firstDepth * rows.count;
  else
    tile.a = operands.a + desc.aLines[line] + rows.first * desc.aStride;
  if (tile.partialOut)
    return kernel(tile);
  tile.c = operands.c + desc.cLines[line] + rows.first * desc.cStride +
           firstColumn * desc.cColumnStride;
  const float *residual = nullptr;
  if (operands.residual)
    residual = operands.residual + desc.cLines[line] +
               rows.first * desc.residualRowStride +
               firstColumn * desc.residualColumnStride;
  finishTile(tile, residual);
}

/// The kernels write rows, too: columns that are apart come from a tile beside,
/// once all of the depth is done.
void PackedProduct::finishTile(PackedTile &tile, const float *residual) const {
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
    // What lies further apart than a page it does not fetch.
    constexpr int64_t ahead = 8;
    for (int64_t i = 0; i < rows; ++i) {
      const float *row = from + i * rowStride;
      if (i + ahead < rows)
        for (int64_t j = 0; j < columns; j += cacheLine / sizeof(float))
          __builtin_prefetch(row + ahead * rowStride + j);
      float *panel = to + i * width;
      int64_t j = 0;
      for (; j + width <= columns; j += width, panel += width * depth)
        copyVectors(row + j, panel);
      if (j < columns)
        std::memcpy(panel, row + j,
                    static_cast<size_t>(columns - j) * sizeof(float));
    }
  }
  /// Packs a b that is transposed: in squares, each of which stays in the cache
  /// until it is read and written.
  void packColumns() const {
    constexpr int64_t side = 16;
    for (int64_t panel = 0; panel < columns; panel += width) {
      if (rowStride == 1 && panel + width <= columns) {
        vectorKernels().transpose(from + panel * columnStride, columnStride,
                                  to + panel * depth, width, rows);
        continue;
      }
      for (int64_t row = 0; row < rows; row += side)
        for (int64_t j = panel; j < std::min(panel + width, columns); ++j)
          for (int64_t i = row; i < std::min(row + side, rows); ++i)
            to[panel * depth + i * width + j - panel] =
                from[i * rowStride + j * columnStride];
    }
  }

private:
  /// Of a whole panel's width: a constant is copied by registers.
  void copyVectors(const float *row, float *panel) const {
    constexpr size_t bytes = 64;
    for (int64_t j = 0; j < width; j += bytes / sizeof(float))
      std::memcpy(panel + j, row + j, bytes);
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
  int64_t width = kernels.panelWidth, most = panelsAtATime * width;
  parallelFor(llvm::divideCeil(columns, most), 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t first = begin * most;
                     first < std::min(columns, end * most); first += most)
                  packSome(rows, first, std::min(most, columns - first),
                           panels + first * depth, depth);
              });
}

/// Panels, of as many rows as `depth`, of some columns from `first` on, which
/// is a panel's first.
void PackedProduct::packSome(const PanelRows &rows, int64_t first,
                             int64_t columns, float *panels,
                             int64_t depth) const {
  int64_t width = kernels.panelWidth;
  PanelPart part{rows.from + first * rows.columnStride,
                 panels + rows.first * width,
                 rows.count,
                 columns,
                 width,
                 depth,
                 rows.rowStride,
                 rows.columnStride};
  if (part.columnStride == 1)
    part.packRows();
  else
    part.packColumns();
}

} // namespace ax::rt
