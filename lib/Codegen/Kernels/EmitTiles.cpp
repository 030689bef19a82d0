//===- EmitTiles.cpp - Operands that lie otherwise than results -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighbouring threads are to read neighbours, and to write them. Where an
// operand lies along another dimension than the results, no order of elements
// has both. So a block does a *tile*, some points of either dimension: it reads
// that part of the operand along the operand's dimension into shared memory,
// and then writes results along theirs.
//
// E.g. b = transpose a, of 64 by 96 f32, in tiles of 32 by 32: that of b's rows
// 64 .. 95 and columns 0 .. 31 is a[0 .. 31][64 .. 95]. A warp reads a row of
// it at a time, 128 bytes one after another, and writes a row of b's likewise.
// In shared memory rows are 33 elements apart, so that those of a column lie in
// different banks. Narrow elements are moved as words, and of those tiles may
// be 64 by 64: a thread that moved bytes would have too few on their way. Where
// sizes do not divide so, a side is half as much, or a quarter.
//
// A result that is another one transposed is stored along with that, by way of
// a tile, too: a = f(x) and b = transpose a read x once. A block's threads have
// each element of a part of a's rows, and when they have put them into shared
// memory, write them along b's.
//
//===----------------------------------------------------------------------===//

#include "ElementOps.h"
#include "Emitter.h"
#include "ThreadGroups.h"

#include <algorithm>
#include <numeric>

using namespace mlir;

