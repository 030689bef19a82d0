//===- FusionGroups.cpp - Which operations share a kernel -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the last operation to the first, each joins the kernel of its users if
// it may, or starts one. What leaves a kernel is written to memory once.
//
// Backwards, because a kernel is written from its results: it pulls elements of
// operands when it needs them (Kernels/Emitter.h), and how often it needs them,
// the *demand*, is known as soon as all users are placed. So one pass over the
// block decides, and no decision is taken back.
//
// An example: relu(layer_norm(x) + broadcast(bias)), where something that is no
// kernel reads the relu. It is the first to be placed, and starts a kernel. The
// sum has one user and as many elements as the relu, and joins. The broadcast
// is free, and joins; the norm joins, as its rows are the sum's. One kernel
// reads x and bias, and writes the relu. Were the sum in memory, too, for its
// gradient, it would join all the same and be a second result of the kernel.
//
// An operation with users in several kernels joins one of them as a result that
// the others read, as long as none of these comes before that one: kernels
// would wait for each other otherwise. That is what `usersReach` looks for, in
// the closure of who reads whom (Downstream.h), which grows with each operation
// that is placed: those that read it have been.
//
// The largest of rows joins a kernel that has these rows for something else,
// though neither reads the other (FusionBeside.cpp).
//
// All else is linear in operations times members of a kernel, of which there
// are `maxMembers`.
//
//===----------------------------------------------------------------------===//
#include "FusionGroups.h"

#include "ForEachStage.h"
#include "Kernels/ThreadGroups.h"
#include "Library.h"

#include "ax/Codegen/Kernel.h"
#include "ax/Dialect/FunctionFacts.h"
#include "ax/Dialect/LookUp.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Local/Local.h"

using namespace mlir;

namespace ax::codegen {

/// Constants up to this size are tables in a kernel; larger ones would be in
/// the image of each kernel that uses them.
static constexpr int64_t maxInlineElements = 64;
/// Longer kernels gain little and compile slowly.
static constexpr size_t maxMembers = 96;
/// Operands of all members: to describe a function's arguments takes LLVM the
/// square of their number.
static constexpr size_t maxOperands = 256;
/// A row is kept in cache while a kernel works on it.
static constexpr int64_t maxRowElements = 1 << 16;

bool isInlineConstant(Operation *op) {
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  if (!constant)
    return false;
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  return dense &&
         (dense.isSplat() || dense.getNumElements() <= maxInlineElements);
}

bool isFree(Operation *op) {
  return isViewOp(op) || isInlineConstant(op) || isa<IotaOp, AxisIndexOp>(op);
}

/// Whether `op` is in a kernel if anybody wants it there.
static bool isFusable(Operation *op) {
  if (isa<ConstantOp>(op))
    return isInlineConstant(op);
  return canFuse(op);
}

bool isCostly(Operation *op) {
  return isa<RandomOp>(op) || functionCostOf(op) == FunctionCost::Many;
}

int64_t numElements(Operation *op) {
  return tensorType(op->getResult(0)).getNumElements();
}

std::optional<ArrayRef<int64_t>> rowPrefix(Operation *op) {
  ArrayRef<int64_t> shape = tensorType(op->getOperand(0)).getShape();
  int64_t rank = shape.size(), first = rank;
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    first = rank - static_cast<int64_t>(reduce.getDims().size());
    if (!reduce.getDims().empty() && reduce.getDims().front() != first)
      return std::nullopt;
  } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
    first = norm.getAxis();
  } else if (auto norm = dyn_cast<RMSNormOp>(op)) {
    first = norm.getAxis();
  } else if (isa<FakeQuantizeOp>(op)) {
    first = rank - 1;
  } else if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
    if ((first = softmax.getDim()) != rank - 1)
      return std::nullopt;
  } else {
    return std::nullopt;
  }
  return shape.take_front(first);
}

/// Whether element i of the result is made of elements i of operands alone, so
/// that a kernel can go on with it in the row where it is.
static bool keepsRows(Operation *op) {
  return isElementwise(op) || isa<RandomOp>(op);
}

FusionGroups::FusionGroups(Block &block, MemoryValues &inMemory,
                           bool separately, bool gpu)
    : inMemory(inMemory), separately(separately), gpu(gpu) {
  // As ComputeOnce has it.
  if (auto stage = dyn_cast<LocalStageOp>(block.getParentOp()))
    fixed = findFixed(stage, [](Operation *op) {
      return isViewOp(op) || (canFuse(op) && !isa<RandomOp>(op)) ||
             (isLibraryOp(op) && !isa<CheckIndicesOp>(op));
    });
  for (Operation &op : llvm::reverse(block)) {
    if (isFusable(&op))
      place(&op);
    record(&op);
  }
}

