//===- SplitReductions.cpp - Large reductions in two steps ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A place of a reduction's result is one block's of a GPU at most, or for sums
// of columns a part of one. Where places are few and elements are many, most of
// the card would have nothing to do. So a reduced dimension is seen as parts
// and the rest of them, which costs nothing; parts are kept at first, and
// reduced in a kernel of their own.
//
// A sum of [768, 3072] to a scalar, for which neighbouring threads read
// neighbours within a part:
//
//   [768, 3072] as [192, 12288], summed to [192], summed to a scalar.
//
// A sum of columns of [8192, 768], for which they read neighbouring columns, of
// neighbouring parts:
//
//   [8192, 768] as [512, 16, 768], summed to [16, 768], summed to [768].
//
// How many parts there are depends on shapes alone, and so do the bits of the
// results.
//
// An extreme of all elements that something else reads, too, has rows for
// parts: of them it is found by the kernel of that, which has the elements.
// E.g. of x that is rounded to eight bits the largest |x|, by which the next
// step's x is.
//
// The same holds for softmax, norms and arg_reduce of few long rows. They
// become reductions and element-wise operations first, each with a kernel of
// its own. So does a softmax along a dimension that is not the last: all along
// the dimensions behind it would be one block's.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "FusionGroups.h"
#include "Kernels/Decompose.h"
#include "Kernels/ElementOps.h"
#include "Kernels/ThreadGroups.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// Fewer elements for a thread are done sooner than another kernel starts.
constexpr int64_t worthSplitting = 64;

bool isMostOfCard(int64_t threads) { return 2 * threads > manyThreads; }

/// Of an element of the widest tensor that a kernel reads for `value`, as large
/// as that. What is beside it is smaller, and is there once.
int64_t bytesRead(Value value) {
  constexpr size_t mostOps = 16;
  llvm::SmallSetVector<Value, 16> read;
  read.insert(value);
  int64_t bytes = 0;
  for (size_t i = 0; i != read.size(); ++i) {
    Operation *maker = read[i].getDefiningOp();
    if (maker && isElementwise(maker) && read.size() < mostOps) {
      for (Value operand : maker->getOperands())
        if (shapeOf(operand) == shapeOf(value))
          read.insert(operand);
    } else {
      bytes = std::max(bytes, storageBytes(elementType(read[i])));
    }
  }
  return bytes ? bytes : storageBytes(elementType(value));
}

/// What a reduction is of: a shape, and which of its dimensions.
struct Extent {
  SmallVector<int64_t> shape, dims;
  /// Places of the result, and elements of each.
  int64_t kept = 1, points = 1;
  /// Of an element of the widest tensor that is read for it.
  int64_t bytes;
  /// Neighbouring places read neighbours, of which a thread does so many.
  bool isColumn = false;
  int64_t lanes = 1;

  Extent(Value operand, ArrayRef<int64_t> dims)
      : shape(shapeOf(operand)), dims(dims), bytes(bytesRead(operand)) {
    for (auto [dim, size] : llvm::enumerate(shape)) {
      (isReduced(dim) ? points : kept) *= size;
      if (size != 1)
        isColumn = !isReduced(dim);
    }
    if (isColumn)
      chooseLanes();
  }
  bool isReduced(int64_t dim) const { return llvm::is_contained(dims, dim); }
  /// Along the last dimension.
  void chooseLanes() {
    constexpr int64_t access = 16;
    int64_t last = *llvm::find_if(llvm::reverse(shape),
                                  [](int64_t size) { return size != 1; });
    lanes = std::max<int64_t>(access / bytes, 1);
    while (lanes > 1 && (last % lanes != 0 || kept / lanes < fewNeighbours))
      lanes /= 2;
  }
  /// Threads that do all places, of one of so many parts.
  int64_t allThreads(int64_t parts) const {
    return kept * parts * threadsOf(parts) / lanes;
  }
  /// Who does a place of one of so many parts.
  int64_t threadsOf(int64_t parts) const {
    return chooseGroup(kept * parts, points / parts, bytes,
                       isColumn ? lanes : 0,
                       /*scratchBytes=*/0)
        .threads;
  }
};

/// Adjacent reduced dimensions [first, last), and in how many parts they are
/// seen.
struct Cut {
  int64_t first, last, parts;
};

