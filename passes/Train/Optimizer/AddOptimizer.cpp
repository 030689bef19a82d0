//===- AddOptimizer.cpp - From gradients to new states --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradients are of a sum over samples; here they are divided by their
// number, clipped by their global norm, and given to the optimizer's rule.
//
//===----------------------------------------------------------------------===//
#include "../BatchCheck.h"
#include "../Loss/LossScale.h"
#include "../MarkBackward.h"
#include "../TrainingState.h"
#include "LearningRate.h"
#include "ParameterGroup.h"
#include "UpdateRule.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Random.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

namespace ax {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// The options of one parameter.
struct Rates {
  double learningRate, weightDecay;
};

class OptimizerAdder {
public:
  OptimizerAdder(ProgramOp program, UpdateRule &rule,
                 const LearningRateSchedule &schedule,
                 ArrayRef<ParameterGroup> groups,
                 ArrayRef<FrozenRows> frozenRows, double clipNorm)
      : program(program), plan(program->getParentOfType<PlanOp>()), rule(rule),
        schedule(schedule), groups(groups), frozenRows(frozenRows),
        clipNorm(clipNorm),
        output(cast<ReturnOp>(program.getBody().front().getTerminator())),
        builder(output, &mark), t(output.getLoc(), builder) {}

  LogicalResult run();

private:
  class ParameterUpdate;
  struct Parameter {
    StateOp state;
    Value gradient;
    /// Where the gradient is made.
    Attribute stage;
    llvm::SmallVector<int64_t> frozenRows;
    /// Whether each row is frozen; null: none is.
    Value isFrozen;
  };

  /// The program's result of that name, which is taken away.
  /// Takes it off the program's results; null where there is no such one.
  Value takeResult(unsigned number);
  Value takeResult(ResultRole role);
  Value takeGradient(StateOp state);
  LogicalResult collect();
  /// A group of states of which none has a gradient is an error.
  LogicalResult checkGroups();
  LogicalResult freezeRows();
  /// `value`, or in frozen rows `otherwise` (null: 0).
  Value unfrozen(const Parameter &parameter, Value value,
                 Value otherwise = {}) {
    if (!parameter.isFrozen)
      return value;
    return t.select(parameter.isFrozen,
                    otherwise ? otherwise : t.number(value, 0), value);
  }
  void addResult(ResultRole role, Value value);
  LogicalResult storeUpdates();
  void guardStores();

  /// One load of a state in the program: it has one layout.
  Value load(StateOp state) {
    Value &known = loads[state];
    if (!known)
      known = LoadOp::create(t.b, state.getTensorType(), state.getSymName());
    return known;
  }
  /// A step without a finite gradient changes nothing. Gives what is stored:
  /// who reads that, and not `value`, needs no second copy.
  Value store(StateOp state, Value value) {
    Value stored = t.select(isFinite, value, load(state));
    StoreOp::create(t.b, state.getSymName(), stored);
    return stored;
  }
  /// A state that the model does not have, zero at first.
  StateOp ownState(const Twine &name, RankedTensorType type);
  Value scalar(double value, Type element) {
    return t.splat({}, element, value);
  }
  Value takeScale();
  void updateScale();
  Value globalNorm(Value divisor);
  void countStep();
  Rates ratesOf(StateOp state) const;
  void update(Parameter &parameter, Value scale);

  ProgramOp program;
  PlanOp plan;
  SymbolTable states{plan};
  UpdateRule &rule;
  const LearningRateSchedule &schedule;
  ArrayRef<ParameterGroup> groups;
  ArrayRef<FrozenRows> frozenRows;
  double clipNorm;
  ReturnOp output;
  /// Where its stage is null, every one that needs what is made makes it.
  MarkStageAndAction mark{Action::Update};
  OpBuilder builder;
  TensorBuilder t;
  std::vector<Parameter> parameters;
  llvm::DenseMap<Operation *, Value> loads;
  /// The names of new states are free.
  bool isSound = true;
  /// Loss and gradient norm are finite numbers: one decision for all ranks.
  Value isFinite;
  /// The exponent of the loss's scale; null: it has none.
  Value exponent;
  /// f64 scalars: the number of this step, from 1, and the schedule's factor.
  Value step, factor;
};

} // namespace

Value OptimizerAdder::takeResult(unsigned number) {
  Value value = output.getOperand(number);
  output.getOperandsMutable().erase(number);
  (void)program.eraseResult(number);
  return value;
}

Value OptimizerAdder::takeResult(ResultRole role) {
  std::optional<unsigned> number = program.findResult(role);
  return number ? takeResult(*number) : Value();
}