ArrayRef<unsigned> FusionGroups::groupsOf(Operation *op) const {
  auto it = memberOf.find(op);
  return it == memberOf.end() ? ArrayRef<unsigned>() : it->second;
}

void FusionGroups::join(Operation *op, unsigned group) {
  groups[group].demand[op] = demandOf(op, group);
  groups[group].members.insert(op);
  memberOf[op].push_back(group);
}

/// Free operations go into each kernel that wants them, and start one of their
/// own only for a result that must be in memory. Others are in one kernel.
void FusionGroups::place(Operation *op) {
  llvm::SmallSetVector<unsigned, 4> wanting;
  for (Operation *user : op->getUsers())
    for (unsigned group : groupsOf(user))
      wanting.insert(group);
  bool wanted = llvm::any_of(op->getResults(),
                             [&](Value v) { return inMemory.contains(v); });

  if (isFree(op)) {
    for (unsigned group : wanting)
      join(op, group);
    wanting.clear();
    if (!wanted || isa<ConstantOp>(op))
      return;
  } else if (!separately) {
    // Alone, it disappears in the kernel of its users. Else it is a result of
    // that kernel, too: then it is to have as many elements as the others, for
    // results that share loops cost one store more, not loops more. On a GPU a
    // kernel waits for memory, and one more number of each row costs nothing.
    bool alone = wanting.size() == 1 && !wanted;
    for (unsigned group : wanting) {
      if (!mayJoin(op, group) || (!alone && usersReach(op, group)) ||
          isApart(op, group))
        continue;
      if (!alone &&
          numElements(op) != numElements(groups[group].members.front()) &&
          !(gpu && isOfRows(op, group)))
        continue;
      join(op, group);
      if (!alone)
        inMemory.insert(op->result_begin(), op->result_end());
      return;
    }
    if (std::optional<unsigned> group = findBeside(op)) {
      join(op, *group);
      inMemory.insert(op->result_begin(), op->result_end());
      return;
    }
  }
  if (wanting.empty() && !wanted) // Nobody uses it.
    return;
  groups.emplace_back();
  nodeOfGroup.push_back(downstream.add({}));
  inMemory.insert(op->result_begin(), op->result_end());
  join(op, groups.size() - 1);
}

SmallVector<unsigned> FusionGroups::readersOf(Operation *op) const {
  llvm::SmallSetVector<unsigned, 8> readers;
  for (Operation *user : op->getUsers()) {
    for (unsigned group : groupsOf(user))
      readers.insert(nodeOfGroup[group]);
    if (isFree(user))
      readers.insert_range(readersOfFree.find(user)->second);
    else if (auto it = nodeOfOp.find(user); it != nodeOfOp.end())
      readers.insert(it->second);
  }
  return readers.takeVector();
}

/// A kernel is done before anything it makes is used: all that reads one of its
/// results comes after all of it.
void FusionGroups::record(Operation *op) {
  SmallVector<unsigned> readers = readersOf(op);
  if (llvm::any_of(op->getResults(),
                   [&](Value v) { return inMemory.contains(v); }))
    for (unsigned group : groupsOf(op))
      downstream.addReaders(nodeOfGroup[group], readers);
  if (isFree(op))
    readersOfFree[op] = std::move(readers);
  else if (groupsOf(op).empty())
    nodeOfOp[op] = downstream.add(readers);
}

/// How often windows read each element of what is padded; others read it once.
int64_t FusionGroups::timesRead(Operation *op, int64_t demand) const {
  return gpu && isa<PadOp>(op)
             ? llvm::divideCeilSigned(demand,
                                      std::max<int64_t>(numElements(op), 1))
             : 1;
}

/// E.g. f of [64, 1], broadcast to [64, 1000] in the kernel: each element of
/// the broadcast asks for one of f, so that its demand is 64000, of 64
/// elements. A row operation in between ends that: it works out each row once.
int64_t FusionGroups::demandOf(Operation *op, unsigned group) const {
  const FusionGroup &kernel = groups[group];
  int64_t demand = 0, ofSlices = 0;
  for (OpOperand &use : op->getUses()) {
    Operation *user = use.getOwner();
    auto it = kernel.demand.find(user);
    if (it == kernel.demand.end())
      continue;
    int64_t wanted = it->second;
    // Each slice reads elements of its own; parts of a whole are read where
    // they are, and not elsewhere.
    if (gpu && isa<SliceOp>(user))
      wanted = ofSlices += wanted;
    else if (isa<ConcatOp, PadOp>(user))
      wanted = std::min(wanted, numElements(op) * timesRead(user, wanted));
    else if (fusionKind(user) == FusionKind::Row)
      wanted = numElements(op);
    demand = std::max(demand, wanted);
  }
  return demand ? demand : numElements(op);
}

