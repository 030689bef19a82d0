//===- WriteTransposed.cpp - Results in another order ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "StridedView.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_WRITETRANSPOSED
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static bool isAttentionGradient(Operation *op) {
  return isa_and_present<AttentionGradientOp, LocalAttentionGradientOp>(op);
}

/// What alone reads the result of `op`, but for gradients of attention, which
/// read anything with rows; nothing if it may not be written so.
static TransposeOp onlyTranspose(Operation *op) {
  Operation *core = getLibraryCore(op);
  if (!isa_and_present<LinearOp, DotOp, AttentionOp, LocalAttentionOp>(core))
    return {};
  TransposeOp only;
  for (Operation *user : op->getResult(0).getUsers()) {
    if (isAttentionGradient(user))
      continue;
    auto transpose = dyn_cast<TransposeOp>(user);
    if (!transpose || only)
      return {};
    only = transpose;
  }
  auto library = dyn_cast<LibraryOp>(op);
  // What lies beside the result, and in the same order.
  bool isBound = library && (library.getResidual() || library.getTranspose() ||
                             library.getGradient() || library.givesInput());
  if (!only || isBound ||
      only.getPermutation().back() + 1 !=
          static_cast<int64_t>(only.getPermutation().size()))
    return {};
  return only;
}

/// Whether rows are in one piece, and begin at multiples of what a GPU's
/// library reads at once.
static bool hasRows(const StridedView &place) {
  constexpr int64_t bytes = 16;
  int64_t elementBytes =
      byteSizeOf(place.base) /
      std::max<int64_t>(1, tensorType(place.base).getNumElements());
  auto fits = [&](int64_t elements) {
    return elements * elementBytes % bytes == 0;
  };
  auto isFit = [&](auto dim) {
    return std::get<0>(dim) == 1 || fits(std::get<1>(dim));
  };
  return (place.sizes.back() == 1 || place.strides.back() == 1) &&
         fits(place.offset) &&
         llvm::all_of(
             llvm::drop_end(llvm::zip_equal(place.sizes, place.strides)),
             isFit);
}

/// What transposes, reshapes and concatenations, each the only reader of what
/// it reads, make of `value`, one after another.
static SmallVector<Value> movedOf(Value value) {
  SmallVector<Value> moved;
  while (value.hasOneUse() &&
         isa<TransposeOp, ReshapeOp, ConcatOp>(*value.user_begin()))
    moved.push_back(value = value.user_begin()->getResult(0));
  return moved;
}

