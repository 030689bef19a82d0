//===- FusionGroups.h - Which operations share a kernel ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_FUSIONGROUPS_H
#define AX_LIB_CODEGEN_FUSIONGROUPS_H

#include "Downstream.h"
#include "StridedView.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ax::codegen {

/// Operations of one kernel. Cheap ones may be in several.
struct FusionGroup {
  llvm::SmallSetVector<mlir::Operation *, 8> members;
  /// Elements of each member's result that the kernel works out, roughly.
  llvm::SmallDenseMap<mlir::Operation *, int64_t> demand;
};

/// Which operations of a stage share a kernel, as sets: Fuse.cpp makes fusions
/// of them. How they are found is said in FusionGroups.cpp.
class FusionGroups {
public:
  /// `inMemory`: values that something other than a kernel reads. More are
  /// added: those that one kernel makes for another. With `separately`, each
  /// operation that is not free has a kernel of its own. With `gpu`, kernels
  /// are a GPU's.
  FusionGroups(mlir::Block &block, MemoryValues &inMemory, bool separately,
               bool gpu);

  llvm::ArrayRef<FusionGroup> getGroups() const { return groups; }
  /// Groups that `op` is in.
  llvm::ArrayRef<unsigned> groupsOf(mlir::Operation *op) const;

private:
  void place(mlir::Operation *op);
  void join(mlir::Operation *op, unsigned group);
  bool mayJoin(mlir::Operation *op, unsigned group) const;
  int64_t timesRead(mlir::Operation *op, int64_t demand) const;
  bool mayPull(mlir::Operation *op, unsigned group) const;
  bool mayKeepRows(mlir::Operation *op, unsigned group) const;
  bool isOfRows(mlir::Operation *op, unsigned group) const;
  bool mayKeepPlaces(mlir::Operation *op, unsigned group) const;
  bool isDoneOnce(mlir::Operation *op, unsigned group) const;
  std::optional<unsigned> findBeside(mlir::Operation *op) const;
  bool mayJoinBeside(mlir::Operation *op, unsigned group) const;
  bool isApart(mlir::Operation *op, unsigned group) const;
  llvm::SmallSetVector<mlir::Operation *, 16>
  dependentsOf(mlir::Operation *op, unsigned group) const;
  /// FusionGroup::demand of `op`, if it joined that group.
  int64_t demandOf(mlir::Operation *op, unsigned group) const;
  /// Whether `group` needs, directly or not, something that a user of `op`
  /// outside the group makes.
  bool usersReach(mlir::Operation *op, unsigned group) const;
  /// Nodes of `downstream` that read what `op` makes.
  llvm::SmallVector<unsigned> readersOf(mlir::Operation *op) const;
  /// Makes what reads `op` known, once it is placed.
  void record(mlir::Operation *op);

  MemoryValues &inMemory;
  bool separately, gpu;
  /// What no step changes: states, and what is made of them alone.
  llvm::DenseSet<mlir::Value> fixed;
  std::vector<FusionGroup> groups;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned, 2>> memberOf;

  /// Of kernels, and of operations that are in none.
  Downstream downstream;
  llvm::SmallVector<unsigned> nodeOfGroup;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeOfOp;
  /// Of free operations, which hand on what they get.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> readersOfFree;
};

/// Costs nothing to repeat in every kernel that wants it: constants, indices,
/// other views of elements.
bool isFree(mlir::Operation *op);
/// Whether an element takes some tens of instructions, so that to work it out
/// twice is dearer than to write and to read it once.
bool isCostly(mlir::Operation *op);
/// Of the first result.
int64_t numElements(mlir::Operation *op);
/// Dimensions in front of the rows that a row operation works on; nothing when
/// its rows are not contiguous.
std::optional<llvm::ArrayRef<int64_t>> rowPrefix(mlir::Operation *op);
/// Whether a card has enough to do with rows along the last dimension, each a
/// block's, and a block with a row.
bool areManyRows(llvm::ArrayRef<int64_t> shape);
/// The maximum or minimum of many rows that is made of what `reader` gives, an
/// element of each element, and nothing else is. A GPU's kernel may find it
/// along with what else it makes of the same elements behind it.
ReduceOp findExtreme(mlir::Operation *reader);
/// A constant that is a part of kernels, not memory.
bool isInlineConstant(mlir::Operation *op);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_FUSIONGROUPS_H
