//===- Differentiate.cpp - Reverse mode over a program --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Differentiate.h"

#include "Quantised.h"
#include "ax/Dialect/Indexing.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Gradients/GradientBuilder.h"
#include "ax/Passes/Passes.h"

#include "ax/Support/JoinFirst.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace ax {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

class Differentiator {
public:
  Differentiator(ProgramOp program, Value loss)
      : block(program.getBody().front()), loss(loss),
        plan(program->getParentOfType<PlanOp>()),
        builder(block.getTerminator(), &mark) {}

  FailureOr<SmallVector<StateGradient>> run() {
    findActive();
    if (!active.contains(loss))
      return emitError(loss.getLoc())
             << "the loss depends on no weight that is trained: --trainable "
                "and --frozen choose them";
    if (Operation *producer = loss.getDefiningOp())
      mark.stage = producer->getAttr(kStage);
    gradients[loss] =
        createSplat(builder, loc(), withoutLayout(tensorType(loss)), 1);
    for (Operation *op : llvm::reverse(forward))
      if (failed(goThrough(op)))
        return failure();
    SmallVector<StateGradient> result;
    for (auto state : plan.getBody().getOps<StateOp>())
      if (Value gradient = ofStates.lookup(state))
        result.push_back({state, gradient});
    return result;
  }

private:
  Location loc() {
    Operation *op = loss.getDefiningOp();
    return op ? op->getLoc() : loss.getLoc();
  }

  StateOp stateOf(LoadOp load) {
    return states.lookup<StateOp>(load.getState());
  }

  /// Floats behind which there is a trainable state.
  void findActive() {
    for (Operation &op : block.without_terminator()) {
      forward.push_back(&op);
      auto load = dyn_cast<LoadOp>(op);
      if (op.hasAttr(kNoGradient))
        continue;
      findCut(op);
      if (load ? !stateOf(load).getTrainable()
               : llvm::none_of(op.getOperands(), [&](Value operand) {
                   return active.contains(operand);
                 }))
        continue;
      for (Value result : op.getResults())
        if (auto type = dyn_cast<RankedTensorType>(result.getType());
            type && isa<FloatType>(type.getElementType()))
          active.insert(result);
    }
  }

  /// Integers that floats with gradients were rounded to, and what is made of
  /// them, but for what jumps anyway.
  void findCut(Operation &op) {
    Operation *rounding = nullptr;
    bool isIndexed = getIndexedSizes(&op).has_value();
    for (OpOperand &operand : op.getOpOperands())
      if (Operation *found = cut.lookup(operand.get());
          found && !(isIndexed && operand.getOperandNumber() == indicesOperand))
        rounding = found;
    if (auto cast = dyn_cast<CastOp>(op);
        cast && active.contains(cast.getOperand()) && matchQuantised(cast))
      rounding = cast;
    if (rounding && !isa<CompareOp>(op))
      for (Value result : op.getResults())
        cut[result] = rounding;
  }

  /// A trainable state that `op` depends on.
  LoadOp stateBehind(Operation *op) {
    while (!isa<LoadOp>(op))
      for (Value operand : op->getOperands())
        if (active.contains(operand)) {
          op = operand.getDefiningOp();
          break;
        }
    return cast<LoadOp>(op);
  }

  LogicalResult complain(Operation *op, const Twine &why) {
    StringRef node = getNodeName(op);
    InFlightDiagnostic error = emitUnsupported(op) << op->getName();
    if (!node.empty())
      error << " of node '" << node << "'";
    return error << " " << why << "; it lies between the trainable state '"
                 << stateBehind(op).getState() << "' and the loss";
  }

  void accumulate(Value &into, Value gradient) {
    into = into ? BinaryOp::create(builder, gradient.getLoc(), BinaryKind::add,
                                   into, gradient)
                      .getResult()
                : gradient;
  }

  /// A weight's gradients of several stages are added by none of them.
  void addGradient(Value operand, Value gradient) {
    Value &into = gradients[operand];
    auto stageOf = [](Value value) {
      Operation *producer = value ? value.getDefiningOp() : nullptr;
      return producer ? producer->getAttr(kStage) : Attribute();
    };
    if (operand.getDefiningOp<LoadOp>() && stageOf(into) != stageOf(gradient))
      mark.stage = {};
    accumulate(into, gradient);
  }

  LogicalResult goThrough(Operation *op) {
    SmallVector<Value> ofResults = llvm::map_to_vector(
        op->getResults(), [&](Value v) { return gradients.lookup(v); });
    if (llvm::none_of(ofResults, [](Value v) { return bool(v); }))
      return success();
    mark.stage = op->getAttr(kStage);
    if (auto load = dyn_cast<LoadOp>(op)) {
      accumulate(ofStates[stateOf(load)], ofResults[0]);
      return success();
    }
    for (Value operand : op->getOperands())
      if (Operation *rounding = cut.lookup(operand);
          rounding && !active.contains(operand) &&
          isa<FloatType>(elementType(operand)))
        return complain(rounding, "rounds to integers that are more than "
                                  "dequantised, and so passes no gradient");
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return complain(op, "has no gradient");
    auto isWanted = [&](Value value) { return active.contains(value); };
    GradientBuilder g(builder, op, ofResults, isWanted);
    if (failed(differentiable.buildGradient(g)))
      return complain(op, g.getFailure());
    for (auto [operand, gradient] :
         llvm::zip_equal(op->getOperands(), g.getOperandGradients())) {
      mark.stage = op->getAttr(kStage);
      if (gradient)
        addGradient(operand, gradient);
    }
    return success();
  }

