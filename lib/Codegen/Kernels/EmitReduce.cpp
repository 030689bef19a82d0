//===- EmitReduce.cpp - Reductions ----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last reduced dimensions run in a register; reduced dimensions before a
// kept one ("rows") in memory, so that the loop over the kept one vectorises.
// A thread of a GPU has none to vectorise: there all run in registers. Short
// last dimensions within others are vectors of sums, too, which become one at
// last.
//
// Many terms are added up in blocks, then the blocks: one after another, the
// error would grow with their number (Higham, "The accuracy of floating point
// summation", 1993).
//
//===----------------------------------------------------------------------===//

#include "ElementOps.h"
#include "Emitter.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace ax::codegen {

/// Where dimensions are cut into blocks: the one that is, its part of one, the
/// number of blocks, and what is left.
struct Emitter::Blocks {
  unsigned dim = 0;
  int64_t size = 1, count = 0, left = 0;

  Blocks(ArrayRef<int64_t> sizes, unsigned dim, int64_t size)
      : dim(dim), size(size), count(sizes[dim] / size),
        left(sizes[dim] % size) {}

  /// The dimensions of the blocks, and of what is in one.
  std::pair<SmallVector<int64_t>, SmallVector<int64_t>>
  cut(ArrayRef<int64_t> sizes) const {
    SmallVector<int64_t> outer(sizes.take_front(dim + 1));
    SmallVector<int64_t> inner(sizes.drop_front(dim));
    outer.back() = count;
    inner.front() = size;
    return {outer, inner};
  }
  SmallVector<int64_t> rest(ArrayRef<int64_t> sizes) const {
    SmallVector<int64_t> result(sizes);
    result[dim] = left;
    return result;
  }
  /// The other way: indices of the dimensions.
  Indices join(ArrayRef<IndexExpr> outer, ArrayRef<IndexExpr> inner) const {
    Indices all(outer.drop_back());
    all.push_back(outer.back() * size + inner[0]);
    llvm::append_range(all, inner.drop_front());
    return all;
  }
  /// Returns indices of the dimensions for those of what is left behind the
  /// blocks.
  Indices afterBlocks(ArrayRef<IndexExpr> indices) const {
    Indices all(indices);
    all[dim] = all[dim] + IndexExpr(count * size);
    return all;
  }
};

struct Emitter::Reduction {
  /// Its accessors are not const.
  mutable ReduceOp op;
  ReduceOpKind kind;
  Type element;
  /// Without those of dimensions that are reduced.
  Indices fixed;
  /// The operand's dimensions: those that are fixed, the outer ones, the inner
  /// ones, which are all reduced.
  SmallVector<unsigned> dims;
  SmallVector<int64_t> outerSizes, innerSizes;

  /// Of an outer dimension.
  bool isReduced(unsigned d) const {
    return llvm::is_contained(op.getDims(), int64_t(dims[fixed.size() + d]));
  }
  Indices operandIndices(ArrayRef<IndexExpr> outer,
                         ArrayRef<IndexExpr> inner) const {
    Indices inOrder(fixed), all(dims.size());
    llvm::append_range(inOrder, outer);
    llvm::append_range(inOrder, inner);
    for (auto [d, index] : llvm::zip_equal(dims, inOrder))
      all[d] = index;
    return all;
  }
  bool inMemory() const {
    for (unsigned d = 0; d != outerSizes.size(); ++d)
      if (isReduced(d))
        return true;
    return false;
  }
  /// Returns the sizes of the dimensions that are kept among the outer ones
  /// from `first` on.
  SmallVector<int64_t> keptSizes(unsigned first) const {
    SmallVector<int64_t> sizes;
    for (unsigned d = first; d != outerSizes.size(); ++d)
      if (!isReduced(d))
        sizes.push_back(outerSizes[d]);
    return sizes;
  }
  Indices keptIndices(ArrayRef<IndexExpr> indices, unsigned first = 0) const {
    Indices kept;
    for (unsigned d = first; d != indices.size(); ++d)
      if (!isReduced(d))
        kept.push_back(indices[d]);
    return kept;
  }

