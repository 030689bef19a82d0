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
// from it. Where q is cut to less than its type has before that, there is no
// gradient of what is cut off.
//
//===----------------------------------------------------------------------===//

#include "../Match.h"
#include "Quantised.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Dialect/WeightKind.h"
#include "ax/Gradients/TensorBuilder.h"
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
    op->setAttr(kNoGradient, UnitAttr::get(op->getContext()));
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

  /// Whether `to` has all numbers of `from`, which has fewer bits.
  static bool holdsAll(IntegerType to, IntegerType from) {
    return to.getWidth() > from.getWidth() &&
           (!to.isUnsigned() || from.isUnsigned());
  }

  /// Integers that no training changes and that f32 has exactly, differences
  /// with numbers of 16 bits included: zero points, ends of a range.
  static bool isSmall(Value integer) {
    while (Operation *op = integer.getDefiningOp()) {
      auto type = dyn_cast<IntegerType>(elementType(integer));
      if (!type)
        return false;
      if (auto constant = dyn_cast<ConstantOp>(op)) {
        auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue());
        return values && llvm::all_of(values, [&](const APInt &value) {
                 return type.isUnsigned() ? value.getActiveBits() < 24
                                          : value.getSignificantBits() <= 24;
               });
      }
      // Zero points of many channels are a state, whose type says enough.
      if (isa<LoadOp>(op))
        return type.getWidth() <= 16;
      if (op->getNumOperands() == 0)
        return false;
      integer = op->getOperand(0);
      bool isWider = isa<CastOp>(op) &&
                     isa<IntegerType>(elementType(integer)) &&
                     holdsAll(type, cast<IntegerType>(elementType(integer)));
      if (!isWider && !isa<ReshapeOp, TransposeOp, BroadcastOp>(op))
        return false;
    }
    return false;
  }

  /// Whether `type` has the difference of a quantised number and a small one.
  static bool holdsDifferences(Type type) {
    auto integer = dyn_cast<IntegerType>(type);
    return integer && !integer.isUnsigned() && integer.getWidth() >= 32;
  }

  /// Returns by what, max or min, `user` cuts `integer` to a range, and the end
  /// of that range.
  static std::optional<std::pair<BinaryKind, Value>> cutOf(Operation *user,
                                                           Value integer) {
    auto binary = dyn_cast<BinaryOp>(user);
    if (!binary || (binary.getKind() != BinaryKind::max &&
                    binary.getKind() != BinaryKind::min))
      return std::nullopt;
    Value end = binary.getLhs() == integer ? binary.getRhs() : binary.getLhs();
    if (!isSmall(end))
      return std::nullopt;
    return std::make_pair(binary.getKind(), end);
  }

  /// Makes floats, which `users` make of `integer` by no more than moves, zero
  /// points and ends of a range, of `number`, which has the same value. What
  /// may wrap is not followed.
  static void replaceFloats(Value integer, ArrayRef<Operation *> users,
                            Value number) {
    for (Operation *user : users) {
      MarkStageAndAction mark(Action::Forward, user->getAttr(kStage));
      OpBuilder builder(user->getContext(), &mark);
      builder.setInsertionPointAfter(user);
      TensorBuilder t(user->getLoc(), builder);
      Value moved;
      if (isa<CastOp>(user)) {
        Type type = elementType(user->getResult(0));
        if (isa<FloatType>(type))
          user->getResult(0).replaceAllUsesWith(t.cast(number, type));
        else if (holdsAll(cast<IntegerType>(type),
                          cast<IntegerType>(elementType(integer))))
          moved = number;
      } else if (auto sub = dyn_cast<BinaryOp>(user);
                 sub && sub.getKind() == BinaryKind::sub &&
                 sub.getLhs() == integer && isSmall(sub.getRhs()) &&
                 holdsDifferences(elementType(integer))) {
        moved = t.sub(number, t.cast(sub.getRhs(), builder.getF32Type()));
      } else if (auto cut = cutOf(user, integer)) {
        Value end = t.cast(cut->second, builder.getF32Type());
        bool isLeast = cut->first == BinaryKind::max;
        CompareKind kind = isLeast ? CompareKind::ge : CompareKind::le;
        moved = t.select(t.compare(kind, number, end), number, end);
      } else if (isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp>(user)) {
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
