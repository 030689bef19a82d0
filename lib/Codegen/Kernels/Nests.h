//===- Nests.h - The loops of a kernel, as a value --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_NESTS_H
#define AX_CODEGEN_KERNELS_NESTS_H

#include "IndexSpace.h"

#include "ax/Local/Local.h"
#include "llvm/Support/Error.h"

#include <map>
#include <tuple>

namespace ax::codegen {

/// What a nest of an operation does.
enum class NestRole {
  /// All that there is to do.
  Whole,
  /// The nests of a reduction: elements that are summed in a register; memory
  /// that sums begin with; blocks of many rows or elements, which are summed
  /// apart, and what is left of them.
  Elements,
  Clear,
  RowBlocks,
  ClearBlock,
  RowsOfBlock,
  AddBlock,
  ElementBlocks,
  RowsLeft,
  /// Where a scan starts; for a scatter, what there was before updates.
  First,
  Update,
  /// What a thread does in order of each point of a scan or a scatter.
  InOrder,
  /// Of a scatter in parts: updates that are looked at together; of rounds of
  /// all updates, the lists, and one of these.
  InGroup,
  Round,
  Lists,
  List
};

/// To whom iterations are dealt out.
enum class Dealing {
  /// To a few threads that do many each: what is within one is to be long.
  Pieces,
  /// To thousands of threads, neighbours to neighbours: without rows, each
  /// element of the results is one.
  Elements
};

/// The threads that do an iteration together.
struct ThreadGroup {
  /// 1, those of a warp, those of a block, or of columns a part of these.
  int64_t threads = 1;
  /// Where it is more than 1, a block does so many iterations at the same time,
  /// and neighbours do neighbouring ones, instead of neighbouring points of the
  /// same. A power of 2, up to a warp.
  int64_t columns = 1;

  bool isMany() const { return threads > 1; }
  bool isColumn() const { return columns > 1; }
  bool operator==(const ThreadGroup &o) const {
    return threads == o.threads && columns == o.columns;
  }
};

/// Which loops a kernel has: chosen before anything is written, for whatever
/// target then writes them.
struct KernelNests {
  /// The fusion's operation (its number among them), a NestRole of that one, or
  /// the number of a result if it is the terminator, and the sizes gone over.
  using Key = std::tuple<int64_t, int, llvm::SmallVector<int64_t, 4>>;

  /// Iterations that do not depend on each other, and the loops that their
  /// number stands for.
  int64_t iterations = 1;
  LoopPlan outer;
  Dealing dealing = Dealing::Pieces;
  /// They are parts of a scatter's results.
  bool areParts = false;
  /// Who does one of them, or a tile of them. Points of a nest that is not
  /// within another, or of the tile, are dealt out to the group.
  ThreadGroup group;
  /// Size of the results' last loop when it runs in tiles: the loop over these
  /// is outside of all others.
  int64_t tiledSize = 0;
  /// The loops within an iteration.
  std::map<Key, LoopPlan> inner;
  /// Memory of one iteration, for rows that are no result.
  int64_t scratchBytes = 0;

  /// Those of a tile, and neighbours that are lanes, are dealt out as one.
  int64_t numDealt() const {
    return iterations / (outer.numLanes() * outer.numTilePoints());
  }
};

/// Chooses the loops of a decomposed fusion of operations that `canFuse`.
///
/// The kernel is gone through without writing it. Where an index would need a
/// quotient, a remainder or a comparison at run time, the loops it is made of
/// are refined (IndexSpace.h), and it is gone through again, until none wants
/// more: an error if that does not end.
///
/// E.g. a transpose of [4, 6] read as [24]: the one loop over 24 becomes loops
/// over 6 and 4, since the element i of the result is number
/// 6 * (i mod 4) + i / 4 of the operand.
llvm::Expected<KernelNests> chooseNests(FusionOp fusion, Dealing dealing);

/// The dimensions that make up the first `total` points of `shape`, and the
/// rest; of a shape that does not divide so, two numbers.
std::pair<llvm::SmallVector<int64_t>, llvm::SmallVector<int64_t>>
splitShape(llvm::ArrayRef<int64_t> shape, int64_t total);

/// The attribute of an operation in a fusion with its nests, as text.
inline constexpr llvm::StringLiteral kNests = "axl.nests";

/// Says in attributes of the fusion (`nests`: the iterations, and how results
/// are written) and of the operations in it which loops there are.
void describe(const KernelNests &nests, FusionOp fusion);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_NESTS_H