/// Runs of adjacent reduced dimensions, in the order in which parts had better
/// be of them: outer ones of rows, so that a part is in one piece, and inner
/// ones of columns, next to which these lie.
SmallVector<Cut> findRuns(const Extent &of) {
  SmallVector<Cut> runs;
  for (int64_t dim : of.dims)
    if (!runs.empty() && runs.back().last == dim)
      ++runs.back().last;
    else
      runs.push_back({dim, dim + 1, 1});
  if (of.isColumn)
    std::reverse(runs.begin(), runs.end());
  return runs;
}

/// Whether parts end where a point of a dimension of the run does: else indices
/// would have to be divided for each element.
bool fitsInto(const Cut &cut, const Extent &of) {
  int64_t left = cut.parts;
  ArrayRef<int64_t> sizes =
      ArrayRef(of.shape).slice(cut.first, cut.last - cut.first);
  for (int64_t i = 0, e = sizes.size(); i != e && left > 1; ++i) {
    int64_t size = sizes[of.isColumn ? e - 1 - i : i];
    if (left % size != 0)
      return size % left == 0;
    left /= size;
  }
  return left == 1;
}

/// Returns where the reduction is to be cut: in the fewest parts that give a
/// card enough to do, or else in those that give it most; nothing where it has
/// enough, is small, or where no size can be divided.
std::optional<Cut> chooseCut(const Extent &of) {
  // Parts are the second step's elements, of which a thread has some.
  constexpr int64_t mostParts = 1 << 13, fewPoints = 8;
  if (of.kept == 0)
    return std::nullopt;
  int64_t threads = of.threadsOf(1), most = of.allThreads(1);
  // Those that have several columns have as much on their way as several.
  int64_t enough = manyThreads / (of.lanes > 1 ? 2 : 1);
  if (2 * most > enough || of.points < threads * worthSplitting)
    return std::nullopt;
  std::optional<Cut> best;
  for (Cut cut : findRuns(of))
    for (cut.parts = 2; cut.parts <= mostParts; ++cut.parts) {
      if (!fitsInto(cut, of))
        continue;
      threads = of.threadsOf(cut.parts);
      if (of.points / cut.parts < threads * fewPoints ||
          of.allThreads(cut.parts) <= most)
        continue;
      most = of.allThreads(cut.parts);
      best = cut;
      if (most >= enough)
        return best;
    }
  return best;
}

/// Sums of narrow floats are rounded once, in the end.
void split(ReduceOp op, const Extent &of, const Cut &cut) {
  OpBuilder builder(op);
  TensorBuilder t(op.getLoc(), builder);
  Value x = op.getOperand();
  Type element = elementType(x);
  if (isNarrowFloat(element))
    x = t.cast(x, builder.getF32Type());
  ArrayRef<int64_t> whole(of.shape);
  SmallVector<int64_t> shape(whole.take_front(cut.first)), dims;
  int64_t rest =
      llvm::product_of(whole.slice(cut.first, cut.last - cut.first)) /
      cut.parts;
  shape.push_back(of.isColumn ? rest : cut.parts);
  shape.push_back(of.isColumn ? cut.parts : rest);
  llvm::append_range(shape, whole.drop_front(cut.last));
  int64_t place = cut.first;
  for (int64_t dim : of.dims) {
    if (dim < cut.first) {
      --place;
      dims.push_back(dim);
    } else if (dim >= cut.last) {
      dims.push_back(dim - (cut.last - cut.first) + 2);
    } else if (dim == cut.first) {
      dims.push_back(of.isColumn ? dim : dim + 1);
    }
  }
  auto reduce = [&](Value operand, ArrayRef<int64_t> along) {
    return t.reduce(op.getKind(), operand, along, /*keepDims=*/false);
  };
  Value result = reduce(reduce(t.reshape(x, shape), dims), place);
  op.replaceAllUsesWith(
      t.reshape(t.cast(result, element), shapeOf(op.getResult())));
  op.erase();
}

/// What else reads the elements of which an extreme is, before it.
struct Readers {
  /// From the first to the last, what is made of elements for it alone.
  SmallVector<Operation *> making;
  Operation *first;
};

/// Of an extreme of all elements, or of those of each row, of many rows.
std::optional<Readers> findReaders(ReduceOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  bool isExtreme =
      op.getKind() == ReduceOpKind::max || op.getKind() == ReduceOpKind::min;
  bool isOfAll = op.getDims().size() == shape.size();
  if (!isExtreme || !(isOfAll || findExtreme(op)) || !areManyRows(shape))
    return std::nullopt;
  Readers found;
  Value elements = op.getOperand();
  while (elements.hasOneUse()) {
    Operation *maker = elements.getDefiningOp();
    if (!isa_and_present<UnaryOp, CastOp>(maker))
      return std::nullopt;
    found.making.insert(found.making.begin(), maker);
    elements = maker->getOperand(0);
  }
  found.first = op;
  for (Operation *user : elements.getUsers())
    if (isElementwise(user) && !llvm::is_contained(found.making, user) &&
        user->isBeforeInBlock(found.first))
      found.first = user;
  if (found.first == op)
    return std::nullopt;
  return found;
}

