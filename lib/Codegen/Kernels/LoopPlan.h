//===- LoopPlan.h - The loops of one nest -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_LOOPPLAN_H
#define AX_CODEGEN_KERNELS_LOOPPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

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
  };
  llvm::SmallVector<Atom, 4> atoms;

  explicit LoopPlan(llvm::ArrayRef<int64_t> sizes = {});
  int64_t numPoints() const;
  int64_t numPieces() const;
  /// Points that each point of the loops has.
  int64_t numLanes() const;
  /// Makes lanes of so many points at the end of the last loop. False, and
  /// nothing is done, where its atoms do not divide so.
  bool makeLanes(int64_t count);
  /// [first, last) of each run of atoms that is one loop.
  llvm::SmallVector<std::pair<int, int>, 4> groups() const;
  /// Points of the loop that atoms [first, last) are.
  int64_t sizeOf(std::pair<int, int> group) const;
  /// E.g. `8(4x2) 16[3] <4>`: a loop over 8 of two atoms, one over 16 that has
  /// its first three points apart, and four lanes.
  void print(llvm::raw_ostream &os) const;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_LOOPPLAN_H
