//===- BlockKernels.h - Rows of few bits, for each processor ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of integers of eight bits with those of two to eight, whose blocks
// have a scale each. The same source, BlockKernels.inc, is compiled for AVX-512
// VNNI, AVX2 and any processor; `blockKernels()` is the best that this machine
// runs.
//
// Four bytes of a matrix's row are a lane. Of numbers of four bits a lane has
// eight: those of the lower halves of its bytes are multiplied first, then
// those of the upper ones.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_BLOCKKERNELS_H
#define AX_RUNTIME_BLOCKKERNELS_H

#include "ax/Support/Float16.h"

#include <cstdint>
#include <vector>

namespace ax::rt {

/// Bytes of a lane.
constexpr int64_t laneBytes = 4;

/// How rows lie in blocks. Kernels of newer processors call its functions,
/// which others are not to be linked to: they are always inline.
struct BlockShape {
  /// 2, 4 or 8.
  int32_t bits;
  /// Lanes of a block: a power of two.
  int64_t laneCount;
  int64_t blocks;

  /// Groups of four numbers that a lane's bytes hold.
  AX_ALWAYS_INLINE int64_t groups() const { return 8 / bits; }
  AX_ALWAYS_INLINE int64_t lanes() const { return blocks * laneCount; }
  AX_ALWAYS_INLINE int64_t blockLength() const {
    return laneCount * groups() * laneBytes;
  }
  /// Lanes of a row of x, whole vectors of `vectorLanes`, and its bytes.
  AX_ALWAYS_INLINE int64_t paddedLanes(int64_t vectorLanes) const {
    return (lanes() + vectorLanes - 1) / vectorLanes * vectorLanes;
  }
  AX_ALWAYS_INLINE int64_t rowBytes(int64_t vectorLanes) const {
    return paddedLanes(vectorLanes) * groups() * laneBytes;
  }
};

/// Where rows of x go as integers, all dense.
struct QuantizedRows {
  /// [rows][BlockShape::rowBytes]: of few rows the groups of `vectorLanes`
  /// lanes one after another, of more those of each lane. 0 behind the last.
  int8_t *numbers;
  /// [rows][blocks], of few rows [rows][lanes] with as many lanes as numbers
  /// have: not a number where a number of the block is not finite.
  float *scales;
  /// [rows][blocks]: scales times the sums of the numbers.
  float *sums;
};

/// A matrix of few bits.
struct BlockMatrix {
  /// [columns][lanes][laneBytes]: one row is a column of the product's result.
  const uint8_t *bytes;
  /// [columns][blocks]; without `zeros` they are the middle.
  const float *scales;
  const uint8_t *zeros;
};

struct BlockKernels {
  /// Numbers of a vector; columns of a panel.
  int64_t vectorLanes, panelColumns;
  /// Rows of a tile at most, and of few rows.
  int64_t maxTileRows, maxFewRows;
  /// Rounds rows [first, end) of x, [rows][blocks * length].
  void (*quantize)(const BlockShape &shape, const float *x, int64_t first,
                   int64_t end, bool isOfFew, const QuantizedRows &to);
  /// Columns [first, end) of few rows' result, rows `yStride` apart.
  void (*multiplyFew)(const BlockShape &shape, const QuantizedRows &x,
                      int64_t rows, const BlockMatrix &w, int64_t first,
                      int64_t end, float *y, int64_t yStride);
  /// Parts the numbers of columns [first, end), at most a panel, of blocks
  /// [block, block + count): [lanes][groups][panelColumns][laneBytes]; and
  /// scales, and scales times zero points: [blocks][panelColumns].
  void (*part)(const BlockShape &shape, const BlockMatrix &w, int64_t first,
               int64_t end, int64_t block, int64_t count, uint8_t *numbers,
               float *scales, float *zeros);
  /// A tile of `rows` and a panel's first `columns`, of what was parted; added
  /// to y unless the first block is the row's first.
  void (*multiplyPanel)(const BlockShape &shape, const QuantizedRows &x,
                        int64_t row, int64_t rows, int64_t block, int64_t count,
                        const uint8_t *numbers, const float *scales,
                        const float *zeros, int64_t columns, float *y,
                        int64_t yStride);
};

const BlockKernels &blockKernels();

/// All that this machine runs, the best first.
std::vector<const BlockKernels *> runnableBlockKernels();

} // namespace ax::rt

#endif // AX_RUNTIME_BLOCKKERNELS_H
