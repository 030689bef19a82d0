//===- VerifyStores.cpp - What becomes of a state -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of training that has no finite gradient changes nothing, so that what
// it stores is a choice between the new value and the one that it loaded. By
// that, and by what the new value is made of element by element, it is known
// whose new value it is.
//
//===----------------------------------------------------------------------===//
#include "ValueNumbers.h"
#include "Verifier.h"

#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Random.h"
#include "ax/Dialect/TrainingAttrs.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;
using namespace ax;

namespace {

class StoreVerifier {
public:
  explicit StoreVerifier(ProgramOp program)
      : program(program), numbers(program) {}
  void verify();

private:
  Value resultOf(ResultRole role);
  bool isFinite(Value condition) const;
  void verifyStore(StoreOp store);
  void verifyNothingIsForgotten(bool trains);
  void verifyNothingIsInVain();

  ProgramOp program;
  plan::ValueNumbers numbers;
  /// The numbers of the loss and of the norm of the gradient.
  std::set<int64_t> finite;
  /// The state in which each new value is stored, by the value's number.
  llvm::DenseMap<int64_t, StringAttr> storedIn;
};

} // namespace

/// What `value` is on another list or stage, or in another layout.
static Value sourceOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto stage = dyn_cast<StageOp>(argument.getOwner()->getParentOp());
    return stage ? stage.getOperand(argument.getArgNumber()) : Value();
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (auto stage = dyn_cast<StageOp>(op))
    return stage.getBody().front().getTerminator()->getOperand(
        result.getResultNumber());
  if (isa<TransferOp, WaitOp>(op))
    return op->getOperand(0);
  if (isa<CollectiveOpInterface>(op))
    return op->getOperand(result.getResultNumber());
  return {};
}

/// What computes it.
static Value originOf(Value value) {
  while (Value source = sourceOf(value))
    value = source;
  return value;
}

/// The state whose value it is, as the step found it.
static StringAttr loadedFrom(Value value) {
  auto load = originOf(value).getDefiningOp<LoadOp>();
  return load ? load.getStateAttr().getAttr() : StringAttr();
}

/// The states that it is made of element by element, moved or not: of a
/// gradient, none. `withConditions`: also those that say what is chosen; of a
/// choice itself, these are added to `conditions`, if it is given, instead.
static llvm::DenseSet<StringAttr>
statesOf(Value value, bool withConditions,
         SmallVectorImpl<Value> *conditions = nullptr) {
  llvm::DenseSet<StringAttr> states;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> left{value};
  while (!left.empty()) {
    Value next = originOf(left.pop_back_val());
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (StringAttr state = loadedFrom(next)) {
      states.insert(state);
    } else if (isa_and_nonnull<SelectOp>(op)) {
      bool isLeft = withConditions && !conditions;
      llvm::append_range(left, op->getOperands().drop_front(!isLeft));
      if (conditions)
        conditions->push_back(originOf(op->getOperand(0)));
    } else if (isa_and_nonnull<BinaryOp, UnaryOp, CastOp, ReshapeOp,
                               TransposeOp, BroadcastOp, SliceOp, ConcatOp>(
                   op) ||
               (withConditions && isa_and_nonnull<CompareOp>(op))) {
      llvm::append_range(left, op->getOperands());
    }
  }
  return states;
}

Value StoreVerifier::resultOf(ResultRole role) {
  std::optional<unsigned> number = program.findResult(role);
  Operation *end = program.getBody().front().getTerminator();
  return number ? end->getOperand(*number) : Value();
}

/// Whether it says that the loss and the norm of the gradient are numbers.
bool StoreVerifier::isFinite(Value condition) const {
  auto both = originOf(condition).getDefiningOp<BinaryOp>();
  if (!both || both.getKind() != BinaryKind::logical_and)
    return false;
  std::set<int64_t> checked;
  for (Value operand : both->getOperands()) {
    auto compare = originOf(operand).getDefiningOp<CompareOp>();
    if (!compare || compare.getKind() != CompareKind::lt)
      return false;
    auto magnitude = originOf(compare.getLhs()).getDefiningOp<UnaryOp>();
    if (!magnitude || magnitude.getKind() != UnaryKind::abs ||
        !matchPattern(originOf(compare.getRhs()), m_PosInfFloat()))
      return false;
    checked.insert(numbers.of(magnitude->getOperand(0)));
  }
  return checked == finite;
}