/// The extreme of each row comes before what else reads the row, which cannot
/// depend on it, and whose kernel may find it (FusionBeside.cpp). Returns what
/// is left to do: that of all rows, or the same.
ReduceOp moveToReaders(ReduceOp op, const Readers &readers) {
  for (Operation *making : readers.making)
    making->moveBefore(readers.first);
  RankedTensorType type = tensorType(op.getOperand());
  if (static_cast<int64_t>(op.getDims().size()) < type.getRank()) {
    op->moveBefore(readers.first);
    return op;
  }
  OpBuilder atReaders(readers.first), builder(op);
  TensorBuilder ofRows(op.getLoc(), atReaders), t(op.getLoc(), builder);
  int64_t last = type.getRank() - 1;
  Value rows = ofRows.reduce(op.getKind(), op.getOperand(), {last},
                             /*keepDims=*/false);
  Value result =
      t.reduce(op.getKind(), rows, dimsFrom(0, last), /*keepDims=*/false);
  auto rest = result.getDefiningOp<ReduceOp>();
  op.replaceAllUsesWith(t.reshape(result, shapeOf(op.getResult())));
  op.erase();
  return rest;
}

/// Whether the kernel of a softmax along an inner dimension leaves most threads
/// without work: it does what is behind that dimension in one iteration.
bool isHeldUp(SoftmaxOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  int64_t dim = op.getDim();
  int64_t before = llvm::product_of(shape.take_front(dim));
  int64_t behind = llvm::product_of(shape.drop_front(dim + 1));
  int64_t threads = std::min(behind, largestBlock);
  return before > 0 && behind > 1 && !isMostOfCard(before * threads) &&
         shape[dim] * behind >= worthSplitting * threads;
}

bool isToDecompose(Operation *op) {
  auto isCut = [](Value operand, ArrayRef<int64_t> dims) {
    return chooseCut(Extent(operand, dims)).has_value();
  };
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return isHeldUp(softmax) || isCut(op->getOperand(0), softmax.getDim());
  if (auto arg = dyn_cast<ArgReduceOp>(op))
    return isCut(op->getOperand(0), arg.getDim());
  int64_t axis;
  if (auto norm = dyn_cast<LayerNormOp>(op))
    axis = norm.getAxis();
  else if (auto norm = dyn_cast<RMSNormOp>(op))
    axis = norm.getAxis();
  else
    return false;
  return isCut(op->getOperand(0),
               dimsFrom(axis, tensorType(op->getOperand(0)).getRank()));
}

/// Each reduction works out its own operand, and so does what comes behind: in
/// memory, a value of that size that several kernels read would take longer.
/// Nobody merges what is equal behind this pass.
void decomposeApart(Operation *op) {
  int64_t elements = tensorType(op->getOperand(0)).getNumElements();
  Operation *before = op->getPrevNode(), *behind = op->getNextNode();
  Block &block = *op->getBlock();
  decomposeRows(op);
  SmallVector<Operation *> made;
  for (Operation *next = before ? before->getNextNode() : &block.front();
       next != behind; next = next->getNextNode())
    made.push_back(next);
  // The last is the result. What one of the others reads is cloned behind it.
  for (Operation *shared : llvm::reverse(ArrayRef(made).drop_back())) {
    if (tensorType(shared->getResult(0)).getNumElements() < elements)
      continue;
    SetVector<Operation *> users(shared->user_begin(), shared->user_end());
    for (Operation *user : users.getArrayRef().drop_front())
      user->replaceUsesOfWith(shared->getResult(0),
                              OpBuilder(shared).clone(*shared)->getResult(0));
  }
}

struct SplitReductionsPass
    : codegen::impl::SplitReductionsBase<SplitReductionsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isToDecompose(&op))
          decomposeApart(&op);
      for (auto op :
           llvm::make_early_inc_range(stage.getBlock().getOps<ReduceOp>())) {
        if (std::optional<Readers> readers = findReaders(op))
          op = moveToReaders(op, *readers);
        Extent of(op.getOperand(), op.getDims());
        if (std::optional<Cut> cut = chooseCut(of))
          split(op, of, *cut);
      }
    });
  }
};

} // namespace
