//===- LoopPlan.h - The loops of one nest -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_LOOPPLAN_H
#define AX_CODEGEN_KERNELS_LOOPPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <utility>

namespace ax::codegen {

/// The atoms of one nest. They, and not the counters of its loops, are the
/// variables of expressions, since an atom may be finer than a loop.
struct LoopPlan {
  struct Atom {
    int64_t size;
    /// Where the range is cut, sorted; the loop is emitted once for each piece
    /// between them.
    llvm::SmallVector<int64_t, 2> cuts;
    /// Whether it is not one loop with the atom before.
    bool separate = false;
    /// No loop at all: its points are written one after another, so that
    /// accesses that lie next to each other stand so, too. All atoms behind it
    /// are lanes, too.
    bool isLane = false;
    /// Lanes that were the inner points of the atom before.
    bool isSplitOff = false;
    /// One of the two of a tile (`makeTile`).
    bool isTile = false;
  };
  llvm::SmallVector<Atom, 4> atoms;
  /// Lanes of a single loop whose size they need not divide. Where they begin
  /// is another point in each iteration: the first one that lies at a multiple
  /// of their number, if point 0 lies at `ofIteration` times the iteration's
  /// number plus `constant`. Points before it, and behind the last lanes, are
  /// none.
  struct Shift {
    int64_t lanes, ofIteration, constant;
  };
  std::optional<Shift> shift;

  explicit LoopPlan(llvm::ArrayRef<int64_t> sizes = {});
  int64_t numPoints() const;
  int64_t numPieces() const;
  /// Points that each point of the loops has.
  int64_t numLanes() const;
  /// Whether these, if there are any, are inner points of `atom`, and of no
  /// other.
  bool areLanesOf(int atom) const;
  /// Makes lanes of so many points at the end of the last loop, or of the last
  /// ones. False, and nothing is done, where its atoms do not divide so.
  bool makeLanes(int64_t count, bool ofSeveralLoops = false);
  /// False, and nothing is done, where there is more than one loop, or lanes.
  bool makeShift(Shift wanted);
  /// Makes tiles of `side` by `side` points of two loops, which end with atom
  /// `row` and with atom `column`, the last one but for lanes. What is left of
  /// the two goes over tiles. False, and nothing is done, where they do not
  /// divide so.
  bool makeTile(int row, int column, int64_t side);
  /// The atoms of a tile, rows first, whose columns are without lanes.
  std::optional<std::pair<int, int>> tile() const;
  int64_t numTilePoints() const;
  /// [first, last) of each run of atoms that is one loop, which tiles and lanes
  /// are not.
  llvm::SmallVector<std::pair<int, int>, 4> groups() const;
  /// Points of the loop that atoms [first, last) are.
  int64_t sizeOf(std::pair<int, int> group) const;
  /// E.g. `8(4x2) 16[3] {32x8} <4>`: a loop over 8 of two atoms, one over 16
  /// that has its first three points apart, a tile, and four lanes; `<+4>` are
  /// lanes that are shifted.
  void print(llvm::raw_ostream &os) const;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_LOOPPLAN_H
