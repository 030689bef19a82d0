//===- AddLoss.cpp - The loss behind the model's outputs ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As a sum over what counts, and how much that is: micro-batches and shards
// give partial sums of both.
//
//===----------------------------------------------------------------------===//

#include "../TrainingState.h"
#include "LossScale.h"
#include "OwnMean.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Gradients/TensorBuilder.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

namespace ax {
#define GEN_PASS_DEF_ADDLOSS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// What is summed, element by element.
struct LossValues {
  Value losses, counts;
  /// 1 where the prediction is right, if there is such a thing; null else.
  Value correct;
  /// How many losses one element of `losses` is the sum of.
  int64_t numAdded = 1;
};

std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

class LossAdder {
public:
  LossAdder(ProgramOp program, const Loss &loss, bool scaled)
      : program(program), loss(loss), isScaled(scaled),
        output(cast<ReturnOp>(program.getBody().front().getTerminator())),
        builder(output),
        t(NameLoc::get(StringAttr::get(program.getContext(), "loss")),
          builder) {}

  llvm::Error run() {
    Operation *last = output->getPrevNode();
    llvm::Expected<LossValues> made = make();
    if (!made)
      return made.takeError();
    if (isEvaluation) {
      output.getOperandsMutable().clear();
      (void)program.eraseResults(
          llvm::BitVector(program.getNumResults(), true));
    }
    for (auto [role, value] : {std::pair(ResultRole::loss_sum, made->losses),
                               std::pair(ResultRole::loss_count, made->counts),
                               std::pair(ResultRole::correct, made->correct)})
      if (value)
        if (llvm::Error error = addResult(role, sum(value)))
          return error;
    if (isScaled && !isEvaluation)
      if (llvm::Error error = addScaled(*made))
        return error;
    // The loss is computed where the output is.
    Operation *producer = of ? of.getDefiningOp() : nullptr;
    if (Attribute stage = producer ? producer->getAttr(kStage) : Attribute())
      for (Operation *op = last ? last->getNextNode() : nullptr;
           op && op != output; op = op->getNextNode())
        op->setAttr(kStage, stage);
    return llvm::Error::success();
  }

private:
  llvm::Expected<LossValues> make() {
    switch (loss.kind) {
    case Loss::Kind::CrossEntropy:
      return crossEntropy();
    case Loss::Kind::MSE:
      return elementwise(&LossAdder::squared);
    case Loss::Kind::L1:
      return elementwise(&LossAdder::absolute);
    case Loss::Kind::BCEWithLogits:
      return elementwise(&LossAdder::logistic);
    case Loss::Kind::Graph:
      return inGraph();
    }
    llvm_unreachable("a loss of no kind");
  }

  llvm::Error fault(const Twine &message) {
    return makeError(ExitCode::Usage, "loss " + loss.name() + ": " + message);
  }

  /// The output of this name; `logits` is any model's only one.
  llvm::Expected<Value> findOutput(StringRef name) {
    std::string names;
    for (auto [i, value] : llvm::enumerate(output.getOperands())) {
      if (program.getResultName(i) == name)
        return take(i);
      names +=
          (names.empty() ? "'" : ", '") + program.getResultName(i).str() + "'";
    }
    if (name == "logits" && output.getNumOperands() == 1)
      return take(0);
    return fault("the model has no output '" + name + "'; it has " +
                 (names.empty() ? "none" : names));
  }

  Value take(unsigned result) {
    if (isEvaluation)
      sampleDim = program.getSampleDim(result);
    return of = output.getOperand(result);
  }

  llvm::Expected<Value> findFloatOutput(StringRef name) {
    llvm::Expected<Value> found = findOutput(name);
    if (found && !isa<FloatType>(elementType(*found)))
      return fault("the output '" + name + "' is " +
                   typeText(found->getType()) + ", not of floats");
    return found;
  }

