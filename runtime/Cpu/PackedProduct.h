//===- PackedProduct.h - Products with weights in panels --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// c = act(a b + bias) + residual, or act(a b + bias + residual), in f32, with b
// packed: what matrix products and convolutions have in common. b is kept in
// panels of a few columns, each [depth][panel width], so that it streams
// through the cache once for each block of rows, the next panel being fetched
// meanwhile. Rows of a are read as they lie, or packed in tiles of a few, by
// who knows where they are. A few columns would fill no vector: of these b is
// kept column by column, and vectors go along the depth.
//
// A b that changes from call to call may be packed meanwhile: some panels at a
// time, which many rows meet before the next take their place.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PACKEDPRODUCT_H
#define AX_RUNTIME_PACKEDPRODUCT_H

#include "ax/Runtime/VectorKernels.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax::rt {

/// Sizes, strides and offsets are in elements.
struct PackedProductDesc {
  /// Rows lie in lines of as many each, which begin here in c and the residual.
  std::vector<int64_t> cLines{0};
  int64_t rowsPerLine = 0;
  int64_t columns = 0, depth = 0;
  int64_t cStride = 0, cColumnStride = 1;
  int64_t residualRowStride = 0, residualColumnStride = 1;
  Activation activation = Activation::None;
  /// The residual is added before the activation.
  bool activationLast = false;

  /// What a row of a is made of, where rows are not packed; where lines begin
  /// in a, and how far apart their rows are.
  std::vector<TileRun> runs;
  std::vector<int64_t> aLines;
  int64_t aStride = 0;
  /// How far apart a run's elements are: one of this and aStride is 1.
  int64_t aStep = 1;

  /// b is not in panels, but lies like this, and is packed in each call; rows
  /// of a are packed, too.
  bool packsB = false;
  int64_t bRowStride = 0, bColumnStride = 1;
};

/// Elements that a run may have at most, so that a part of the depth has all of
/// it.
constexpr int64_t mostOfRun = 512;

/// Some rows of b: `count` of them, as they lie.
struct PanelRows {
  const float *from;
  int64_t first, count;
  int64_t rowStride, columnStride;
};

class PackedProduct {
public:
  /// As many threads of the caller's take part; one that is in a parallel loop
  /// has itself alone.
  PackedProduct(PackedProductDesc desc, int64_t threads);
  PackedProduct(PackedProduct &&) = default;

  struct Operands {
    /// Not read where rows are packed, which `run` is given `pack` for.
    const float *a;
    /// The panels, and where they end in memory; or b as it lies, and null.
    const float *b, *bEnd;
    /// Null where there is none.
    const float *bias, *residual;
    float *c;
    void *workspace;
  };
  /// Packs rows of a, which are of one line: [depth / packedK][rows][packedK],
  /// the last of these filled as far as there is depth.
  using PackRows =
      llvm::function_ref<void(int64_t first, int64_t rows, float *to)>;

  /// b is in columns of `depth` elements, instead of panels.
  bool isOfFewColumns() const { return isNarrow; }
  /// Elements of panels that have all of b.
  int64_t getPanelElements() const;
  /// Brings `rows` to where they are in panels, which are aligned to 64 bytes.
  /// Where the last panel has no columns it stays as it is: sums of that are
  /// made, and never stored.
  void packPanels(const PanelRows &rows, float *panels) const;

  int64_t getWorkspaceBytes() const { return workspaceBytes; }
  /// `pack` is called by several threads; null where rows are not packed.
  void run(const Operands &operands, PackRows pack) const;

private:
  /// Tiles whose rows are packed together.
  struct Pass {
    int64_t firstTile, lastTile;
    float *packed;
  };
  /// A part of the depth, and the runs that make it.
  struct Depth {
    int64_t begin, end;
    llvm::ArrayRef<TileRun> runs;
  };
  /// What some panels, which lie so far apart, have of a part of the depth.
  struct Part {
    const Depth &depth;
    int64_t firstPanel, lastPanel;
    const float *b;
    int64_t panelStride;
    /// What is needed after them; null where nothing is to be fetched.
    const float *next;
  };
  /// Tiles of a pass for which a panel is streamed once.
  struct Block {
    const Operands &operands;
    const Pass &pass;
    int64_t firstTile, lastTile;
  };
  /// Rows of a line.
  struct Rows {
    int64_t line, first, count;
  };
  void packSome(const PanelRows &rows, int64_t first, int64_t columns,
                float *panels, int64_t depth) const;
  /// Of a; otherwise they are read as they lie.
  bool packsRows() const { return desc.runs.empty(); }
  bool hasFewColumns() const;
  /// Decides what threads have of rows and panels, and what memory it takes.
  void shareWork();
  int64_t rowsOfTiles() const;
  std::vector<Depth> splitDepth() const;
  Rows rowsOf(int64_t tile) const;
  float *packedTile(const Pass &pass, int64_t tile) const;
  void packTiles(const Pass &pass, int64_t threads, PackRows pack) const;
  Part partAt(const Operands &operands, int64_t group, size_t depthIndex,
              float *memory) const;
  void runGroup(const Operands &operands, const Pass &pass, int64_t group,
                float *scratch) const;
  void runPanel(const Block &block, const Part &part, int64_t panel,
                float *partial) const;
  void runTile(const Block &block, int64_t firstDepth, int64_t index,
               PackedTile tile, int64_t firstColumn) const;
  void setResidual(PackedTile &tile, const float *residual) const;
  void finishTile(PackedTile &tile, const float *residual) const;

  const VectorKernels &kernels = vectorKernels();
  PackedProductDesc desc;
  bool isNarrow;
  int64_t tileRows, tilesPerLine, tiles, panels, threads;
  std::vector<Depth> depths;
  void (*kernel)(const PackedTile &tile);
  /// Each thread has blocks of rows, instead of panels.
  bool sharesRows;
  int64_t blocksPerPass = 1, panelsPerGroup = 1, groups;
  /// Passes whose rows are packed at a time.
  int64_t copies;
  /// Of a pass; of a thread, sums and panels.
  int64_t packedElements = 0, partialElements = 0, panelElements = 0;
  int64_t workspaceBytes;
};

} // namespace ax::rt

#endif // AX_RUNTIME_PACKEDPRODUCT_H
