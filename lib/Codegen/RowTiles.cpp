//===- RowTiles.cpp - Rows in tiles of one group each ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group's rows, in their order, fill tiles of their own, the first group's
// first; only the last tile of each has places left. How many rows a group has
// is known when it runs, but not more than rows / height + groups tiles are
// needed. What follows are sums of rows and comparisons, which kernels do.
//
// Example: rows of groups 1, 0, 1, 1 in tiles of 2. Before each row there are
// 0, 0, 1, 2 of its group. The groups have 1 and 3 rows, so 1 and 2 tiles,
// which end at 1 and 3: group 1 starts at place 2. The rows are at 2, 0, 3, 4,
// and what lies at 0, 1, 2, ... is 1, none, 0, 2, 3, none.
//
//===----------------------------------------------------------------------===//
#include "RowTiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ax::codegen {

std::optional<TileSizes> TileSizes::choose(int64_t rows, int64_t groups) {
  // A matrix that is copied for a tile is read and written once more than one
  // that is multiplied with: on cards that do 700 TFLOP/s of bf16 and move 4 TB
  // a second, in the time of about as many rows.
  constexpr int64_t rowsOfCopy = 512;
  std::optional<TileSizes> best;
  int64_t least = rows * groups;
  for (int64_t height : {64, 128, 256, 512, 1024}) {
    int64_t tiles = rows / height + std::min(groups, rows);
    int64_t cost = tiles * (height + rowsOfCopy);
    if (cost >= least)
      continue;
    least = cost;
    best = TileSizes{tiles, height};
  }
  return best;
}

/// Numbers of rows before each of them that are of the same group: of `groups`,
/// [blocks, size], within its block, and by block and group in those before it.
static std::pair<Value, Value> countBefore(TensorBuilder &t, Value groups,
                                           Value members) {
  Type type = t.b.getI64Type();
  int64_t blocks = shapeOf(groups)[0], size = shapeOf(groups)[1];
  Value isSame =
      t.compare(CompareKind::eq, t.reshape(groups, {blocks, size, 1}),
                t.reshape(groups, {blocks, 1, size}));
  Value isEarlier = t.compare(CompareKind::lt, t.indexAlong(2, size, 3),
                              t.indexAlong(1, size, 3));
  Value within = t.sum(t.select(isEarlier, t.indicator(isSame, type), 0), {2},
                       /*keepDims=*/false);
  int64_t count = shapeOf(members)[2];
  Value ofBlocks = t.reshape(t.sum(members, {1}), {1, blocks, count});
  Value isBefore = t.compare(CompareKind::lt, t.indexAlong(1, blocks, 3),
                             t.indexAlong(0, blocks, 3));
  return {within, t.sum(t.select(isBefore, ofBlocks, 0), {1},
                        /*keepDims=*/false)};
}

RowTiles::RowTiles(TensorBuilder &t, Value groupOfRow, int64_t groups,
                   TileSizes sizes)
    : t(t), sizes(sizes) {
  // Each row is compared with all others of its block.
  constexpr int64_t mostOfBlock = 256;
  Type type = t.b.getI64Type();
  int64_t rows = tensorType(groupOfRow).getNumElements();
  int64_t size = std::min(rows, mostOfBlock);
  int64_t blocks = llvm::divideCeilSigned(rows, size);
  Value padded = t.cast(groupOfRow, type);
  // What fills the last block is of group -1.
  if (int64_t missing = blocks * size - rows)
    padded = t.add(t.pad(t.add(padded, 1), {0}, {missing}), -1);
  padded = t.reshape(padded, {blocks, size});
  Value members = t.indicator(t.compare(CompareKind::eq,
                                        t.reshape(padded, {blocks, size, 1}),
                                        t.indexAlong(2, groups, 3)),
                              type);
  auto [within, before] = countBefore(t, padded, members);
  // Where the tiles of each group end.
  Value ofGroups = t.sum(members, {0, 1}, /*keepDims=*/false);
  Value tiles = t.div(t.add(ofGroups, static_cast<double>(sizes.height - 1)),
                      t.number(ofGroups, static_cast<double>(sizes.height)));
  tiles = t.reshape(tiles, {1, groups});
  Value isUpTo = t.compare(CompareKind::le, t.indexAlong(1, groups, 2),
                           t.indexAlong(0, groups, 2));
  Value ends = t.reshape(t.sum(t.select(isUpTo, tiles, 0), {1}), {1, groups});
  Value start = t.add(
      before, t.mul(t.sub(ends, tiles), static_cast<double>(sizes.height)));
  Value places = t.add(
      within, t.sum(t.mul(members, t.reshape(start, {blocks, 1, groups})), {2},
                    /*keepDims=*/false));
  placeOfRow = t.slice(t.reshape(places, {blocks * size}), 0, 0, rows);
  rowOfPlace = ScatterNDOp::create(
      t.b, ScatterKind::set, t.splat({sizes.tiles * sizes.height}, type, -1),
      t.reshape(placeOfRow, {rows, 1}), t.indexAlong(0, rows, 1));
  Value passed = t.sum(t.indicator(t.compare(CompareKind::le, ends,
                                             t.indexAlong(0, sizes.tiles, 2)),
                                   type),
                       {1}, /*keepDims=*/false);
  // Those that no group needs are of the last.
  groupOfTile = t.binary(BinaryKind::min, passed,
                         t.number(passed, static_cast<double>(groups - 1)));
}

Value RowTiles::toTiles(Value rows) const {
  Value first = t.number(rowOfPlace, 0);
  Value row = t.binary(BinaryKind::max, rowOfPlace, first);
  Value isTaken = t.reshape(t.compare(CompareKind::ge, rowOfPlace, first),
                            {sizes.tiles * sizes.height, 1});
  Value places = t.select(isTaken, GatherOp::create(t.b, rows, row, 0), 0);
  return t.reshape(places, {sizes.tiles, sizes.height, shapeOf(rows)[1]});
}

Value RowTiles::toRows(Value tiles) const {
  Value places =
      t.reshape(tiles, {sizes.tiles * sizes.height, shapeOf(tiles)[2]});
  return GatherOp::create(t.b, places, placeOfRow, 0);
}

} // namespace ax::codegen