Value OptimizerAdder::takeGradient(StateOp state) {
  for (unsigned i = 0, e = program.getNumResults(); i < e; ++i)
    if (auto of =
            program.getResultAttrOfType<FlatSymbolRefAttr>(i, kGradientOf);
        of && of.getAttr() == state.getSymNameAttr())
      return takeResult(i);
  return {};
}

/// A stage where `gradient` is known.
static Attribute stageOf(Value gradient) {
  Operation *op = gradient.getDefiningOp();
  while (op && !op->hasAttr(kStage))
    op = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
  return op ? op->getAttr(kStage) : Attribute();
}

LogicalResult OptimizerAdder::checkGroups() {
  for (const ParameterGroup &group : groups) {
    auto holds = [&](StateOp state) {
      return group.contains(state.getSymName(),
                            state.getTensorType().getRank());
    };
    bool isTrained =
        llvm::any_of(plan.getBody().getOps<StateOp>(), [&](StateOp state) {
          return state.getTrainable() && holds(state);
        });
    bool hasGradient =
        llvm::any_of(parameters, [&](const Parameter &parameter) {
          return holds(parameter.state);
        });
    if (!hasGradient && !group.patterns.empty())
      return program.emitError("--param-group=")
             << llvm::join(group.patterns, "|") << ": "
             << (isTrained ? "the loss does not depend on such a weight"
                           : "no such weight is trained");
  }
  return success();
}

LogicalResult OptimizerAdder::collect() {
  for (auto load : output->getBlock()->getOps<LoadOp>())
    loads.try_emplace(states.lookup(load.getState()), load.getResult());
  for (StateOp state : plan.getBody().getOps<StateOp>())
    if (Value gradient = takeGradient(state))
      parameters.push_back({state, gradient, stageOf(gradient), {}, {}});
  if (parameters.empty())
    return program.emitError("has no gradients: differentiate it first");
  return checkGroups();
}

void OptimizerAdder::addResult(ResultRole role, Value value) {
  auto attributes = builder.getDictionaryAttr(builder.getNamedAttr(
      "ax.name", builder.getStringAttr(stringifyResultRole(role))));
  unsigned number = program.getNumResults();
  (void)program.insertResult(number, value.getType(), attributes);
  program.setRole(number, role);
  output.getOperandsMutable().append(value);
}

StateOp OptimizerAdder::ownState(const Twine &name, RankedTensorType type) {
  OpBuilder atStates(parameters.back().state->getContext());
  atStates.setInsertionPointAfter(parameters.back().state);
  auto state = getTrainingState(states, atStates, name.str(), type);
  if (state)
    return *state;
  program.emitError(describeError(state.takeError()).message);
  isSound = false;
  return StateOp::create(atStates, t.b.getLoc(), name.str(), type);
}

/// Freezes rows by leaving them without a gradient, so that neither the norm
/// nor a moment has any.
LogicalResult OptimizerAdder::freezeRows() {
  SmallVector<StateOp> trained;
  for (Parameter &parameter : parameters)
    trained.push_back(parameter.state);
  for (const FrozenRows &frozen : frozenRows) {
    auto found = findFrozen(trained, frozen);
    if (!found)
      return program.emitError(describeError(found.takeError()).message);
    for (Parameter &parameter : parameters)
      if (llvm::is_contained(*found, parameter.state))
        llvm::append_range(parameter.frozenRows,
                           rowsIn(parameter.state, frozen));
  }
  for (Parameter &parameter : parameters) {
    parameter.isFrozen =
        t.isRowOf(parameter.state.getTensorType(), parameter.frozenRows);
    parameter.gradient = unfrozen(parameter, parameter.gradient);
  }
  return success();
}

/// What all gradients are multiplied with besides; null: nothing.
Value OptimizerAdder::takeScale() {
  auto shift = program->getAttrOfType<IntegerAttr>(kLossShift);
  if (!shift)
    return {};
  program->removeAttr(kLossShift);
  takeResult(ResultRole::scaled_loss_sum);
  exponent = load(states.lookup<StateOp>(kLossScale));
  return getLossScale(t, exponent, shift.getInt());
}

/// Updates the loss's scale, also, and just then, when the step changes nothing
/// else.
void OptimizerAdder::updateScale() {
  addResult(ResultRole::loss_scale, getLossScale(t, exponent));
  StateOp steps =
      ownState(kFiniteSteps, cast<RankedTensorType>(exponent.getType()));
  LossScale after = updateLossScale(t, {exponent, load(steps)}, isFinite);
  StoreOp::create(t.b, kLossScale, after.exponent);
  StoreOp::create(t.b, kFiniteSteps, after.finiteSteps);
}