/// A kernel with a scatter is closed: it writes its result at random, in one
/// iteration or in some that all read all updates, and what it reads is better
/// made outside, once and by all threads.
bool FusionGroups::mayJoin(Operation *op, unsigned group) const {
  const FusionGroup &kernel = groups[group];
  if (kernel.members.size() >= maxMembers || op->getNumResults() != 1)
    return false;
  size_t numOperands = op->getNumOperands();
  for (Operation *member : kernel.members) {
    numOperands += member->getNumOperands();
    if (fusionKind(member) == FusionKind::Window || numOperands > maxOperands)
      return false;
  }
  if (isDoneOnce(op, group))
    return false;
  switch (fusionKind(op)) {
  case FusionKind::Pull:
    return mayPull(op, group);
  case FusionKind::Row:
    return mayKeepRows(op, group) || (gpu && mayKeepPlaces(op, group));
  default:
    return false;
  }
}

/// A sum over weights is for the first step, in a kernel of its own
/// (ComputeOnce), where each step goes on with it: e.g. times the zero point of
/// its input.
bool FusionGroups::isDoneOnce(Operation *op, unsigned group) const {
  return isa<ReduceOp>(op) && fixed.contains(op->getResult(0)) &&
         llvm::any_of(dependentsOf(op, group), [&](Operation *dependent) {
           return !fixed.contains(dependent->getResult(0));
         });
}

/// Working an element out at each use must not cost more than reading it. What
/// is cheap may be worked out twice, which is about what writing and reading it
/// would take.
bool FusionGroups::mayPull(Operation *op, unsigned group) const {
  int64_t elements = std::max<int64_t>(numElements(op), 1);
  int64_t demand = demandOf(op, group);
  // Kernels go on in matrices that are looked up: reading an element again is
  // no more than reading a copy of it. Behind a transpose a row would be read
  // with a stride, each time.
  bool isReadAlong =
      looksUpMatrices(op) &&
      llvm::none_of(groups[group].members, llvm::IsaPred<TransposeOp>);
  if (demand <= elements || isReadAlong || (gpu && isOfRows(op, group)))
    return true;
  if (isCostly(op))
    return false;
  // Windows read what is padded where it lies.
  bool isOfWindows = gpu && isa<PadOp>(op) &&
                     llvm::all_of(op->getUsers(), llvm::IsaPred<SliceOp>);
  if (elements == 1 || demand <= 2 * elements || isOfWindows)
    return true;
  // The same for a whole row: worked out once for it, as LLVM moves what the
  // loop over a row does not change out of that loop.
  for (Operation *user : op->getUsers()) {
    if (!llvm::is_contained(groups[group].members, user))
      continue;
    ArrayRef<int64_t> wide = tensorType(user->getResult(0)).getShape();
    ArrayRef<int64_t> narrow = tensorType(op->getResult(0)).getShape();
    bool isGatherIndex = isa<GatherOp>(user) &&
                         user->getOperand(1) == op->getResult(0) &&
                         wide.size() > narrow.size();
    bool isPerRow = !wide.empty() && !narrow.empty() && narrow.back() == 1 &&
                    wide.back() >= 16 &&
                    numElements(user) <= elements * wide.back();
    if (!isGatherIndex && !isPerRow)
      return false;
  }
  return true;
}

/// Whether `op` has one element for each row that the kernel goes on with, and
/// is read so: as a column beside rows.
bool FusionGroups::isOfRows(Operation *op, unsigned group) const {
  const auto &members = groups[group].members;
  const auto *row = llvm::find_if(members, [](Operation *member) {
    return fusionKind(member) == FusionKind::Row;
  });
  std::optional<ArrayRef<int64_t>> prefix;
  if (row != members.end())
    prefix = rowPrefix(*row);
  if (!prefix || prefix->empty())
    return false;
  auto isLike = [&](ArrayRef<int64_t> shape) {
    return shape.size() == shapeOf((*row)->getOperand(0)).size() &&
           shape.take_front(prefix->size()) == *prefix;
  };
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  return isLike(shape) &&
         llvm::all_of(shape.drop_front(prefix->size()),
                      [](int64_t extent) { return extent == 1; }) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return !members.contains(user) ||
                  isLike(shapeOf(user->getResult(0)));
         });
}

