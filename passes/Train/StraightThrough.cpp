//===- StraightThrough.cpp - Gradients of quantised numbers ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding has a gradient of zero almost everywhere. Who trains a model whose
// numbers are rounded wants that of what is rounded, where it is inside of the
// range: the straight-through estimator (Bengio et al. 2013, arXiv:1308.3432),
// as PyTorch's fake_quantize has it. So of
//
//   q = cast(min(max(round(u) + z, low), high)) to i8;  y = cast(q - z) to f32
//
// y becomes (low <= w <= high ? w : cast(q)) - z for w = (u + r) + z, where
// r = round(u) - u carries no gradient. No number changes: r and u + r are
// exact, since what is rounded to the next whole number is less than 1 away
// from it.
//
//===----------------------------------------------------------------------===//

#include "../StageAndAction.h"
#include "Quantised.h"
#include "TensorBuilder.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/WeightKind.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace ax {
#define GEN_PASS_DEF_STRAIGHTTHROUGH
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

std::optional<Quantised> ax::matchQuantised(CastOp cast) {
  auto type = dyn_cast<IntegerType>(elementType(cast.getResult()));
  if (!type || (type.getWidth() != 8 && type.getWidth() != 16) ||
      !elementType(cast.getOperand()).isF32())
    return std::nullopt;
  unsigned width = type.getWidth();
  Quantised found;
  found.low = type.isUnsigned() ? 0 : -std::ldexp(1, width - 1);
  found.high = std::ldexp(1, type.isUnsigned() ? width : width - 1) - 1;
  auto is = [](double number) {
    return [number](Value value) { return isExactSplat(value, number); };
  };
  auto below =
      matchCommutative(cast.getOperand(), BinaryKind::min, is(found.high));
  if (!below)
    return std::nullopt;
  auto inside = matchCommutative(below->second, BinaryKind::max, is(found.low));
  if (!inside)
    return std::nullopt;
  found.whole = inside->second;
  return found;
}

/// The rounding that gives `value`, which may be another float type's then.
static UnaryOp roundingOf(Value value) {
  if (auto cast = value.getDefiningOp<CastOp>();
      cast && isa<FloatType>(elementType(cast.getOperand())))
    value = cast.getOperand();
  return unaryOf(value, UnaryKind::round);
}

namespace {

struct StraightThrough : ax::impl::StraightThroughBase<StraightThrough> {
  void runOnOperation() final {
    PlanOp plan = getOperation();
    SymbolTable states(plan);
    for (auto program : plan.getBody().getOps<ProgramOp>())
      if (!isEvaluationMode(program.getSymName()))
        rewrite(program, states);
  }

  void rewrite(ProgramOp program, SymbolTable &states) {
    // What may be trained takes part in these.
    DenseSet<Value> active;
    SmallVector<CastOp> found;
    for (Operation &op : program.getBody().front()) {
      auto load = dyn_cast<LoadOp>(op);
      if (load ? !states.lookup(load.getState())->hasAttr(kMayBeTrained)
               : llvm::none_of(op.getOperands(), [&](Value operand) {
                   return active.contains(operand);
                 }))
        continue;
      active.insert(op.result_begin(), op.result_end());
      if (auto cast = dyn_cast<CastOp>(op); cast && matchQuantised(cast))
        found.push_back(cast);
    }
    for (CastOp cast : found)
      passThrough(cast);
  }

  void passThrough(CastOp cast) {
    Quantised quantised = *matchQuantised(cast);
    MarkStageAndAction mark(Action::Forward, cast->getAttr(kStage));
    OpBuilder builder(&getContext(), &mark);
    builder.setInsertionPointAfter(cast);
    TensorBuilder t(cast.getLoc(), builder);
    Value whole = withGradient(t, quantised.whole);
    if (!whole)
      return;
    SmallVector<Operation *> users(cast->getUsers());
    Value notBelow = t.compare(CompareKind::ge, quantised.whole, quantised.low);
    Value notAbove =
        t.compare(CompareKind::le, quantised.whole, quantised.high);
    Value isInside = t.binary(BinaryKind::logical_and, notBelow, notAbove);
    Value cut = withoutGradient(t.cast(cast, builder.getF32Type()));
    replaceFloats(cast, users, t.select(isInside, whole, cut));
  }

  static Value withoutGradient(Value value) {
    Operation *op = value.getDefiningOp();
    op->setAttr("ax.no_gradient", UnitAttr::get(op->getContext()));
    return value;
  }

  /// `whole`, a rounded float or one with a zero point, as the sum of what is
  /// rounded and of what has no gradient; null when it is something else.
  static Value withGradient(TensorBuilder &t, Value whole) {
    if (UnaryOp rounding = roundingOf(whole)) {
      Value units = t.cast(rounding.getOperand(), elementType(whole));
      return t.add(units, withoutGradient(t.sub(whole, units)));
    }
    auto sum = matchCommutative(whole, BinaryKind::add, [](Value value) {
      return bool(roundingOf(value));
    });
    return sum ? t.add(withGradient(t, sum->first), sum->second) : Value();
  }

  /// Floats that `users` of an integer make of it by no more than moves and
  /// zero points are made of `number`, which has the same value.
  static void replaceFloats(Value integer, ArrayRef<Operation *> users,
                            Value number) {
    for (Operation *user : users) {
      MarkStageAndAction mark(Action::Forward, user->getAttr(kStage));
      OpBuilder builder(user->getContext(), &mark);
      builder.setInsertionPointAfter(user);
      TensorBuilder t(user->getLoc(), builder);
      Value moved;
      if (auto cast = dyn_cast<CastOp>(user)) {
        Type type = elementType(cast.getResult());
        if (isa<FloatType>(type))
          cast.getResult().replaceAllUsesWith(t.cast(number, type));
        else if (type.getIntOrFloatBitWidth() >
                 elementType(integer).getIntOrFloatBitWidth())
          moved = number;
      } else if (auto sub = dyn_cast<BinaryOp>(user);
                 sub && sub.getKind() == BinaryKind::sub &&
                 sub.getLhs() == integer && sub.getRhs() != integer) {
        moved = t.sub(number, t.cast(sub.getRhs(), builder.getF32Type()));
      } else if (isa<ReshapeOp, TransposeOp>(user)) {
        Operation *clone = builder.clone(*user);
        clone->setOperand(0, number);
        moved = clone->getResult(0);
        moved.setType(tensorType(moved).clone(builder.getF32Type()));
      }
      if (moved)
        replaceFloats(user->getResult(0),
                      SmallVector<Operation *>(user->getUsers()), moved);
    }
  }
};

} // namespace
