//===- SkipWidening.cpp - Numbers that are as narrow again ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/Tensors.h"

#include "llvm/ADT/SetVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_SKIPWIDENING
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether each number of the one type is one of the other.
static bool isWider(Type type, Type than) {
  auto wide = dyn_cast<FloatType>(type), narrow = dyn_cast<FloatType>(than);
  return wide && narrow &&
         APFloat::isRepresentableBy(narrow.getFloatSemantics(),
                                    wide.getFloatSemantics());
}

namespace {

/// Values as what they were widened from.
class NarrowValues {
public:
  explicit NarrowValues(MLIRContext *context) : builder(context) {}

  /// Notes of what type all elements of the result were. Operations come in
  /// order.
  void note(Operation *op) {
    if (auto cast = dyn_cast<CastOp>(op))
      from[cast.getResult()] = elementType(cast.getOperand());
    if (!isMove(op))
      return;
    Type first = from.lookup(op->getOperand(0));
    if (first && llvm::all_of(op->getOperands(), [&](Value operand) {
          return from.lookup(operand) == first;
        }))
      from[op->getResult(0)] = first;
  }

  /// Returns null where not all elements of `wide` were of type `narrow`.
  Value find(Value wide, Type narrow) {
    if (from.lookup(wide) != narrow)
      return {};
    auto cast = wide.getDefiningOp<CastOp>();
    return cast ? cast.getOperand() : move(wide.getDefiningOp(), narrow);
  }

private:
  static bool isMove(Operation *op) { return isView(op) || isa<ConcatOp>(op); }

  /// What `last` and all moves before it move is narrow from then on.
  Value move(Operation *last, Type narrow) {
    llvm::SetVector<Operation *> moves;
    moves.insert(last);
    for (size_t i = 0; i < moves.size(); ++i)
      for (Value operand : moves[i]->getOperands())
        if (Operation *op = operand.getDefiningOp(); isMove(op))
          moves.insert(op);
    SmallVector<Operation *> order = moves.takeVector();
    llvm::sort(order, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    Value moved;
    for (Operation *op : order)
      moved = moveNarrow(op, narrow);
    return moved;
  }

  /// Operands are widened, as those before are.
  Value moveNarrow(Operation *op, Type narrow) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(operand.getDefiningOp<CastOp>().getOperand());
    builder.setInsertionPoint(op);
    Operation *moved = builder.clone(*op);
    moved->setOperands(operands);
    Value wide = op->getResult(0), result = moved->getResult(0);
    result.setType(tensorType(wide).clone(narrow));
    // It is moved once, for all that read it.
    Value widened =
        CastOp::create(builder, op->getLoc(), wide.getType(), result);
    from[widened] = narrow;
    wide.replaceAllUsesWith(widened);
    return result;
  }

  OpBuilder builder;
  llvm::DenseMap<Value, Type> from;
};

struct SkipWideningPass : codegen::impl::SkipWideningBase<SkipWideningPass> {
  /// E.g. bf16 that a gradient wants in f32, and a product in bf16 again.
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      NarrowValues values(stage.getContext());
      for (Operation &op : stage.getBlock()) {
        values.note(&op);
        auto cast = dyn_cast<CastOp>(op);
        if (!cast)
          continue;
        Value wide = cast.getOperand();
        Type narrow = elementType(cast.getResult());
        if (!isWider(elementType(wide), narrow))
          continue;
        if (Value same = values.find(wide, narrow))
          cast.getResult().replaceAllUsesWith(same);
      }
      removeUnused(stage.getBlock());
    });
  }
};

} // namespace
