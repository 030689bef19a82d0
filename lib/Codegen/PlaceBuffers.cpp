//===- PlaceBuffers.cpp - Where results of commands lie in memory ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A result has one of three places: where a result of the stage goes, if it is
// all of one; the memory of an operand that nobody needs any more, be it a sum
// over micro-batches, which starts anew in the next step; or the arena, of
// which it has a piece from the command that makes it to the last that reads
// it. The first saves a copy, the second saves memory, so they come first. But
// what is made in the first step alone has memory of its own, and so have
// copies of states, which other lists may read.
//
// An example, of commands a .. d, each with 4 kB of results:
//
//   0  a = kernel(x)          arena, in use 0 .. 2
//   1  b = kernel(a)          arena, in use 1 .. 3
//   2  c = all_reduce(a)      in place of a, which is in use until 3 then
//   3  d = kernel(b, c)       the stage's result
//
// Three values need 8 kB, as d has a place already, and c has that of a. Views
// (a reshape, a slice) are no commands: who reads one reads its base, whose
// life lasts until then.
//
// Time is the number of the operation in its block. That is enough, since a
// rank does its commands one after another; only a collective that was started
// works on besides, and `axl.await` is when it is over, and what is sent to
// another stage, which lives to the end, as all that a stage returns.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Library.h"
#include "StageAttrs.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Cost/Arena.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace ax::codegen {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether `op` becomes a command that has results in memory.
static bool isCommand(Operation *op) {
  return isa<FusionOp, LocalCollectiveOpInterface>(op) || isLibraryOp(op);
}

namespace {

/// Goes through a stage once, with the number of the operation as the time.
class Placer {
public:
  explicit Placer(LocalStageOp stage) : stage(stage), block(stage.getBlock()) {}

  void run() {
    choosePlacesOfResults();
    for (Operation &op : block) {
      for (Value operand : op.getOperands())
        touch(operand);
      if (auto await = dyn_cast<AwaitOp>(op)) {
        // Both ends of the exchange live until here.
        pieceOf[await.getResult()] = pieceOf.lookup(await.getStarted());
        touch(await.getSource());
      } else if (isCommand(&op)) {
        for (OpResult result : op.getResults())
          place(result);
      }
      ++now;
    }
    write();
  }

private:
  /// Values that share memory. Of those outside of the arena nothing is known
  /// but that they have a place; and whether that is free once they are read.
  struct Piece {
    std::optional<cost::Lifetime> inArena;
    bool isSpent = false;
  };

  /// Finds what is made right where a result of the stage goes, of those that
  /// may be (`direct`, or a state whose old value is read before): it must be
  /// the whole of what its command makes, not a part of it or a transposed
  /// view, since a command writes all, in its order.
  void choosePlacesOfResults() {
    ArrayRef<int64_t> spent;
    if (auto given = stage->getAttrOfType<DenseI64ArrayAttr>(kSpent))
      spent = given;
    for (BlockArgument argument : block.getArguments())
      pieceOf[argument] = addPiece(
          {std::nullopt, llvm::is_contained(spent, argument.getArgNumber())});
    for (int64_t number : stage.getDirect())
      if (makerOfWhole(number))
        resultOf.try_emplace(baseOf(number), number);
    llvm::DenseMap<Value, int64_t> stores;
    for (int64_t i = stage.getFirstStored(); i < numResults(); ++i)
      ++stores[baseOf(i)];
    for (auto [i, name] : llvm::enumerate(stage.getStored())) {
      int64_t number = stage.getFirstStored() + i;
      Operation *maker = makerOfWhole(number);
      // Two states of one value are two copies of it.
      if (maker && stores.lookup(baseOf(number)) == 1 &&
          isReadBefore(name, maker))
        resultOf.try_emplace(baseOf(number), number);
    }
  }

  int64_t numResults() { return stage.getYield()->getNumOperands(); }
  Value baseOf(int64_t number) {
    return viewOf(stage.getYield()->getOperand(number)).base;
  }

  /// Returns the number of the copy that it is, or -1.
  static int64_t copyOf(OpResult result) {
    auto copies = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kCopies);
    return copies ? copies[result.getResultNumber()] : -1;
  }

  /// Whether the result is there in later steps, which do not make it anew.
  static bool isKept(OpResult result) {
    return result.getOwner()->hasAttr(kOnce) &&
           llvm::any_of(readersOf(result), [](Operation *reader) {
             return !reader->hasAttr(kOnce);
           });
  }

  /// Returns the command whose result is a result of the stage, if there is
  /// one.
  Operation *makerOfWhole(int64_t number) {
    Value result = stage.getYield()->getOperand(number);
    StridedView view = viewOf(result);
    Operation *maker = view.base.getDefiningOp();
    return maker && isCommand(maker) && view.offset == 0 && view.isDense() &&
                   byteSizeOf(view.base) == byteSizeOf(result)
               ? maker
               : nullptr;
  }

  /// Whether nothing reads the old value of a state from `maker` on.
  bool isReadBefore(Attribute state, Operation *maker) {
    auto loaded = llvm::find(stage.getStates(), state);
    if (loaded == stage.getStates().end())
      return true;
    Value old = block.getArgument(stage.getNumInputs() +
                                  (loaded - stage.getStates().begin()));
    return llvm::all_of(readersOf(old), [&](Operation *reader) {
      return reader->isBeforeInBlock(maker);
    });
  }

  /// Returns the new piece's number: pieces move as the vector grows.
  int64_t addPiece(Piece piece) {
    pieces.push_back(piece);
    return static_cast<int64_t>(pieces.size()) - 1;
  }