/// Returns the norm of the mean gradient, as PyTorch's clip_grad_norm_ does.
/// Each stage sums up for itself.
Value OptimizerAdder::globalNorm(Value divisor) {
  Type f32 = t.b.getF32Type();
  llvm::MapVector<Attribute, Value> sums;
  for (Parameter &parameter : parameters) {
    mark.stage = parameter.stage;
    Value g = t.cast(parameter.gradient, f32);
    Value squares =
        t.sum(t.mul(g, g), dimsFrom(0, tensorType(g).getRank()), false);
    Value &sum = sums[mark.stage];
    sum = sum ? t.add(sum, squares) : squares;
  }
  mark.stage = {};
  Value all;
  for (auto &[stage, sum] : sums)
    all = all ? t.add(all, sum) : sum;
  return t.div(t.unary(UnaryKind::sqrt, all), divisor);
}

void OptimizerAdder::countStep() {
  StateOp counter =
      ownState(kStepCounter, RankedTensorType::get({}, t.b.getI64Type()));
  Value next = t.add(load(counter), 1);
  store(counter, next);
  step = t.cast(next, t.b.getF64Type());
}

Rates OptimizerAdder::ratesOf(StateOp state) const {
  Rates rates{rule.learningRate, rule.weightDecay};
  for (const ParameterGroup &group : groups)
    if (group.contains(state.getSymName(), state.getTensorType().getRank())) {
      rates.learningRate = group.learningRate.value_or(rates.learningRate);
      rates.weightDecay = group.weightDecay.value_or(rates.weightDecay);
    }
  return rates;
}

/// A parameter's states and rates, for the rule.
class OptimizerAdder::ParameterUpdate : public WeightUpdate {
public:
  ParameterUpdate(OptimizerAdder &adder, const Parameter &parameter,
                  Value gradient, Rates rates)
      : WeightUpdate(adder.t, adder.load(parameter.state), gradient,
                     rates.weightDecay),
        adder(adder), parameter(parameter), learningRate(rates.learningRate) {}

  Value rate() final { return t.mul(adder.factor, learningRate); }
  Value kept(StringRef name) final { return adder.load(stateOf(name)); }
  Value keep(StringRef name, Value value) final {
    return adder.store(stateOf(name), value);
  }
  Value decayedGradient() final {
    if (weightDecay == 0)
      return gradient;
    return adder.unfrozen(parameter,
                          t.add(gradient, t.mul(weight, weightDecay)));
  }

private:
  StateOp stateOf(StringRef name) {
    StateOp weight = parameter.state;
    StateOp state = adder.ownState(weight.getSymName() + "." + name,
                                   weight.getTensorType());
    state.setDealtAttr(weight.getDealtAttr());
    return state;
  }

  OptimizerAdder &adder;
  const Parameter &parameter;
  double learningRate;
};

void OptimizerAdder::update(Parameter &parameter, Value scale) {
  t.nameOps("update of " + parameter.state.getSymName());
  Type f32 = t.b.getF32Type();
  Value gradient = t.mul(t.cast(parameter.gradient, f32), scale);
  ParameterUpdate u(*this, parameter, gradient, ratesOf(parameter.state));
  Value next = rule.update(u);
  store(parameter.state, unfrozen(parameter, next, load(parameter.state)));
}