/// What moves the gradients of q, k and v to where they are in one tensor, and
/// nothing else is, in order; nothing where not all end up there.
static SmallVector<Operation *> findJoin(Operation *gradient) {
  SmallVector<SmallVector<Value>> chains;
  for (Value value : gradient->getResults())
    chains.push_back(movedOf(value));
  auto isShared = [&](Value value) {
    return llvm::all_of(chains, [&](ArrayRef<Value> chain) {
      return llvm::is_contained(chain, value);
    });
  };
  auto join = llvm::find_if(chains.front(), isShared);
  if (join == chains.front().end())
    return {};
  Value whole = *join;
  llvm::SetVector<Operation *> moves;
  for (ArrayRef<Value> chain : chains)
    for (Value value : chain) {
      moves.insert(value.getDefiningOp());
      if (value == whole)
        break;
    }
  for (Operation *move : moves)
    for (Value operand : move->getOperands())
      if (Operation *made = operand.getDefiningOp();
          made != gradient && !moves.contains(made))
        return {};
  for (Value value : gradient->getResults()) {
    auto place = whereMoved(value, [&](Value moved) { return moved == whole; });
    if (!place || !hasRows(*place))
      return {};
  }
  SmallVector<Operation *> order = moves.takeVector();
  llvm::sort(order,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return order;
}

/// The transposes that alone read gradients, where these may be written so.
static SmallVector<Operation *> findTransposes(Operation *gradient) {
  SmallVector<Operation *> moves;
  for (Value value : gradient->getResults())
    if (value.hasOneUse())
      if (auto transpose = dyn_cast<TransposeOp>(*value.user_begin());
          transpose && transpose.getPermutation().back() == 3)
        moves.push_back(transpose);
  return moves;
}

/// Makes an axl.library of `core`, which gives several results, and of what
/// moves them.
static void wrapMoved(Operation *core, ArrayRef<Operation *> moves) {
  SmallVector<Value> given;
  auto addGiven = [&](Operation *op) {
    for (Value result : op->getResults())
      if (!llvm::any_of(result.getUsers(), [&](Operation *user) {
            return llvm::is_contained(moves, user);
          }))
        given.push_back(result);
  };
  addGiven(core);
  llvm::for_each(moves, addGiven);
  OpBuilder builder(core);
  auto library =
      LibraryOp::create(builder, core->getLoc(), ValueRange(given).getTypes(),
                        core->getOperands());
  library->setDiscardableAttrs(core->getDiscardableAttrDictionary());
  Block &body = library.getBody().emplaceBlock();
  IRMapping mapping;
  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> inside;
  for (Value operand : core->getOperands())
    inside.push_back(body.addArgument(operand.getType(), operand.getLoc()));
  Operation *copy = builder.clone(*core);
  copy->setOperands(inside);
  mapping.map(core->getResults(), copy->getResults());
  for (Operation *move : moves)
    builder.clone(*move, mapping);
  SmallVector<Value> yielded;
  for (Value value : given)
    yielded.push_back(mapping.lookup(value));
  LocalYieldOp::create(builder, core->getLoc(), yielded);
  for (auto [value, result] : llvm::zip_equal(given, library.getResults()))
    value.replaceAllUsesWith(result);
  for (Operation *move : llvm::reverse(moves))
    move->erase();
  core->erase();
}

namespace {

struct WriteTransposedPass
    : codegen::impl::WriteTransposedBase<WriteTransposedPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      SmallVector<std::pair<Operation *, TransposeOp>> found;
      SmallVector<Operation *> gradients;
      for (Operation &op : stage.getBlock())
        if (TransposeOp transpose = onlyTranspose(&op))
          found.push_back({&op, transpose});
        else if (isAttentionGradient(&op))
          gradients.push_back(&op);
      for (auto [op, transpose] : found) {
        transposeBack(transpose);
        if (op->getNumResults() > 1)
          wrapMoved(op, transpose.getOperation());
        else
          write(op, transpose);
      }
      for (Operation *gradient : gradients) {
        SmallVector<Operation *> moves = findJoin(gradient);
        if (moves.empty())
          moves = findTransposes(gradient);
        if (!moves.empty())
          wrapMoved(gradient, moves);
      }
    });
  }

  /// Others than `transpose` read what it has read by way of it.
  static void transposeBack(TransposeOp transpose) {
    Value plain = transpose.getOperand();
    transpose->moveAfter(plain.getDefiningOp());
    if (plain.hasOneUse())
      return;
    OpBuilder builder(transpose->getContext());
    builder.setInsertionPointAfter(transpose);
    SmallVector<int64_t> inverse(transpose.getPermutation().size());
    for (auto [i, from] : llvm::enumerate(transpose.getPermutation()))
      inverse[from] = static_cast<int64_t>(i);
    auto back =
        TransposeOp::create(builder, transpose.getLoc(), plain.getType(),
                            transpose.getResult(), inverse);
    plain.replaceAllUsesExcept(back, transpose);
  }

  static void write(Operation *op, TransposeOp transpose) {
    LibraryOp library = wrapInLibrary(op);
    OpBuilder builder(library.getYield());
    IRMapping mapping;
    mapping.map(transpose.getOperand(), library.getYield()->getOperand(0));
    library.setYielded(builder.clone(*transpose, mapping)->getResult(0));
    transpose.getResult().replaceAllUsesWith(library.getResult());
    transpose.erase();
  }
};

} // namespace