  /// The piece that `value` is in is in use now, whichever view of it this is.
  void touch(Value value) {
    auto it = pieceOf.find(viewOf(value).base);
    if (it == pieceOf.end()) // A constant, which lies elsewhere.
      return;
    if (std::optional<cost::Lifetime> &life = pieces[it->second].inArena)
      life->last = now;
  }

  /// Operands are touched before results are placed, so that an operand that is
  /// read for the last time overlaps the result: a command reads and writes at
  /// once. Only `replacedOperand` knows commands that can do that in place.
  void place(OpResult result) {
    Operation *op = result.getOwner();
    auto decide = [&](PlaceKind kind, int64_t number, int64_t piece) {
      places[result] = PlaceAttr::get(op->getContext(), kind, number);
      pieceOf[result] = piece;
    };
    if (int64_t copy = copyOf(result); copy >= 0) {
      decide(PlaceKind::Copy, copy, addPiece({}));
    } else if (isKept(result)) {
      decide(PlaceKind::Kept, numKept++, addPiece({}));
    } else if (std::optional<unsigned> operand = replacedOperand(result)) {
      Value base = viewOf(op->getOperand(*operand)).base;
      decide(PlaceKind::Operand, *operand, pieceOf.lookup(base));
      touch(result);
    } else if (auto it = resultOf.find(result); it != resultOf.end()) {
      decide(PlaceKind::Result, it->second, addPiece({}));
    } else {
      cost::Lifetime life{byteSizeOf(result), now, now, 0};
      decide(PlaceKind::Arena, 0, addPiece({life}));
    }
  }

  /// Returns the operand in whose memory a result is made, if there is one.
  std::optional<unsigned> replacedOperand(OpResult result) {
    Operation *op = result.getOwner();
    if (auto fusion = dyn_cast<FusionOp>(op)) {
      ArrayRef<int64_t> inPlace =
          fusion.getInPlace().value_or(ArrayRef<int64_t>());
      int64_t operand =
          inPlace.empty() ? -1 : inPlace[result.getResultNumber()];
      return operand < 0 ? std::nullopt : std::optional<unsigned>(operand);
    }
    auto library = dyn_cast<LibraryOp>(op);
    // Nothing else reads that sum (axl-join-accumulation).
    if (library && library.getAccumulation())
      return library.getSumOperand().getOperandNumber();
    std::optional<unsigned> operand;
    if (isa<LocalAllReduceOp>(op))
      operand = result.getResultNumber();
    // A convolution's result goes where the residual was. (A matmul may put
    // partial sums into its result first.)
    if (library && isa<ConvOp>(library.getCore()) && library.getResidual())
      operand = library.getResidualOperand().getOperandNumber();
    return operand && canReplace(op->getOperand(*operand), result)
               ? operand
               : std::nullopt;
  }

  /// Whether `result` may be made in `operand`'s memory: that is in the arena
  /// or spent, nobody needs it afterwards, and nothing else wants the result
  /// elsewhere.
  bool canReplace(Value operand, OpResult result) {
    StridedView view = viewOf(operand);
    auto it = pieceOf.find(view.base);
    if (resultOf.contains(result) || view.offset != 0 ||
        byteSizeOf(view.base) != byteSizeOf(result) || it == pieceOf.end())
      return false;
    const Piece &piece = pieces[it->second];
    if (!piece.inArena && !piece.isSpent)
      return false;
    Operation *maker = result.getOwner();
    if (llvm::count_if(maker->getOperands(), [&](Value other) {
          return viewOf(other).base == view.base;
        }) != 1)
      return false;
    // All that reads the operand, by whatever view, comes before the command,
    // but for the end of the exchange that the command starts.
    return llvm::all_of(readersOf(view.base), [&](Operation *reader) {
      auto await = dyn_cast<AwaitOp>(reader);
      return reader == maker || reader->isBeforeInBlock(maker) ||
             (await && await.getStarted() == result);
    });
  }

  /// Offsets are known only now, when each life has its end. A result in place
  /// of an operand is in that one's piece, so that the two lives are one.
  void write() {
    std::vector<cost::Lifetime> lives;
    for (const Piece &piece : pieces)
      if (piece.inArena)
        lives.push_back(*piece.inArena);
    Builder builder(stage.getContext());
    stage.setArenaBytes(cost::planArena(lives));
    auto next = lives.begin();
    SmallVector<int64_t> offsets;
    for (const Piece &piece : pieces)
      offsets.push_back(piece.inArena ? (next++)->offset : 0);
    for (Operation &op : block) {
      if (!isCommand(&op))
        continue;
      SmallVector<Attribute> attributes;
      for (OpResult result : op.getResults()) {
        PlaceAttr place = places.lookup(result);
        if (place.getKind() == PlaceKind::Arena)
          place = PlaceAttr::get(op.getContext(), PlaceKind::Arena,
                                 offsets[pieceOf.lookup(result)]);
        attributes.push_back(place);
      }
      op.setAttr(kPlaces, builder.getArrayAttr(attributes));
    }
  }

  LocalStageOp stage;
  Block &block;
  int64_t now = 0, numKept = 0;
  std::vector<Piece> pieces;
  llvm::DenseMap<Value, int64_t> pieceOf;
  llvm::DenseMap<Value, PlaceAttr> places;
  /// What is made right where a result of the stage goes.
  llvm::DenseMap<Value, int64_t> resultOf;
};

struct PlaceBuffersPass : codegen::impl::PlaceBuffersBase<PlaceBuffersPass> {
  void runOnOperation() override {
    forEachStage(getOperation(),
                 [](LocalStageOp stage) { Placer(stage).run(); });
  }
};

} // namespace