  bool wantsBlocks() const {
    return kind == ReduceOpKind::sum && isa<FloatType>(element);
  }
  /// About as many blocks as there are rows in one.
  std::optional<Blocks> blocksOfRows() const {
    constexpr int64_t fewRows = 32;
    SmallVector<unsigned> reduced;
    int64_t rows = 1;
    for (unsigned d = 0; d != outerSizes.size(); ++d)
      if (isReduced(d)) {
        reduced.push_back(d);
        rows *= outerSizes[d];
      }
    if (!wantsBlocks() || rows <= fewRows)
      return std::nullopt;
    // Whole inner dimensions even if their blocks are somewhat larger.
    auto fits = [&](int64_t size) { return size * size <= 16 * rows; };
    int64_t below = 1;
    while (reduced.size() > 1 && fits(below * outerSizes[reduced.back()]))
      below *= outerSizes[reduced.pop_back_val()];
    int64_t size = 1;
    while ((size + 1) * below * (size + 1) * below <= rows)
      ++size;
    return Blocks(outerSizes, reduced.back(), size);
  }
  std::optional<Blocks> blocksOfElements() const {
    constexpr int64_t fewElements = 1 << 13;
    if (!wantsBlocks() || llvm::product_of(innerSizes) <= fewElements)
      return std::nullopt;
    int64_t below = 1;
    unsigned dim = innerSizes.size() - 1;
    while (below * innerSizes[dim] <= fewElements)
      below *= innerSizes[dim--];
    return Blocks(innerSizes, dim, fewElements / below);
  }
};

Emitter::RowValue Emitter::emitReduce(ReduceOp op, ArrayRef<IndexExpr> fixed) {
  RankedTensorType type = tensorType(op.getOperand());
  Reduction r{op, op.getKind(), type.getElementType(), {}, {}, {}, {}};
  unsigned rank = type.getRank(), inner = rank;
  auto isReduced = [&](unsigned d) {
    return llvm::is_contained(op.getDims(), int64_t(d));
  };
  if (nests.dealing == Dealing::Elements) {
    // Whoever has a place of the result has a register to reduce in.
    for (unsigned d = 0; d != rank; ++d)
      if (!isReduced(d))
        r.dims.push_back(d);
    inner = r.dims.size();
    for (unsigned d = 0; d != rank; ++d)
      if (isReduced(d))
        r.dims.push_back(d);
    for (auto [d, index] : llvm::enumerate(fixed))
      if (!op.getKeepDims() || !isReduced(d))
        r.fixed.push_back(index);
  } else {
    r.dims = llvm::to_vector(llvm::seq(rank));
    r.fixed.assign(fixed.begin(), fixed.end());
    while (inner > fixed.size() &&
           (isReduced(inner - 1) || type.getDimSize(inner - 1) == 1))
      --inner;
  }
  for (unsigned i = r.fixed.size(); i != rank; ++i)
    (i < inner ? r.outerSizes : r.innerSizes)
        .push_back(type.getDimSize(r.dims[i]));

  RowValue row;
  if (isDoneAlong(r))
    return emitMaxAndSum(r, fixed);
  if (columnLanes() > 1)
    return emitColumns(r, fixed);
  if (r.outerSizes.empty()) {
    row.isScalar = true;
    row.scalar = reduceElements(r, {}, writer.neutral(r.kind, r.element));
    return row;
  }
  row = allocateRow(op->getResult(0), fixed);
  if (r.inMemory())
    reduceRows(r, row.base);
  else
    emitNest(op, NestRole::Whole, r.outerSizes, {},
             [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
               Value acc = writer.neutral(r.kind, r.element);
               storeElement(reduceElements(r, indices, acc), row.base,
                            space.linearize(indices, r.outerSizes), r.element);
               return {};
             });
  return row;
}