/// The kernel must go on row by row with what `op` makes of each row: its outer
/// loop is over rows, each of which is there only for one iteration. A
/// transpose between the norm and the kernel's result would ask for all rows in
/// each, and another row operation with other rows would need another outer
/// loop.
bool FusionGroups::mayKeepRows(Operation *op, unsigned group) const {
  std::optional<ArrayRef<int64_t>> prefix = rowPrefix(op);
  if (!prefix)
    return false;
  int64_t rows = 1;
  for (int64_t extent : *prefix)
    rows *= extent;
  if (rows == 0 ||
      tensorType(op->getOperand(0)).getNumElements() / rows > maxRowElements)
    return false;
  auto keepsPrefix = [&](Value value) {
    ArrayRef<int64_t> shape = tensorType(value).getShape();
    return shape.size() >= prefix->size() &&
           shape.take_front(prefix->size()) == *prefix;
  };
  const FusionGroup &kernel = groups[group];
  for (Operation *member : kernel.members)
    if (fusionKind(member) == FusionKind::Row && rowPrefix(member) != prefix)
      return false;
  auto dependents = dependentsOf(op, group);
  if (!dependents.empty() && !keepsPrefix(op->getResult(0)))
    return false;
  // A number of each row, beside what has more dimensions, is one of each
  // column.
  auto isBroadcast = [&](Operation *user) {
    return kernel.members.contains(user) && !isViewOp(user) &&
           shapeOf(user->getResult(0)).size() !=
               shapeOf(op->getResult(0)).size();
  };
  if (!prefix->empty() && llvm::any_of(op->getUsers(), isBroadcast))
    return false;
  // On a GPU a row is a block's at most: few are not to keep what is larger
  // than themselves. E.g. a sum of [512], by which a million elements are
  // divided.
  int64_t elements = tensorType(op->getOperand(0)).getNumElements();
  bool isFew = gpu && rows * largestBlock < manyThreads;
  return llvm::all_of(dependents, [&](Operation *dependent) {
    bool moves = !keepsRows(dependent) &&
                 fusionKind(dependent) != FusionKind::Row &&
                 !isa<ReshapeOp, BroadcastOp>(dependent);
    return !moves && keepsPrefix(dependent->getResult(0)) &&
           !(isFew && numElements(dependent) > elements);
  });
}

/// A GPU's threads do each place of a reduction's result by itself, wherever
/// the dimensions lie that are reduced: a kernel may go on with it there. E.g.
/// what is added to a sum of columns. Another reduction might want to keep what
/// both read, which are no rows.
bool FusionGroups::mayKeepPlaces(Operation *op, unsigned group) const {
  auto isRow = [](Operation *member) {
    return fusionKind(member) == FusionKind::Row;
  };
  return isa<ReduceOp>(op) && llvm::none_of(groups[group].members, isRow) &&
         llvm::all_of(dependentsOf(op, group), [&](Operation *dependent) {
           return (keepsRows(dependent) || isa<ReshapeOp>(dependent)) &&
                  numElements(dependent) == numElements(op);
         });
}

/// All that is made of what `op` gives in the kernel, directly or not.
llvm::SmallSetVector<Operation *, 16>
FusionGroups::dependentsOf(Operation *op, unsigned group) const {
  llvm::SmallSetVector<Operation *, 16> dependents;
  auto addUsers = [&](Operation *source) {
    for (Operation *user : source->getUsers())
      if (groups[group].members.contains(user))
        dependents.insert(user);
  };
  addUsers(op);
  for (size_t i = 0; i < dependents.size(); ++i)
    addUsers(dependents[i]);
  return dependents;
}

/// E.g. y = f(x), which a kernel and a Linear read, and the kernel reads what
/// the Linear makes, too. With f in that kernel, the Linear would wait for y,
/// that is for the kernel, and the kernel for the Linear. So f gets a kernel of
/// its own.
///
/// Users in the group itself are copies of free operations, through which the
/// value leaves the group, too.
bool FusionGroups::usersReach(Operation *op, unsigned group) const {
  unsigned wanted = nodeOfGroup[group];
  auto reaches = [&](unsigned node) {
    return downstream.reaches(node, wanted);
  };
  SmallVector<Operation *> leaving{op};
  while (!leaving.empty())
    for (Operation *user : leaving.pop_back_val()->getUsers()) {
      ArrayRef<unsigned> in = groupsOf(user);
      if (llvm::any_of(in, [&](unsigned next) {
            return next != group && reaches(nodeOfGroup[next]);
          }))
        return true;
      if (isFree(user) && in.empty()) {
        for (unsigned node : readersOfFree.find(user)->second)
          if (node == wanted || reaches(node))
            return true;
      } else if (isFree(user)) {
        leaving.push_back(user);
      } else if (auto it = nodeOfOp.find(user);
                 it != nodeOfOp.end() && reaches(it->second)) {
        return true;
      }
    }
  return false;
}

} // namespace ax::codegen