LogicalResult OptimizerAdder::run() {
  if (failed(collect()))
    return failure();
  for (Parameter &parameter : parameters)
    if (!parameter.state.getTensorType().getElementType().isF32())
      return emitUnsupported(parameter.state)
             << "weight '" << parameter.state.getSymName()
             << "' is to be trained, but is " << parameter.state.getType()
             << ": only weights of f32, f16 and bf16 can be; export the model "
                "in f32, or give --frozen";
  if (failed(checkBatch(program)))
    return failure();
  Value sum = takeResult(ResultRole::loss_sum),
        count = takeResult(ResultRole::loss_count);
  if (!sum || !count)
    return program.emitError("has no loss: add one first");
  markBackward(program, {sum, count});
  if (failed(freezeRows()))
    return failure();
  Value divisor = count;
  if (Value lossScale = takeScale())
    divisor = t.mul(count, lossScale);
  t.nameOps("gradient norm");
  Value norm = globalNorm(divisor), loss = t.div(sum, count);
  auto finite = [&](Value x) {
    return t.compare(CompareKind::lt, t.unary(UnaryKind::abs, x),
                     std::numeric_limits<double>::infinity());
  };
  isFinite = t.binary(BinaryKind::logical_and, finite(loss), finite(norm));
  guardStores();
  if (failed(storeUpdates()))
    return failure();
  plan.needVersion(PlanOp::rolesVersion);
  // What the model gives is not wanted while it is trained.
  output.getOperandsMutable().clear();
  (void)program.eraseResults(llvm::BitVector(program.getNumResults(), true));
  addResult(ResultRole::loss, loss);
  addResult(ResultRole::gradient_norm, norm);
  Value scale = t.div(scalar(1, t.b.getF32Type()), divisor);
  if (clipNorm > 0) {
    Value allowed =
        t.div(scalar(clipNorm, t.b.getF32Type()), t.add(norm, 1e-6));
    scale = t.mul(
        scale, t.binary(BinaryKind::min, allowed, scalar(1, t.b.getF32Type())));
  }
  if (exponent)
    updateScale();
  countStep();
  factor = learningRateFactor(t, schedule, step);
  if (schedule.decay != LearningRateSchedule::Decay::None)
    program->setAttr(kLearningRateSteps, t.b.getI64IntegerAttr(schedule.steps));
  addResult(ResultRole::learning_rate,
            t.cast(t.mul(factor, rule.learningRate), t.b.getF32Type()));
  program->setAttr(kOptimizer, t.b.getStringAttr(rule.text));
  rule.beginStep(t, step);
  for (Parameter &parameter : parameters)
    update(parameter, scale);
  // What only outputs of the model needed is for nobody now.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return success(isSound);
}

/// What the model itself makes of its statistics.
LogicalResult OptimizerAdder::storeUpdates() {
  const sharding::Mesh &mesh = plan.getMesh();
  int64_t slices = mesh.numTimeSlices(), parts = slices;
  for (StringRef axis : {meshAxis::data, meshAxis::depth})
    parts *= mesh.axisSize(axis.str());
  for (auto [i, update] : llvm::enumerate(output.getOperands())) {
    Attribute given = program.getResultAttr(i, kStatistic);
    if (!given)
      continue;
    auto statistic = dyn_cast<IntegerAttr>(given);
    auto state = states.lookup<StateOp>(program.getResultName(i));
    if (!state || !statistic || !statistic.getType().isInteger(64) ||
        statistic.getInt() < 0)
      return program.emitError()
             << "result '" << program.getResultName(i) << "' has '"
             << kStatistic << "', which wants a state of its name, and the "
             << "number of the batch's parts (i64)";
    StringRef name = program.getResultName(i);
    int64_t cutInto = statistic.getInt();
    if (slices > 1 && cutInto % parts != 0) {
      InFlightDiagnostic error = program.emitError()
                                 << "normalises by the statistics of ";
      if (cutInto == 1)
        error << "the whole batch";
      else
        error << cutInto << " parts of the batch";
      return error << " (state '" << name << "'), which none of " << slices
                   << " micro-batches has: use --batchnorm=train:" << parts
                   << " (those of each micro-batch of each rank, as of most "
                      "frameworks), --batchnorm=frozen, or --micro-batches=1";
    }
    store(state, update);
  }
  return success();
}

/// What passes before store in any case, as they know of no condition.
void OptimizerAdder::guardStores() {
  for (StoreOp before :
       llvm::to_vector(output->getBlock()->getOps<StoreOp>())) {
    store(states.lookup<StateOp>(before.getState()), before.getOperand());
    before.erase();
  }
}

namespace {
struct AddOptimizer : ax::impl::AddOptimizerBase<AddOptimizer> {
  using AddOptimizerBase::AddOptimizerBase;

  void runOnOperation() final {
    for (const ParameterGroup &group : groups)
      if (llvm::Error error = findGroup(getOperation(), group).takeError()) {
        getOperation().emitError(describeError(std::move(error)).message);
        return signalPassFailure();
      }
    std::unique_ptr<UpdateRule> rule = optimizer.makeRule();
    const LearningRateSchedule &rate = learningRateSchedule;
    if (rate.decay != LearningRateSchedule::Decay::None || rate.warmup)
      rule->text += " lr-schedule=" + rate.toText();
    if (clipNorm > 0)
      rule->text += " clip-norm=" + shortest(clipNorm);
    for (const ParameterGroup &group : groups)
      rule->text += " param-group=" + group.toText();
    for (const FrozenRows &rows : frozenRows)
      rule->text += " frozen-rows=" + rows.toText();
    for (ProgramOp program :
         llvm::to_vector(getOperation().getBody().getOps<ProgramOp>()))
      if (!isEvaluationMode(program.getSymName()) &&
          failed(
              OptimizerAdder(program, *rule, rate, groups, frozenRows, clipNorm)
                  .run()))
        return signalPassFailure();
  }
};
} // namespace