/// `op`, and what else of the kernel is reduced in the same way of elements at
/// the same places, and needs nothing of it.
static SmallVector<ReduceOp> reducedBeside(ReduceOp op) {
  constexpr size_t most = 4;
  SmallVector<Operation *> dependents{op};
  for (size_t i = 0; i != dependents.size(); ++i)
    for (Operation *user : dependents[i]->getUsers())
      if (!llvm::is_contained(dependents, user))
        dependents.push_back(user);
  SmallVector<ReduceOp> all{op};
  for (auto other : op->getBlock()->getOps<ReduceOp>())
    if (all.size() < most && op->isBeforeInBlock(other) &&
        !llvm::is_contained(dependents, other) &&
        other.getOperand().getType() == op.getOperand().getType() &&
        other.getProperties() == op.getProperties())
      all.push_back(other);
  return all;
}

/// All columns that a thread has, of which each point has one access, for all
/// that is made of them.
Emitter::RowValue Emitter::emitColumns(const Reduction &r,
                                       ArrayRef<IndexExpr> fixed) {
  assert(r.outerSizes.empty() && "columns are numbers");
  int64_t count = columnLanes();
  SmallVector<ReduceOp> together = reducedBeside(r.op);
  llvm::erase_if(together, [&](ReduceOp op) {
    return rowValues.count({op, Indices(fixed)}) != 0;
  });
  IndexSpace::Nest nest = space.addNest(
      getPlan(r.op, static_cast<int>(NestRole::Elements), r.innerSizes), false);
  auto all = [&](ArrayRef<IndexExpr> indices, int64_t lane) {
    return llvm::map_to_vector<4>(
        indices, [&](const IndexExpr &index) { return atLane(index, lane); });
  };
  Values sums = emitLoops(
      nest, Values(count * together.size(), writer.neutral(r.kind, r.element)),
      [&](ValueRange values) {
        Lanes lanes{count, nestDepth, {}};
        llvm::SaveAndRestore ofLanes(inLanes, &lanes);
        Indices inner = space.delinearize(space.linear(nest), r.innerSizes);
        Values next(values);
        for (int64_t lane = 0; lane != count; ++lane) {
          Reduction column = r;
          column.fixed = all(r.fixed, lane);
          llvm::SaveAndRestore ofColumn(outer.lane, lane);
          for (auto [i, op] : llvm::enumerate(together)) {
            Value &sum = next[i * count + lane];
            Value x = pull(op.getOperand(), column.operandIndices({}, inner));
            sum = writer.combine(r.kind, sum, x, r.element);
          }
        }
        return next;
      },
      r.op);
  RowValue own;
  for (auto [i, sum] : llvm::enumerate(sums)) {
    int64_t lane = static_cast<int64_t>(i) % count;
    ReduceOp op = together[i / count];
    RowValue column;
    column.isScalar = true;
    column.scalar = sum;
    if (op == r.op && lane == outer.lane)
      own = column;
    rowValues[{op, all(fixed, lane)}] = column;
  }
  return own;
}

/// A row's maximum that a group of threads finds, where a sum needs it.
bool Emitter::isDoneAlong(const Reduction &r) const {
  return sumsAlong.contains(r.op) && r.outerSizes.empty() &&
         nests.group.isMany() && !nests.group.isColumn() &&
         llvm::product_of(r.innerSizes) > 1;
}

/// Both from one read of the row.
Emitter::RowValue Emitter::emitMaxAndSum(const Reduction &r,
                                         ArrayRef<IndexExpr> fixed) {
  IndexSpace::Nest nest = space.addNest(
      getPlan(r.op, static_cast<int>(NestRole::Elements), r.innerSizes), false);
  // Each point, and each lane of one, adds its number to the list.
  Values both = emitLoops(
      nest, {},
      [&](ValueRange numbers) {
        Values more(numbers);
        more.push_back(
            pull(r.op.getOperand(),
                 r.operandIndices(
                     {}, space.delinearize(space.linear(nest), r.innerSizes))));
        return more;
      },
      r.op);
  RowValue max, sum;
  max.isScalar = sum.isScalar = true;
  max.scalar = both[0];
  sum.scalar = both[1];
  rowValues[{sumsAlong.lookup(r.op), Indices(fixed)}] = sum;
  return max;
}