namespace ax::codegen {

static constexpr int64_t wordBytes = 4, usualSide = 32;

/// Elements of an operand at neighbouring columns are so far apart, if those at
/// neighbouring rows are next to each other; else 0. What is known only for an
/// element is not known to who reads a tile, and lanes have to be columns:
/// those of a dimension that the operand lacks are none. And all elements of a
/// tile are read: where lanes are padding in part, those would not be there.
int64_t Emitter::columnStep(const IndexExpr &offset, RankedTensorType tensor,
                            int row, int column) const {
  int ofRow = outer.vars[row], ofColumn = outer.vars[column];
  int64_t lanes = nests.outer.numLanes();
  if (nestDepth != 1 || choiceDepth > 0 || ofRow < 0 || ofColumn < 0 ||
      !nests.outer.areLanesOf(column) || offset.coefficient(ofRow) != 1 ||
      !space.dependsOnlyOn(offset, outer))
    return 0;
  int64_t step = offset.coefficient(ofColumn);
  if (step <= lanes || step % lanes != 0)
    return 0;
  step /= lanes;
  auto [first, last] = space.range(offset);
  bool isThere =
      first >= outer.lane * step &&
      last + (lanes - 1 - outer.lane) * step < tensor.getNumElements();
  return isThere ? step : 0;
}

/// Looks for a loop along which the operand lies, if that is not the last one.
void Emitter::noteTile(const IndexExpr &offset, RankedTensorType tensor) {
  // Of fewer points, a side is no more than what memory reads at a time.
  constexpr int64_t leastPoints = 16;
  Type type = tensor.getElementType();
  int64_t mostPoints =
      storageBytes(type) < wordBytes ? 2 * usualSide : usualSide;
  const LoopPlan &plan = nests.outer;
  if (nests.dealing == Dealing::Pieces || plan.tile())
    return;
  if (tileWish) {
    if (outer.lane == 0 &&
        columnStep(offset, tensor, tileWish->row, tileWish->column) != 0)
      tileWish->bytes += storageBytes(type);
    return;
  }
  auto groups = plan.groups();
  if (groups.empty())
    return;
  int column = groups.pop_back_val().second - 1;
  for (auto [first, last] : groups) {
    int row = last - 1;
    if (columnStep(offset, tensor, row, column) == 0)
      continue;
    int64_t side = std::gcd(std::gcd(mostPoints, plan.atoms[row].size),
                            plan.atoms[column].size * plan.numLanes());
    if (side >= leastPoints)
      tileWish = {row, column, side, storageBytes(type)};
  }
}

bool Emitter::makeTile() {
  constexpr int64_t mostThreads = 256;
  LoopPlan &plan = nests.outer;
  if (!tileWish || !areElements())
    return false;
  // Larger ones leave memory for few blocks, or work for few.
  constexpr int64_t mostBytes = 12 << 10, enoughTiles = 1024;
  int64_t side = tileWish->side;
  if (side > usualSide && (side * side * tileWish->bytes > mostBytes ||
                           plan.numPoints() < enoughTiles * side * side))
    side /= 2;
  if (!plan.makeTile(tileWish->row, tileWish->column, side))
    return false;
  nests.group.threads =
      std::clamp(plan.numTilePoints(), warpThreads, mostThreads);
  return true;
}

/// The elements of a tile, behind what is read for it, and before what is
/// written of it.
void Emitter::emitTile(function_ref<void()> body) {
  int row, column;
  std::tie(row, column) = *nests.outer.tile();
  tilePlace = writer.openPlace();
  writer.dealtLoop(
      nests.outer.numTilePoints(), /*together=*/1, [&](ValueRange points) {
        Value width = writer.number(nests.outer.atoms[column].size);
        space.bindGroup(outer, row, writer.divIndex(points.front(), width));
        space.bindGroup(outer, column, writer.remIndex(points.front(), width));
        body();
      });
  if (!tiles.empty())
    writer.at(tilePlace, [&] { writer.meet(); });
  writer.closePlace(tilePlace);
  writeTiles();
}

Value Emitter::pullArgument(unsigned number, RankedTensorType tensor,
                            const IndexExpr &offset) {
  noteTile(offset, tensor);
  Type type = tensor.getElementType();
  auto tile = nests.outer.tile();
  int64_t step =
      tile ? columnStep(offset, tensor, tile->first, tile->second) : 0;
  return step != 0 ? loadFromTile(number, offset, step, type)
                   : loadElement(writer.tensor(number), offset, type);
}

/// The offset of the tile's first element: without its points, and without the
/// lane.
IndexExpr Emitter::tileOffset(IndexExpr offset, int64_t step) const {
  auto [row, column] = *nests.outer.tile();
  int ofRow = outer.vars[row], ofColumn = outer.vars[column];
  offset.constant -= outer.lane * step;
  llvm::erase_if(offset.terms, [&](const IndexExpr::Term &term) {
    return term.var == ofRow || term.var == ofColumn;
  });
  return offset;
}

static int64_t elementsOfWord(Type type) {
  return std::max<int64_t>(wordBytes / storageBytes(type), 1);
}

/// Elements from one column of a tile to the next in shared memory: an odd
/// number of words.
static int64_t pitchOf(int64_t side, Type type) {
  return side + elementsOfWord(type);
}

/// Where the thread's own element is in a tile.
IndexExpr Emitter::placeInTile(Type type) const {
  auto [row, column] = *nests.outer.tile();
  int64_t pitch = pitchOf(nests.outer.atoms[row].size, type);
  return space.atom(outer, row) +
         space.atom(outer, column) * (nests.outer.numLanes() * pitch) +
         IndexExpr(outer.lane * pitch);
}

/// Copies all elements of a tile, which is element `first` and what follows of
/// a tensor, to shared memory or back, neighbours along rows by neighbouring
/// threads: as words, if the tensor's are whole. Loads of several points need
/// not wait for each other.
void Emitter::copyTile(const Square &from, const Square &to,
                       const IndexExpr &first, Type type) {
  int64_t side = nests.outer.atoms[nests.outer.tile()->first].size;
  int64_t each = elementsOfWord(type);
  auto isWhole = [&](int64_t number) { return number % each == 0; };
  if (!isWhole(side) || !isWhole(from.step) || !isWhole(to.step) ||
      !isWhole(first.constant) ||
      !llvm::all_of(first.terms, [&](const IndexExpr::Term &term) {
        return isWhole(term.coef);
      }))
    each = 1;
  Type moved = each > 1 ? IntegerType::get(type.getContext(), 32) : type;
  int64_t width = side / each, count = side * width;
  constexpr int64_t most = 4;
  int64_t together = std::clamp<int64_t>(count / nests.group.threads, 1, most);
  writer.dealtLoop(count, together, [&](ValueRange points) {
    Values loaded, places;
    for (Value point : points) {
      Value row = writer.remIndex(point, writer.number(width));
      Value column = writer.divIndex(point, writer.number(width));
      auto at = [&](const Square &square) {
        return writer.addIndex(
            writer.mulIndex(column, writer.number(square.step / each)), row);
      };
      loaded.push_back(writer.load(from.base, at(from), moved));
      places.push_back(at(to));
    }
    for (auto [value, place] : llvm::zip_equal(loaded, places))
      writer.store(value, to.base, place, moved);
  });
}

/// Whoever asks for it first has it read.
Value Emitter::loadFromTile(unsigned number, const IndexExpr &offset,
                            int64_t step, Type type) {
  int row = nests.outer.tile()->first;
  int64_t side = nests.outer.atoms[row].size, pitch = pitchOf(side, type);
  IndexExpr first = tileOffset(offset, step);
  auto [it, isNew] = tiles.try_emplace({number, first});
  Value &tile = it->second;
  if (isNew)
    writer.at(tilePlace, [&] {
      tile = allocateScratch(side * pitch, type);
      Value from =
          writer.address(writer.tensor(number), space.materialize(first), type);
      copyTile({from, step}, {tile, pitch}, first, type);
    });
  return writer.load(tile, space.materialize(placeInTile(type)), type);
}

/// Stores the element of the operand at `indices` in result `number`.
void Emitter::storeTransposed(Value value, unsigned number,
                              TransposeOp transpose,
                              ArrayRef<IndexExpr> indices) {
  RankedTensorType type = tensorType(transpose.getResult());
  Indices moved;
  for (int64_t from : transpose.getPermutation())
    moved.push_back(indices[from]);
  IndexExpr offset = space.linearize(moved, type.getShape());
  Type element = type.getElementType();
  noteTile(offset, type);
  auto sides = nests.outer.tile();
  int64_t step =
      sides ? columnStep(offset, type, sides->first, sides->second) : 0;
  if (step == 0) {
    storeElement(value, writer.tensor(numOperands + number), offset, element);
    return;
  }
  auto [it, isNew] =
      writtenTiles.try_emplace({number, tileOffset(offset, step)});
  WrittenTile &written = it->second;
  if (isNew)
    writer.at(tilePlace, [&] {
      int64_t side = nests.outer.atoms[sides->first].size;
      written = {allocateScratch(side * pitchOf(side, element), element), step,
                 element};
    });
  storeElement(value, written.tile, placeInTile(element), element);
}

/// What the block's threads have put together.
void Emitter::writeTiles() {
  if (writtenTiles.empty())
    return;
  writer.meet();
  int64_t side = nests.outer.atoms[nests.outer.tile()->first].size;
  for (const auto &[where, written] : writtenTiles) {
    const auto &[number, first] = where;
    Value to = writer.address(writer.tensor(numOperands + number),
                              space.materialize(first), written.type);
    copyTile({written.tile, pitchOf(side, written.type)}, {to, written.step},
             first, written.type);
  }
}

} // namespace ax::codegen