  Block &block;
  Value loss;
  PlanOp plan;
  SymbolTable states{plan};
  MarkStageAndAction mark{Action::Backward};
  OpBuilder builder;
  SmallVector<Operation *> forward;
  DenseSet<Value> active;
  /// The cast to integers behind which a value is.
  DenseMap<Value, Operation *> cut;
  DenseMap<Value, Value> gradients;
  DenseMap<Operation *, Value> ofStates;
};

struct Differentiate : ax::impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<AxDialect>();
    registerGradients(registry);
  }

  void runOnOperation() final {
    WalkResult result = getOperation()->walk([&](ProgramOp program) {
      if (isEvaluationMode(program.getSymName()))
        return WalkResult::skip();
      return failed(run(program)) ? WalkResult::interrupt()
                                  : WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static bool canBeLoss(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() == 0 && isa<FloatType>(tensor.getElementType());
  }

  /// The result that option `loss` names, the sum that ax-add-loss added, or
  /// the only one that can be meant.
  FailureOr<unsigned> findLoss(ProgramOp program) {
    ArrayRef<Type> types = program.getResultTypes();
    SmallVector<unsigned> found;
    for (ResultRole role : {ResultRole::scaled_loss_sum, ResultRole::loss_sum})
      if (auto sum = program.findResult(role); sum && loss.empty())
        return *sum;
    for (unsigned i = 0; i < types.size(); ++i)
      if (loss.empty() ? canBeLoss(types[i]) : program.getResultName(i) == loss)
        found.push_back(i);
    if (!loss.empty() && found.empty())
      return program.emitError()
             << "there is no result '" << loss << "' to take as the loss";
    if (found.size() != 1)
      return program.emitError()
             << "has " << found.size()
             << " scalar float results; name the one that is the loss";
    if (!canBeLoss(types[found[0]]))
      return program.emitError() << "the loss '" << loss << "' is "
                                 << types[found[0]] << ", not a scalar float";
    return found[0];
  }

  /// States that are to train and do not.
  LogicalResult tellUntrained(ProgramOp program,
                              ArrayRef<StateGradient> gradients) {
    if (gradients.empty())
      return program.emitError(
          "the loss has no gradient in any weight: it depends on none that is "
          "to train, or only through what is rounded, compared or counted");
    llvm::DenseSet<Operation *> trained;
    for (const StateGradient &found : gradients)
      trained.insert(found.state);
    auto plan = program->getParentOfType<PlanOp>();
    SmallVector<StateOp> untrained;
    for (auto state : plan.getBody().getOps<StateOp>())
      if (state.getTrainable() && !trained.contains(state))
        untrained.push_back(state);
    for (const std::string &pattern : trainable) {
      // ax-select-trainable has seen that it is a glob.
      llvm::GlobPattern glob =
          llvm::cantFail(llvm::GlobPattern::create(pattern));
      auto named = [&](StateOp state) {
        return glob.match(state.getSymName());
      };
      bool isVain = llvm::any_of(untrained, named);
      for (const StateGradient &found : gradients)
        isVain &= !named(found.state);
      if (isVain)
        return program.emitError("--trainable=")
               << pattern << ": the loss does not depend on such a weight";
    }
    if (!untrained.empty()) {
      plan.emitRemark("without gradient, as the loss does not depend on them: ")
          << joinFirst(llvm::map_to_vector(untrained, [](StateOp state) {
               return state.getSymName().str();
             }));
    }
    return success();
  }

  LogicalResult run(ProgramOp program) {
    FailureOr<unsigned> number = findLoss(program);
    if (failed(number))
      return failure();
    auto output = cast<ReturnOp>(program.getBody().front().getTerminator());
    auto gradients = differentiate(program, output.getOperand(*number));
    if (failed(gradients))
      return failure();
    if (failed(tellUntrained(program, *gradients)))
      return failure();
    Builder builder(&getContext());
    for (const StateGradient &found : *gradients) {
      StringRef state = StateOp(found.state).getSymName();
      NamedAttribute attributes[] = {
          builder.getNamedAttr("ax.name",
                               builder.getStringAttr("gradient of " + state)),
          builder.getNamedAttr(kGradientOf,
                               FlatSymbolRefAttr::get(&getContext(), state))};
      if (failed(program.insertResult(program.getNumResults(),
                                      found.gradient.getType(),
                                      builder.getDictionaryAttr(attributes))))
        return failure();
      output.getOperandsMutable().append(found.gradient);
    }
    return success();
  }
};

} // namespace

FailureOr<SmallVector<StateGradient>> ax::differentiate(ProgramOp program,
                                                        Value loss) {
  return Differentiator(program, loss).run();
}