  /// The input of this name: one that is there if it fits, or a new one.
  llvm::Expected<Value> findInput(StringRef name, ArrayRef<int64_t> shape,
                                  Type element) {
    auto type = RankedTensorType::get(shape, element);
    unsigned count = program.getNumArguments();
    for (unsigned i = 0; i < count; ++i) {
      if (program.getArgName(i) != name)
        continue;
      Value given = program.getArgument(i);
      if (given.getType() == type)
        return given;
      return fault("the input '" + name + "' must be " + typeText(type) +
                   ", the model's is " + typeText(given.getType()));
    }
    Location loc = NameLoc::get(t.b.getStringAttr(name));
    if (failed(program.insertArgument(count, type, nameAttr(name), loc)))
      return fault("the program cannot take the input '" + name + "'");
    return program.getArgument(count);
  }

  DictionaryAttr nameAttr(StringRef name) {
    return t.b.getDictionaryAttr(
        t.b.getNamedAttr("ax.name", t.b.getStringAttr(name)));
  }

  /// Adds a result that is named as its role. A model's own output may have
  /// that name, too: what it is to training is said by the role.
  llvm::Error addResult(ResultRole role, Value value) {
    unsigned count = program.getNumResults();
    bool isBySample = sampleDim && !shapeOf(value).empty();
    StringRef name = stringifyResultRole(role);
    if (failed(program.insertResult(count, value.getType(), nameAttr(name))))
      return fault("the program cannot give the result '" + name + "'");
    program.setRole(count, role);
    if (isBySample)
      program.setSampleDim(count, 0);
    output.getOperandsMutable().append(value);
    return llvm::Error::success();
  }

  /// Sums all up; in evaluation each sample by itself, where there is a
  /// dimension of them, so that who runs it can leave some out.
  Value sum(Value x) {
    SmallVector<int64_t> dims = dimsFrom(0, shapeOf(x).size());
    if (!dims.empty() && sampleDim)
      dims.erase(dims.begin() + (dims.size() > 1 ? *sampleDim : 0));
    return t.cast(t.sum(x, dims, /*keepDims=*/false), t.b.getF32Type());
  }

  /// The gradients of the mean are what is to fit: the sum's are divided by
  /// the number of elements, as a power of two.
  llvm::Error addScaled(const LossValues &made) {
    Value losses = made.losses;
    int64_t shift = llvm::Log2_64_Ceil(std::max<int64_t>(
        tensorType(losses).getNumElements() * made.numAdded, 1));
    program->setAttr(kLossShift, t.b.getI64IntegerAttr(shift));
    auto type = RankedTensorType::get({}, t.b.getI64Type());
    OpBuilder before(program);
    SymbolTable states(program->getParentOfType<PlanOp>());
    auto state = getTrainingState(states, before, kLossScale, type);
    if (!state)
      return state.takeError();
    before.setInsertionPointToStart(output->getBlock());
    Value exponent = LoadOp::create(before, t.b.getLoc(), type, kLossScale);
    return addResult(ResultRole::scaled_loss_sum,
                     t.mul(sum(losses), getLossScale(t, exponent, shift)));
  }

  //===--------------------------------------------------------------------===//
  // Of labels
  //===--------------------------------------------------------------------===//

  /// Labels moved `shift` to the left along their last dimension, so that the
  /// logits stay whole; what comes in from the right is ignored.
  Value shifted(Value labels, int64_t shift, Value ignored) {
    if (shift == 0)
      return labels;
    int64_t dim = shapeOf(labels).size() - 1, size = shapeOf(labels)[dim];
    SmallVector<int64_t> low(dim + 1, 0), high(dim + 1, 0);
    high[dim] = shift;
    return PadOp::create(t.b, t.slice(labels, dim, shift, size - shift),
                         ignored, low, high, PadMode::constant);
  }

  /// So that who gives them can check them.
  void describeLabels(Value given, int64_t classes, int64_t ignoreIndex,
                      int64_t shift) {
    auto number = [&](StringRef name, int64_t value) {
      return t.b.getNamedAttr(name, t.b.getI64IntegerAttr(value));
    };
    program.setArgAttr(
        cast<BlockArgument>(given).getArgNumber(), kLabels,
        t.b.getDictionaryAttr({number("classes", classes),
                               number("ignore_index", ignoreIndex),
                               number("shift", shift)}));
  }

