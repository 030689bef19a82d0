//===- AddDropout.cpp - Dropout put back, and what it depends on ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The places are those of GPT-2 and BERT: Radford et al., Language models are
// unsupervised multitask learners; Devlin et al., arXiv 1810.04805.
//
//===----------------------------------------------------------------------===//
#include "../Match.h"
#include "TrainingState.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Random.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Gradients/AttentionParts.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

namespace ax {
#define GEN_PASS_DEF_ADDDROPOUT
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

class DropoutAdder {
public:
  DropoutAdder(ProgramOp program, double rate)
      : program(program), body(program.getBody().front()), rate(rate),
        builder(program.getContext(), &mark) {}

  LogicalResult run() {
    forEachRandom(
        [&](auto op) { nextId = std::max<int64_t>(nextId, op.getId() + 1); });
    if (rate > 0)
      if (failed(addAll()))
        return failure();
    return llvm::any_of(body, [](Operation &op) { return isRandom(&op); })
               ? connect()
               : success();
  }

private:
  template <typename Function>
  void forEachRandom(Function function) {
    for (Operation &op : body)
      llvm::TypeSwitch<Operation *>(&op).Case<DropoutOp, UniformOp>(function);
  }
  LogicalResult addAll();
  bool addToEmbedding(GatherOp gather);
  void addToAttention(AttentionOp attention);
  bool addToBranch(BinaryOp sum);
  LogicalResult connect();
  /// Null, and an error, when the model has a weight of that name.
  Value load(StringRef state);
  Value drop(Value value) {
    Value zero = ConstantOp::create(
        builder, value.getLoc(),
        DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()),
                               int64_t(0)));
    return DropoutOp::create(builder, value.getLoc(), value, zero, zero,
                             APFloat(rate), nextId++);
  }

  ProgramOp program;
  Block &body;
  double rate;
  MarkStageAndAction mark{Action::Forward};
  OpBuilder builder;
  int64_t nextId = 0;
  llvm::DenseSet<Value> dropped;
};

} // namespace

/// The Linear whose result, moved and with a bias, `value` is.
static LinearOp linearBehind(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!op->hasOneUse())
      return {};
    if (auto linear = dyn_cast<LinearOp>(op))
      return linear;
    auto sum = dyn_cast<BinaryOp>(op);
    if (isa<ReshapeOp, TransposeOp, CastOp>(op))
      value = op->getOperand(0);
    else if (sum && sum.getKind() == BinaryKind::add && isWeight(sum.getRhs()))
      value = sum.getLhs();
    else
      return {};
  }
  return {};
}

bool DropoutAdder::addToEmbedding(GatherOp gather) {
  if (gather.getAxis() != 0 || !gather.getOperand().getDefiningOp<LoadOp>() ||
      !isa<FloatType>(elementType(gather.getResult())))
    return false;
  Value value = gather.getResult();
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    auto sum = dyn_cast<BinaryOp>(user);
    if (!isa<ReshapeOp, CastOp>(user) &&
        !(sum && sum.getKind() == BinaryKind::add))
      break;
    value = user->getResult(0);
  }
  auto isLayer = [](Operation *op) {
    return isa<LayerNormOp, RMSNormOp, LinearOp>(op);
  };
  if (llvm::none_of(value.getUsers(), isLayer))
    return false;
  if (value.hasOneUse() && isa<LayerNormOp, RMSNormOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  if (!dropped.insert(value).second)
    return false;
  mark.stage = value.getDefiningOp()->getAttr(kStage);
  builder.setInsertionPointAfterValue(value);
  Value result = drop(value);
  value.replaceAllUsesExcept(result, result.getDefiningOp());
  return true;
}

void DropoutAdder::addToAttention(AttentionOp op) {
  mark.stage = op->getAttr(kStage);
  builder.setInsertionPoint(op);
  TensorBuilder t(op.getLoc(), builder);
  AttentionParts parts(AttentionValues(op), t);
  Value p = drop(parts.probabilities(parts.scaledQueries()));
  Value mixed = parts.dot(p, op.getV(), 4, 2);
  op.getResult().replaceAllUsesWith(t.reshape(mixed, shapeOf(op.getResult())));
  op.erase();
}

/// Adds dropout to the branch of a sum with the residual.
bool DropoutAdder::addToBranch(BinaryOp sum) {
  if (sum.getKind() != BinaryKind::add ||
      sum.getLhs().getType() != sum.getRhs().getType())
    return false;
  bool isLeft = bool(linearBehind(sum.getLhs()));
  OpOperand &branch = sum->getOpOperand(isLeft ? 0 : 1);
  Value residual = sum->getOperand(isLeft ? 1 : 0);
  if (!linearBehind(branch.get()) || linearBehind(residual) ||
      isWeight(residual))
    return false;
  mark.stage = sum->getAttr(kStage);
  builder.setInsertionPoint(sum);
  branch.set(drop(branch.get()));
  return true;
}

LogicalResult DropoutAdder::addAll() {
  int64_t embeddings = 0, attentions = 0, branches = 0;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto gather = dyn_cast<GatherOp>(op)) {
      embeddings += addToEmbedding(gather);
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      addToAttention(attention);
      ++attentions;
    } else if (auto sum = dyn_cast<BinaryOp>(op)) {
      branches += addToBranch(sum);
    }
  }
  if (embeddings + attentions + branches == 0)
    return program.emitError("has no place for dropout: neither embeddings nor "
                             "attention nor sums with a residual");
  program.emitRemark("dropout on ")
      << embeddings << " embeddings, " << attentions
      << " attention probabilities, " << branches
      << " Linears before the sum with the residual";
  return success();
}

Value DropoutAdder::load(StringRef name) {
  SymbolTable states(program->getParentOfType<PlanOp>());
  auto type = RankedTensorType::get({}, builder.getI64Type());
  builder.setInsertionPoint(program);
  auto state = getTrainingState(states, builder, name, type);
  if (!state) {
    program.emitError(describeError(state.takeError()).message);
    return {};
  }
  builder.setInsertionPointToStart(&body);
  return LoadOp::create(builder, program.getLoc(), type, name);
}

LogicalResult DropoutAdder::connect() {
  mark.stage = {};
  Value seed = load(kRandomSeed), step = load(kStepCounter);
  if (!seed || !step)
    return failure();
  forEachRandom([&](auto op) {
    op.getSeedMutable().assign(seed);
    op.getStepMutable().assign(step);
  });
  return success();
}

namespace {
struct AddDropout : ax::impl::AddDropoutBase<AddDropout> {
  using AddDropoutBase::AddDropoutBase;

  void runOnOperation() final {
    for (ProgramOp program :
         llvm::to_vector(getOperation().getBody().getOps<ProgramOp>())) {
      bool isTraining = !isEvaluationMode(program.getSymName());
      if (failed(DropoutAdder(program, isTraining ? double(rate) : 0).run()))
        return signalPassFailure();
      if (program.getSymName() == evaluationProgram &&
          llvm::any_of(program.getBody().front(),
                       [](Operation &op) { return isRandom(&op); }))
        program.emitRemark("random numbers take part in evaluation");
    }
  }
};
} // namespace