/// `acc` and all elements at the given place.
Value Emitter::reduceElements(const Reduction &r, ArrayRef<IndexExpr> outer,
                              Value acc) {
  auto add = [&](ArrayRef<int64_t> sizes, Value first,
                 function_ref<Indices(ArrayRef<IndexExpr>)> place) {
    return emitNest(
               r.op, NestRole::Elements, sizes, {first},
               [&](ArrayRef<IndexExpr> indices, ValueRange carried) -> Values {
                 Value x = pull(r.op.getOperand(),
                                r.operandIndices(outer, place(indices)));
                 return {writer.combine(r.kind, carried[0], x, r.element)};
               })
        .front();
  };
  if (int64_t places = placesOf(r))
    return sumByPlaces(r, outer, acc, places);
  // Threads that share a sum have a block of it each.
  bool isDealt = nestDepth == 0 && nests.dealing == Dealing::Elements;
  std::optional<Blocks> blocks;
  if (!isDealt)
    blocks = r.blocksOfElements();
  if (!blocks)
    return add(r.innerSizes, acc,
               [](ArrayRef<IndexExpr> indices) { return Indices(indices); });
  SmallVector<int64_t> blockSizes, partSizes;
  std::tie(blockSizes, partSizes) = blocks->cut(r.innerSizes);
  if (blocks->left)
    acc =
        add(blocks->rest(r.innerSizes), acc, [&](ArrayRef<IndexExpr> indices) {
          return blocks->afterBlocks(indices);
        });
  return emitNest(
             r.op, NestRole::ElementBlocks, blockSizes, {acc},
             [&](ArrayRef<IndexExpr> block, ValueRange carried) -> Values {
               Value part = add(partSizes, writer.neutral(r.kind, r.element),
                                [&](ArrayRef<IndexExpr> indices) {
                                  return blocks->join(block, indices);
                                });
               return {writer.combine(r.kind, carried[0], part, r.element)};
             })
      .front();
}

/// How many numbers a sum is in while it is made (`sumByPlaces`): as many as
/// points of the last loop, in each lane, if these are few enough to be
/// vectors, and the loop is within another that has more; else 0. So it is of
/// sums that are made in blocks of elements, where one after another at the
/// same place would add up errors. E.g. of a row of weights of four bits, those
/// of a block, which have one scale.
int64_t Emitter::placesOf(const Reduction &r) {
  constexpr int64_t fewest = 8, most = 64;
  if (nests.dealing != Dealing::Pieces || !r.element.isF32() ||
      r.kind != ReduceOpKind::sum)
    return 0;
  const LoopPlan &plan =
      getPlan(r.op, static_cast<int>(NestRole::Elements), r.innerSizes);
  auto groups = plan.groups();
  llvm::erase_if(groups, [&](auto &group) { return plan.sizeOf(group) == 1; });
  if (groups.size() < 2 || plan.numPieces() > 1)
    return 0;
  int64_t last = plan.sizeOf(groups.back()), places = last * plan.numLanes();
  bool areVectors = last >= fewest && places <= most &&
                    llvm::isPowerOf2_64(static_cast<uint64_t>(last));
  return areVectors && plan.numPoints() >= places * places ? places : 0;
}

