//===- FusionBeside.cpp - Extremes that kernels find on the way -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is rounded to eight bits is scaled by the largest of what came before,
// so that of each such tensor the largest is wanted, too. A kernel of its own
// would read all of it for that. But whoever rounds has the elements:
//
//   largest = ax.reduce max |x| along the last dimension
//   q = cast (x * scale) to f8
//
// become one kernel, though neither reads the other. Extremes alone do so: that
// of rows, and then of those, is the same in any order, bit for bit, as it is
// for no sum (SplitReductions.cpp makes two steps of one).
//
//===----------------------------------------------------------------------===//
#include "FusionGroups.h"

#include "Kernels/ElementOps.h"
#include "Kernels/ThreadGroups.h"

#include "ax/Codegen/Kernel.h"
#include "ax/Dialect/Tensors.h"

using namespace mlir;

namespace ax::codegen {

bool areManyRows(ArrayRef<int64_t> shape) {
  constexpr int64_t shortRow = 128, longRow = 1 << 16;
  return shape.size() > 1 && shape.back() >= shortRow &&
         shape.back() <= longRow &&
         2 * llvm::product_of(shape.drop_back()) * largestBlock > manyThreads;
}

ReduceOp findExtreme(Operation *reader) {
  Operation *op = reader;
  while (isa<UnaryOp, CastOp>(op) && op->hasOneUse())
    op = *op->user_begin();
  auto reduce = dyn_cast<ReduceOp>(op);
  bool isExtreme = reduce && (reduce.getKind() == ReduceOpKind::max ||
                              reduce.getKind() == ReduceOpKind::min);
  if (!isExtreme || reduce.getDims().size() != 1 ||
      reduce.getDims().front() + 1 !=
          tensorType(reduce.getOperand()).getRank() ||
      !areManyRows(shapeOf(reduce.getOperand())))
    return {};
  return reduce;
}

/// What an extreme of rows is of, from the last to the first: element for
/// element the same rows.
static SmallVector<Value> elementsOf(ReduceOp extreme) {
  SmallVector<Value> values{extreme.getOperand()};
  while (Operation *op = values.back().getDefiningOp()) {
    if (!isa<UnaryOp, CastOp>(op))
      break;
    values.push_back(op->getOperand(0));
  }
  return values;
}

/// A kernel that has the elements of an extreme of rows, for something else:
/// for the first that reads them.
std::optional<unsigned> FusionGroups::findBeside(Operation *op) const {
  if (!gpu || op != findExtreme(op))
    return std::nullopt;
  SmallVector<Operation *> readers;
  for (Value elements : elementsOf(cast<ReduceOp>(op)))
    llvm::append_range(readers, elements.getUsers());
  llvm::sort(readers,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *reader : readers)
    for (unsigned group : groupsOf(reader))
      if (mayJoinBeside(op, group))
        return group;
  return std::nullopt;
}

/// Whether the last dimension is another one in the result.
static bool movesLast(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  return transpose && transpose.getPermutation().back() + 1 !=
                          int64_t(transpose.getPermutation().size());
}

/// All that the kernel makes has to be rows of the same number and length, or a
/// number of each, and rows there have to be: their loop finds the extreme.
/// What a stage returns of the elements' type may be a state that a kernel of
/// its elements alone writes over the old one (MarkInPlace.cpp).
bool FusionGroups::mayJoinBeside(Operation *op, unsigned group) const {
  std::optional<ArrayRef<int64_t>> prefix = rowPrefix(op);
  Value elements = elementsOf(cast<ReduceOp>(op)).back();
  int64_t count = tensorType(elements).getNumElements();
  bool hasRows = false;
  auto isOfSameRows = [&](Operation *member) {
    if (movesLast(member))
      return false;
    Value made = member->getResult(0);
    if (!inMemory.contains(made))
      return true;
    bool isReturned =
        made.getType() == elements.getType() &&
        llvm::any_of(made.getUsers(), llvm::IsaPred<LocalYieldOp>);
    hasRows |= numElements(member) == count;
    return !isReturned && numElements(member) <= count &&
           shapeOf(made).size() >= prefix->size() &&
           shapeOf(made).take_front(prefix->size()) == *prefix;
  };
  return mayJoin(op, group) && !usersReach(op, group) &&
         llvm::all_of(groups[group].members, isOfSameRows) && hasRows;
}

/// Whether `op`, of bytes, is read from memory by the kernel that transposes
/// it, so that the one that makes it may find an extreme of what it is made of:
/// to read bytes takes less than to read that.
bool FusionGroups::isApart(Operation *op, unsigned group) const {
  if (!gpu || storageBytes(elementType(op->getResult(0))) != 1 ||
      llvm::none_of(op->getUsers(), [&](Operation *user) {
        return movesLast(user) && groups[group].members.contains(user);
      }))
    return false;
  constexpr int deepest = 4;
  Operation *maker = op;
  for (int depth = 0; maker && isElementwise(maker) && depth != deepest;
       ++depth) {
    Value elements = maker->getOperand(0);
    if (llvm::any_of(elements.getUsers(), [&](Operation *user) {
          ReduceOp extreme = findExtreme(user);
          return extreme && extreme->isBeforeInBlock(op);
        }))
      return true;
    maker = elements.getDefiningOp();
  }
  return false;
}

} // namespace ax::codegen
