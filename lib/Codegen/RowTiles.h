//===- RowTiles.h - Rows in tiles of one group each -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_ROWTILES_H
#define AX_LIB_CODEGEN_ROWTILES_H

#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {

/// So many tiles of so many rows hold rows of some groups, however these are
/// dealt out, none of which shares a tile with another.
struct TileSizes {
  int64_t tiles = 0, height = 0;

  /// The best for products of each tile with its group's matrix; none where
  /// products of all rows with all matrices take less time.
  static std::optional<TileSizes> choose(int64_t rows, int64_t groups);
};

/// Where rows are in tiles. Rows of a tile that none of them takes are zero.
class RowTiles {
public:
  /// `groupOfRow`: [rows], below `groups`.
  RowTiles(TensorBuilder &t, mlir::Value groupOfRow, int64_t groups,
           TileSizes sizes);

  /// [rows, n] as [tiles, height, n], and back.
  mlir::Value toTiles(mlir::Value rows) const;
  mlir::Value toRows(mlir::Value tiles) const;
  /// [tiles]
  mlir::Value getGroups() const { return groupOfTile; }

private:
  TensorBuilder &t;
  TileSizes sizes;
  /// Of each row, its place among those of all tiles; of each of these, the
  /// row, or -1; and the group of each tile. All are i64.
  mlir::Value placeOfRow, rowOfPlace, groupOfTile;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_ROWTILES_H