/// Were each run of the last loop to end in one number, that would take longer
/// than the loop: numbers at the same place in all of them are added up, in
/// memory that LLVM makes registers of, and these at last.
Value Emitter::sumByPlaces(const Reduction &r, ArrayRef<IndexExpr> outer,
                           Value acc, int64_t places) {
  Value sums = allocateScratch(places, r.element);
  emitNest(r.op, NestRole::Clear, {places}, {},
           [&](ArrayRef<IndexExpr> place, ValueRange) -> Values {
             storeElement(writer.neutral(r.kind, r.element), sums,
                          place.front(), r.element);
             return {};
           });
  IndexSpace::Nest nest = space.addNest(
      getPlan(r.op, static_cast<int>(NestRole::Elements), r.innerSizes), true);
  emitLoops(nest, {}, [&](ValueRange) -> Values {
    int64_t ofLane = places / nest.plan->numLanes();
    Indices inner = space.delinearize(space.linear(nest), r.innerSizes);
    IndexExpr place = space.lastLoop(nest) + IndexExpr(nest.lane * ofLane);
    Value x = pull(r.op.getOperand(), r.operandIndices(outer, inner));
    Value sum = loadElement(sums, place, r.element);
    storeElement(writer.combine(r.kind, sum, x, r.element), sums, place,
                 r.element);
    return {};
  });
  return emitNest(r.op, NestRole::AddBlock, {places}, {acc},
                  [&](ArrayRef<IndexExpr> place, ValueRange carried) -> Values {
                    Value sum = loadElement(sums, place.front(), r.element);
                    return {writer.combine(r.kind, carried[0], sum, r.element)};
                  })
      .front();
}

void Emitter::reduceRows(const Reduction &r, Value base) {
  auto clear = [&](NestRole which, Value to, ArrayRef<int64_t> sizes) {
    emitNest(r.op, which, sizes, {},
             [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
               storeElement(writer.neutral(r.kind, r.element), to,
                            space.linearize(indices, sizes), r.element);
               return {};
             });
  };
  auto add = [&](ArrayRef<IndexExpr> indices, Value to, unsigned first) {
    IndexExpr offset =
        space.linearize(r.keptIndices(indices, first), r.keptSizes(first));
    Value acc = loadElement(to, offset, r.element);
    storeElement(reduceElements(r, indices, acc), to, offset, r.element);
  };
  SmallVector<int64_t> allKept = r.keptSizes(0);
  clear(NestRole::Clear, base, allKept);
  std::optional<Blocks> blocks = r.blocksOfRows();
  if (!blocks) {
    emitNest(r.op, NestRole::Whole, r.outerSizes, {},
             [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
               add(indices, base, 0);
               return {};
             });
    return;
  }

  SmallVector<int64_t> blockSizes, partSizes;
  std::tie(blockSizes, partSizes) = blocks->cut(r.outerSizes);
  SmallVector<int64_t> kept = r.keptSizes(blocks->dim);
  Value part = allocateScratch(llvm::product_of(kept), r.element);
  auto addBlock = [&](ArrayRef<IndexExpr> block) {
    clear(NestRole::ClearBlock, part, kept);
    emitNest(r.op, NestRole::RowsOfBlock, partSizes, {},
             [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
               add(blocks->join(block, indices), part, blocks->dim);
               return {};
             });
    emitNest(r.op, NestRole::AddBlock, kept, {},
             [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
               Indices all = r.keptIndices(block.drop_back());
               llvm::append_range(all, indices);
               IndexExpr to = space.linearize(all, allKept);
               Value sum = loadElement(base, to, r.element);
               Value more =
                   loadElement(part, space.linearize(indices, kept), r.element);
               storeElement(writer.combine(r.kind, sum, more, r.element), base,
                            to, r.element);
               return {};
             });
  };
  if (blocks->left)
    emitNest(r.op, NestRole::RowsLeft, blocks->rest(r.outerSizes), {},
             [&](ArrayRef<IndexExpr> indices, ValueRange) -> Values {
               add(blocks->afterBlocks(indices), base, 0);
               return {};
             });
  emitNest(r.op, NestRole::RowBlocks, blockSizes, {},
           [&](ArrayRef<IndexExpr> block, ValueRange) -> Values {
             addBlock(block);
             return {};
           });
}

} // namespace ax::codegen