void StoreVerifier::verifyStore(StoreOp store) {
  StringAttr state = store.getStateAttr().getAttr();
  auto fault = [&]() -> InFlightDiagnostic {
    return store.emitOpError() << "stores in @" << store.getState() << " ";
  };
  auto choice = originOf(store.getOperand()).getDefiningOp<SelectOp>();
  // How often the loss's scale may stay what it is changes in any case.
  bool isOfScale = state == kLossScale.str() || state == kFiniteSteps.str();
  if (!choice || (!isOfScale && loadedFrom(choice.getOnFalse()) != state)) {
    fault() << "a value that is no choice between a new one and that of @"
            << store.getState() << " before";
    return;
  }
  if (!isFinite(choice.getCondition())) {
    fault() << "a choice by something else than whether the loss and the norm "
               "of the gradient are finite";
    return;
  }
  Value fresh = isOfScale ? choice.getResult() : choice.getOnTrue();
  if (loadedFrom(fresh) || !statesOf(fresh, false).contains(state)) {
    fault() << "what is not made of its value before";
    return;
  }
  StringAttr other =
      storedIn.try_emplace(numbers.of(fresh), state).first->second;
  if (other != state)
    fault() << "the new value of @" << other.getValue();
}

/// What is zero at first would be zero in every step. A program that trains
/// stores it itself; of others, one of the plan's programs does.
void StoreVerifier::verifyNothingIsForgotten(bool trains) {
  llvm::DenseSet<StringAttr> loaded, stored;
  auto plan = cast<PlanOp>(program->getParentOp());
  program.walk(
      [&](LoadOp load) { loaded.insert(load.getStateAttr().getAttr()); });
  Operation *storing = trains ? program.getOperation() : plan.getOperation();
  storing->walk(
      [&](StoreOp store) { stored.insert(store.getStateAttr().getAttr()); });
  for (auto state : plan.getBody().getOps<StateOp>()) {
    StringAttr name = state.getSymNameAttr();
    if (state.isZeroAtFirst() && loaded.contains(name) &&
        !stored.contains(name) && name != kRandomSeed.str())
      state.emitOpError() << "is zero at first, and no step of @"
                          << program.getSymName() << " stores it";
  }
}

/// A moment that no weight's step is made of: the weight would stay as it is.
/// Steps are counted for resuming, too.
///
/// All stores choose by one condition, behind which are all gradients: what it
/// is made of is found once.
void StoreVerifier::verifyNothingIsInVain() {
  llvm::DenseSet<StringAttr> stored, used;
  llvm::DenseMap<Value, llvm::DenseSet<StringAttr>> ofConditions;
  for (Value result : program.getBody().front().getTerminator()->getOperands())
    used.insert_range(statesOf(result, true));
  program.walk([&](StoreOp store) {
    StringAttr state = store.getStateAttr().getAttr();
    stored.insert(state);
    SmallVector<Value> conditions;
    llvm::DenseSet<StringAttr> made =
        statesOf(store.getOperand(), true, &conditions);
    for (Value condition : conditions) {
      auto [at, isNew] = ofConditions.try_emplace(condition);
      if (isNew)
        at->second = statesOf(condition, true);
      made.insert_range(at->second);
    }
    made.erase(state);
    used.insert_range(made);
  });
  // Scales of what is rounded to eight bits: of many, no weight is made
  // element by element.
  program.walk([&](CastOp cast) {
    if (isFloat8(tensorType(cast).getElementType()))
      used.insert_range(statesOf(cast.getOperand(), true));
  });
  auto plan = cast<PlanOp>(program->getParentOp());
  for (auto state : plan.getBody().getOps<StateOp>()) {
    StringAttr name = state.getSymNameAttr();
    if (state.isZeroAtFirst() && stored.contains(name) &&
        !used.contains(name) &&
        isa<FloatType>(state.getTensorType().getElementType()))
      state.emitOpError() << "is stored by @" << program.getSymName()
                          << ", and nothing else that this stores or gives is "
                             "made of it";
  }
}

void StoreVerifier::verify() {
  Value norm = resultOf(ResultRole::gradient_norm),
        loss = resultOf(ResultRole::loss);
  if (norm && loss)
    finite = {numbers.of(norm), numbers.of(loss)};
  bool changesNothing = isEvaluationMode(program.getSymName());
  program.walk([&](StoreOp store) {
    if (changesNothing)
      store.emitOpError() << "stores @" << store.getState() << ", but @"
                          << program.getSymName() << " changes no state";
    else if (norm)
      verifyStore(store);
  });
  bool trains = !changesNothing && norm;
  verifyNothingIsForgotten(trains);
  if (trains)
    verifyNothingIsInVain();
}

void plan::verifyStores(ProgramOp program) { StoreVerifier(program).verify(); }
