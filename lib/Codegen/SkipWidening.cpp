//===- SkipWidening.cpp - Numbers that are as narrow again ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/Tensors.h"

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

  /// Returns null where not all elements of `wide` were of type `narrow`.
  Value find(Value wide, Type narrow) {
    Operation *op = wide.getDefiningOp();
    if (auto cast = dyn_cast_or_null<CastOp>(op))
      return elementType(cast.getOperand()) == narrow ? cast.getOperand()
                                                      : Value();
    if (!isView(op) && !isa_and_present<ConcatOp>(op))
      return {};
    if (auto known = found.find({wide, narrow}); known != found.end())
      return known->second;
    return found[{wide, narrow}] = move(op, narrow);
  }

private:
  Value move(Operation *op, Type narrow) {
    SmallVector<Value> operands;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Value from = find(op->getOperand(i), narrow);
      if (!from)
        return {};
      operands.push_back(from);
    }
    builder.setInsertionPoint(op);
    Operation *moved = builder.clone(*op);
    moved->setOperands(operands);
    Value wide = op->getResult(0), result = moved->getResult(0);
    result.setType(tensorType(wide).clone(narrow));
    // It is moved once, for all that read it.
    wide.replaceAllUsesWith(
        CastOp::create(builder, op->getLoc(), wide.getType(), result));
    return result;
  }

  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, Type>, Value> found;
};

struct SkipWideningPass : codegen::impl::SkipWideningBase<SkipWideningPass> {
  /// E.g. bf16 that a gradient wants in f32, and a product in bf16 again.
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      NarrowValues values(stage.getContext());
      for (auto cast : stage.getBlock().getOps<CastOp>()) {
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
