//===- PackedProduct.h - Products with weights in panels --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// c = act(a b + bias) + residual in f32, where b never changes: what matrix
// products and convolutions have in common. b is kept in panels of a few
// columns, each [depth][panel width], so that it streams through the cache once
// for each block of rows, the next panel being fetched meanwhile. a is packed
// too, in tiles of a few rows, by who knows where its rows are.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PACKEDPRODUCT_H
#define AX_RUNTIME_PACKEDPRODUCT_H

#include "ax/Runtime/VectorKernels.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax::rt {

/// Sizes and strides are in elements. Columns of c are next to each other.
struct PackedProductDesc {
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t cStride = 0;
  int64_t residualRowStride = 0, residualColumnStride = 1;
  Activation activation = Activation::None;
  /// The residual is added before the activation.
  bool activationLast = false;
};

class PackedProduct {
public:
  /// The threads are those of the caller's parallel loops.
  explicit PackedProduct(const PackedProductDesc &desc);

  struct Operands {
    /// The panels, and where they end in memory.
    const float *b, *bEnd;
    /// Null where there is none.
    const float *bias, *residual;
    float *c;
    void *workspace;
  };
  /// Packs rows of a: [depth / packedK][rows][packedK], the last of these
  /// filled as far as there is depth.
  using PackRows =
      llvm::function_ref<void(int64_t first, int64_t rows, float *to)>;

  int64_t getWorkspaceBytes() const { return workspaceBytes; }
  /// `pack` is called by several threads.
  void run(const Operands &operands, PackRows pack) const;

private:
  /// Rows for which b is streamed once, and where they are packed.
  struct Block {
    const Operands &operands;
    int64_t firstTile, lastTile;
    float *packed;
  };
  int64_t firstRow(int64_t tile) const;
  float *packedTile(const Block &block, int64_t tile) const;
  void packTile(const Block &block, int64_t tile, PackRows pack) const;
  void runPanel(const Block &block, int64_t panel, float *partial) const;
  void setResidual(PackedTile &tile, const float *residual) const;

  const VectorKernels &kernels = vectorKernels();
  PackedProductDesc desc;
  int64_t tiles, panels, threads;
  /// Each thread has blocks of rows, instead of panels.
  bool sharesRows;
  int64_t packedElements, partialElements, workspaceBytes;
};

/// Elements of panels that have all of b.
int64_t panelElements(int64_t depth, int64_t columns);

/// Some rows of b: `count` of them, as they lie.
struct PanelRows {
  const float *from;
  int64_t first, count;
  int64_t rowStride, columnStride;
};
/// Brings `rows` to where they are in panels of depth x columns elements, which
/// are zero where there are no columns.
void packPanels(const PanelRows &rows, int64_t depth, int64_t columns,
                float *panels);

} // namespace ax::rt

#endif // AX_RUNTIME_PACKEDPRODUCT_H
