//===- RoundAtUpdate.cpp - Rounded copies of what is trained --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example: a weight w that products read in bf16.
//
//   v = kernel(w)     cast      each micro-batch    v, done once
//   y = matmul(x, v)                             ->
//   w = kernel(w, g)  update    each step           w, v = kernel(w, g)
//
// To round the weight a step reads it, in four bytes, and its update has it
// anyway: that leaves the new weight rounded, too, in memory that steps share.
// Only before the first update somebody has to round what was loaded. So it is
// right as long as nothing else changes the weight, no other program of the
// plan and no other list, and if whoever reads the copy comes before the update
// that writes the next one.
//
// Where the update is no kernel, as where a new weight is gathered from those
// who have parts of it, it is rounded behind that: once a step, which is less
// often than for each micro-batch.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "StageAttrs.h"
#include "StridedView.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_ROUNDATUPDATE
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// A list that stores a state, and which of its results that is.
struct Store {
  LocalStageOp stage;
  unsigned result = 0;

  Value value() { return stage.getYield()->getOperand(result); }
  /// The kernel that makes the new value, element by element of its shape, and
  /// may leave more; null where there is none.
  FusionOp maker() {
    Value made = value();
    auto fusion = made.getDefiningOp<FusionOp>();
    auto hasShape = [&](Value other) {
      return tensorType(other).getShape() == tensorType(made).getShape();
    };
    return fusion && llvm::all_of(fusion.getResults(), hasShape) ? fusion
                                                                 : FusionOp();
  }
};

/// A copy of a state in another type.
using Copy = std::pair<Attribute, Type>;

struct RoundAtUpdatePass : codegen::impl::RoundAtUpdateBase<RoundAtUpdatePass> {
  void runOnOperation() override {
    for (auto program : getOperation().getBody().getOps<LocalProgramOp>())
      roundIn(program);
  }

  static void roundIn(LocalProgramOp program) {
    llvm::DenseMap<Attribute, Store> stores = findStores(program);
    llvm::MapVector<Copy, SmallVector<FusionOp, 2>> copies;
    for (auto stage : program.getBody().getOps<LocalStageOp>())
      for (auto fusion : stage.getBlock().getOps<FusionOp>())
        if (std::optional<Copy> copy = copyOf(fusion);
            copy && stores.contains(copy->first))
          copies[*copy].push_back(fusion);
    int64_t number = 0;
    for (auto &[copy, roundings] : copies)
      if (replace(stores[copy.first], roundings, number))
        ++number;
  }

  /// Where the program stores states that nothing else changes.
  static llvm::DenseMap<Attribute, Store> findStores(LocalProgramOp program) {
    llvm::DenseMap<Attribute, Store> stores;
    auto owned = program->getAttrOfType<ArrayAttr>(kOwned);
    if (!owned)
      return stores;
    for (auto stage : program.getBody().getOps<LocalStageOp>())
      for (auto [i, state] : llvm::enumerate(stage.getStored()))
        if (llvm::is_contained(owned, state))
          stores[state] = {stage,
                           stage.getFirstStored() + static_cast<unsigned>(i)};
    return stores;
  }

  /// What a kernel gives that does nothing but round a state to fewer bytes.
  static std::optional<Copy> copyOf(FusionOp fusion) {
    auto stage = cast<LocalStageOp>(fusion->getParentOp());
    Block &body = fusion.getBody().front();
    if (fusion.getNumOperands() != 1 || fusion->getNumResults() != 1 ||
        !llvm::hasNItems(body.without_terminator(), 1) ||
        !isa<CastOp>(body.front()))
      return std::nullopt;
    auto argument = dyn_cast<BlockArgument>(fusion.getOperand(0));
    Value result = fusion->getResult(0);
    if (!argument || argument.getArgNumber() < stage.getNumInputs() ||
        argument.getArgNumber() >= stage.getFirstSum() ||
        byteSizeOf(result) >= byteSizeOf(argument) ||
        llvm::is_contained(readersOf(result), stage.getYield()))
      return std::nullopt;
    return Copy(
        stage.getStates()[argument.getArgNumber() - stage.getNumInputs()],
        result.getType());
  }

  /// Whether all that reads the value comes before `op`; who waits for an
  /// exchange of it is a reader, too.
  static bool isReadBefore(Value value, Operation *op) {
    return llvm::all_of(readersOf(value), [op](Operation *reader) {
      return reader->isBeforeInBlock(op);
    });
  }

  /// Makes the update leave what `roundings` do. Returns whether it does.
  static bool replace(Store &store, ArrayRef<FusionOp> roundings,
                      int64_t number) {
    FusionOp maker = store.maker();
    for (FusionOp rounding : roundings)
      if (rounding->getParentOp() == store.stage &&
          (!maker || !isReadBefore(rounding->getResult(0), maker)))
        return false;
    FusionOp first = roundings.front();
    auto op = cast<CastOp>(first.getBody().front().front());
    Type type = first->getResult(0).getType();
    setCopy(maker ? withCast(maker, store.result, op, type)
                  : castOf(store.value(), op, type),
            number);
    for (FusionOp rounding : roundings) {
      rounding->setAttr(kOnce, UnitAttr::get(rounding.getContext()));
      setCopy(rounding, number);
    }
    return true;
  }

  /// The last result is that copy.
  static void setCopy(FusionOp fusion, int64_t number) {
    SmallVector<int64_t> copies(fusion->getNumResults(), -1);
    if (auto known = fusion->getAttrOfType<DenseI64ArrayAttr>(kCopies))
      llvm::copy(known.asArrayRef(), copies.begin());
    copies.back() = number;
    fusion->setAttr(kCopies,
                    DenseI64ArrayAttr::get(fusion.getContext(), copies));
  }

  /// The kernel with one more result: what it gives as the stage's `result`,
  /// cast.
  static FusionOp withCast(FusionOp maker, unsigned result, CastOp op,
                           Type type) {
    auto stage = cast<LocalStageOp>(maker->getParentOp());
    auto made = cast<OpResult>(stage.getYield()->getOperand(result));
    SmallVector<Type> types(maker->getResultTypes());
    types.push_back(type);
    OpBuilder builder(maker);
    auto more =
        FusionOp::create(builder, maker.getLoc(), types, maker.getOperands());
    more->setDiscardableAttrs(maker->getDiscardableAttrDictionary());
    more.getBody().takeBody(maker.getBody());
    Operation *yield = more.getBody().front().getTerminator();
    builder.setInsertionPoint(yield);
    IRMapping mapping;
    mapping.map(op.getOperand(), yield->getOperand(made.getResultNumber()));
    yield->insertOperands(yield->getNumOperands(),
                          builder.clone(*op, mapping)->getResult(0));
    maker->replaceAllUsesWith(more->getResults().drop_back());
    maker->erase();
    return more;
  }

  /// A kernel of its own at the end of the list.
  static FusionOp castOf(Value value, CastOp op, Type type) {
    OpBuilder builder(value.getParentBlock()->getTerminator());
    auto fusion = FusionOp::create(builder, op.getLoc(), type, value);
    Block &body = fusion.getBody().emplaceBlock();
    IRMapping mapping;
    mapping.map(op.getOperand(),
                body.addArgument(value.getType(), value.getLoc()));
    builder.setInsertionPointToEnd(&body);
    LocalYieldOp::create(builder, op.getLoc(),
                         builder.clone(*op, mapping)->getResults());
    return fusion;
  }
};

} // namespace
