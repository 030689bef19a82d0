//===- VerifyStores.cpp - What becomes of a state -------------------------===//
//
// A step of training that has no finite gradient changes nothing, so that what
// it stores is a choice between the new value and the one that it loaded. By
// that it is known whose new value it is.
//
//===----------------------------------------------------------------------===//
#include "Verifier.h"

#include "ax/Dialect/Evaluation.h"
#include "ax/Dialect/Random.h"
#include "ax/Dialect/TrainingAttrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ax;

namespace {

/// The states that a value may be unchanged: none, one, or several.
struct Kept {
  StringAttr state;
  bool isSeveral = false;

  void add(const Kept &other) {
    isSeveral |=
        other.isSeveral || (state && other.state && state != other.state);
    if (!state)
      state = other.state;
  }
};

class StoreVerifier {
public:
  explicit StoreVerifier(ProgramOp program) : program(program) {}
  void verify();

private:
  void collect(StageOp stage);
  Kept of(Value value) const { return kept.lookup(value); }
  bool isMadeOf(Value value, StringAttr state) const;
  void verifyStore(StoreOp store);
  void verifyNothingIsForgotten();

  ProgramOp program;
  llvm::DenseMap<Value, Kept> kept;
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

void StoreVerifier::collect(StageOp stage) {
  Block &body = stage.getBody().front();
  for (Value argument : body.getArguments())
    kept[argument] = of(sourceOf(argument));
  for (Operation &op : body.without_terminator()) {
    if (auto load = dyn_cast<LoadOp>(op))
      kept[load.getResult()] = {load.getStateAttr().getAttr(), false};
    if (auto select = dyn_cast<SelectOp>(op)) {
      Kept both = of(select.getOnTrue());
      both.add(of(select.getOnFalse()));
      kept[select.getResult()] = both;
    }
    for (Value result : op.getResults())
      if (Value source = sourceOf(result))
        kept[result] = of(source);
  }
  for (Value result : stage.getResults())
    kept[result] = of(sourceOf(result));
}

/// Whether it is computed from that state, and others perhaps.
bool StoreVerifier::isMadeOf(Value value, StringAttr state) const {
  llvm::DenseSet<Value> seen{value};
  SmallVector<Value> left{value};
  auto add = [&](Value operand) {
    if (operand && seen.insert(operand).second)
      left.push_back(operand);
  };
  while (!left.empty()) {
    Value next = left.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (auto load = dyn_cast_or_null<LoadOp>(op);
        load && load.getStateAttr().getAttr() == state)
      return true;
    if (!op || isa<StageOp>(op))
      add(sourceOf(next));
    else
      llvm::for_each(op->getOperands(), add);
  }
  return false;
}

void StoreVerifier::verifyStore(StoreOp store) {
  StringAttr state = store.getStateAttr().getAttr();
  Kept value = of(store.getOperand());
  if (value.state == state && !value.isSeveral)
    return;
  // Steps are counted since the loss's scale has changed, whatever they were.
  if (!value.state && state == kFiniteSteps.str() &&
      isMadeOf(store.getOperand(), state))
    return;
  InFlightDiagnostic fault = store.emitOpError();
  fault << "stores in @" << store.getState()
        << " a value that is no choice between a new one and that of @"
        << store.getState() << " before";
  if (value.state)
    fault << ", but one of @" << value.state.getValue();
}

/// What is zero at first would be zero in every step.
void StoreVerifier::verifyNothingIsForgotten() {
  llvm::DenseSet<StringAttr> loaded, stored;
  program.walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      loaded.insert(load.getStateAttr().getAttr());
    if (auto store = dyn_cast<StoreOp>(op))
      stored.insert(store.getStateAttr().getAttr());
  });
  auto plan = cast<PlanOp>(program->getParentOp());
  for (auto state : plan.getBody().getOps<StateOp>()) {
    StringAttr name = state.getSymNameAttr();
    if (state.isZeroAtFirst() && loaded.contains(name) &&
        !stored.contains(name) && name != kRandomSeed.str())
      state.emitOpError() << "is zero at first, and no step of @"
                          << program.getSymName() << " stores it";
  }
}

void StoreVerifier::verify() {
  bool trains = false;
  for (unsigned i = 0, e = program.getNumResults(); i < e; ++i)
    trains |= program.getResultName(i) == "gradient_norm";
  for (Operation &op : program.getBody().front()) {
    if (auto transfer = dyn_cast<TransferOp>(op))
      kept[transfer.getResult()] = of(transfer.getOperand());
    else if (auto stage = dyn_cast<StageOp>(op))
      collect(stage);
  }
  for (StageOp stage : program.getBody().getOps<StageOp>())
    for (auto store : stage.getBody().getOps<StoreOp>())
      if (program.getSymName() == evaluationProgram)
        store.emitOpError() << "stores @" << store.getState()
                            << ", but an evaluation changes no state";
      else if (trains)
        verifyStore(store);
  if (trains)
    verifyNothingIsForgotten();
}

void plan::verifyStores(ProgramOp program) { StoreVerifier(program).verify(); }