  llvm::Expected<LossValues> crossEntropy() {
    auto found = findFloatOutput(loss.output);
    if (!found)
      return found.takeError();
    SmallVector<int64_t> shape(shapeOf(*found));
    int64_t rank = shape.size();
    int64_t dim = loss.classDim < 0 ? loss.classDim + rank : loss.classDim;
    if (rank < 1 || dim < 0 || dim >= rank)
      return fault("the output " + typeText(found->getType()) +
                   " has no dimension " + Twine(loss.classDim) + " of classes");
    if (sampleDim == dim)
      sampleDim = std::nullopt;
    double classes = shape[dim];
    if (shape[dim] < 1)
      return fault("the output " + typeText(found->getType()) +
                   " has no classes");
    SmallVector<int64_t> labelShape(shape);
    labelShape.erase(labelShape.begin() + dim);
    if (loss.shift > 0 &&
        (labelShape.empty() || loss.shift >= labelShape.back()))
      return fault(
          "shift=" + Twine(loss.shift) + " of labels " +
          typeText(RankedTensorType::get(labelShape, t.b.getI64Type())));
    auto given = findInput(loss.target, labelShape, t.b.getI64Type());
    if (!given)
      return given.takeError();

    describeLabels(*given, shape[dim], loss.ignoreIndex, loss.shift);
    SmallVector<int64_t> kept(shape);
    kept[dim] = 1;
    Value ignored = t.splat({}, t.b.getI64Type(), loss.ignoreIndex);
    Value labels = t.reshape(shifted(*given, loss.shift, ignored), kept);
    Value valid = t.compare(CompareKind::ne, labels, ignored);
    // Reductions and a comparison with the class's number: all of it can be
    // split along the classes.
    Value x = t.wide(*found);
    Value largest = t.reduce(ReduceOpKind::max, x, dim);
    // Adding it back again, its gradient would be 0.
    largest.getDefiningOp()->setAttr(kNoGradient, t.b.getUnitAttr());
    Value exps = t.unary(UnaryKind::exp, t.sub(x, largest));
    Value logSum = t.add(t.unary(UnaryKind::log, t.sum(exps, dim)), largest);
    Value isLabel =
        t.compare(CompareKind::eq, t.indexAlong(dim, shape[dim], rank), labels);
    Value target = t.sum(t.select(isLabel, x, 0), dim);
    if (loss.labelSmoothing > 0)
      target = t.add(t.mul(target, 1 - loss.labelSmoothing),
                     t.mul(t.sum(x, dim), loss.labelSmoothing / classes));
    LossValues result;
    result.losses = t.select(valid, t.sub(logSum, target), 0);
    result.counts = t.indicator(valid, t.b.getF32Type());
    if (isEvaluation) {
      // Of equal logits the first counts.
      Value none = t.splat({}, t.b.getI64Type(), shape[dim]);
      Value index = t.indexAlong(dim, shape[dim], rank);
      Value first = t.reduce(
          ReduceOpKind::min,
          t.select(t.compare(CompareKind::eq, x, largest), index, none), dim);
      Value isRight = t.compare(CompareKind::eq, first, labels);
      result.correct = t.select(isRight, result.counts, 0);
    }
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Of targets
  //===--------------------------------------------------------------------===//

  Value squared(Value x, Value target) {
    Value difference = t.sub(x, target);
    return t.mul(difference, difference);
  }
  Value absolute(Value x, Value target) {
    return t.unary(UnaryKind::abs, t.sub(x, target));
  }
  /// -z log sigmoid(x) - (1 - z) log sigmoid(-x), without overflow.
  Value logistic(Value x, Value target) {
    return t.sub(t.unary(UnaryKind::softplus, x), t.mul(x, target));
  }

  /// That in which the loss is computed, or the one of an input of the model.
  Type targetType(Type wide) {
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      if (program.getArgName(i) == loss.target)
        if (Type own = elementType(program.getArgument(i)); isNarrowFloat(own))
          return own;
    return wide;
  }

  llvm::Expected<LossValues> elementwise(Value (LossAdder::*fn)(Value, Value)) {
    auto found = findFloatOutput(loss.output);
    if (!found)
      return found.takeError();
    Value prediction = t.wide(*found);
    auto target = findInput(loss.target, shapeOf(*found),
                            targetType(elementType(prediction)));
    if (!target)
      return target.takeError();
    Value losses = (this->*fn)(prediction, t.wide(*target));
    LossValues result;
    result.losses = losses;
    SmallVector<int64_t> counted;
    if (sampleDim)
      counted.push_back(shapeOf(losses)[*sampleDim]);
    double count = tensorType(losses).getNumElements();
    result.counts = t.splat(counted, t.b.getF32Type(),
                            counted.empty() ? count : count / counted[0]);
    if (isEvaluation && loss.kind == Loss::Kind::BCEWithLogits) {
      Value isRight = t.compare(
          CompareKind::eq,
          t.indicator(t.compare(CompareKind::gt, *found, 0), t.b.getF32Type()),
          t.indicator(t.compare(CompareKind::gt, *target, 0.5),
                      t.b.getF32Type()));
      result.correct = t.indicator(isRight, t.b.getF32Type());
    }
    return result;
  }

  llvm::Expected<LossValues> inGraph() {
    auto found = findFloatOutput(loss.output);
    if (!found)
      return found.takeError();
    if (tensorType(*found).getNumElements() != 1)
      return fault("the output '" + loss.output + "' is " +
                   typeText(found->getType()) + ", not one number");
    // What is scaled has to be about as large as the mean.
    if (std::optional<OwnMean> mean = findOwnMean(t, *found);
        mean && (!isScaled || mean->numAdded > 1))
      return LossValues{mean->sum, mean->count, {}, mean->numAdded};
    return LossValues{
        t.reshape(*found, {}), t.splat({}, t.b.getF32Type(), 1), {}};
  }

  ProgramOp program;
  const Loss &loss;
  bool isScaled;
  bool isEvaluation = program.getSymName() == evaluationProgram;
  ReturnOp output;
  OpBuilder builder;
  TensorBuilder t;
  /// The output that the loss is of, and in evaluation its dimension that
  /// counts samples.
  Value of;
  std::optional<int64_t> sampleDim;
};

struct AddLoss : ax::impl::AddLossBase<AddLoss> {
  using AddLossBase::AddLossBase;

  void runOnOperation() final {
    WalkResult result = getOperation()->walk([&](ProgramOp program) {
      if (program.getSymName() == predictionProgram)
        return WalkResult::skip();
      llvm::Error error = add(program);
      if (!error)
        return WalkResult::skip();
      program.emitError(describeError(std::move(error)).message);
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  llvm::Error add(ProgramOp program) {
    auto plan = program->getParentOfType<PlanOp>();
    plan.needVersion(PlanOp::rolesVersion);
    return LossAdder(program, loss, scaled || hasGradientsOfF16(program)).run();
  }

  /// Whether anything of f16 depends on a weight that is trained.
  static bool hasGradientsOfF16(ProgramOp program) {
    SymbolTable states(program->getParentOfType<PlanOp>());
    llvm::DenseSet<Value> active;
    for (Operation &op : program.getBody().front()) {
      auto load = dyn_cast<LoadOp>(op);
      if (load ? !states.lookup<StateOp>(load.getState()).getTrainable()
               : llvm::none_of(op.getOperands(),
                               [&](Value v) { return active.contains(v); }))
        continue;
      for (Value result : op.getResults()) {
        if (elementType(result).isF16())
          return true;
        active.insert(result);
      }
    }
    return false;
  }
};

} // namespace
