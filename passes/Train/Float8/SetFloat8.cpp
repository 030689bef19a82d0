//===- SetFloat8.cpp - Linears of eight bits ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// y = x w and its gradients dx = dy w^T and dw = x^T dy become products of
//
//   q(x) = cast(x * scale of x)    q(w)    q(dy)
//
// each of which is divided by the scales of its factors. A tensor has one scale
// however many products it is in. What is made of a tensor's amax is stored
// when the step ends, and is the same on all ranks, as any state.
//
//===----------------------------------------------------------------------===//
#include "../TrainingState.h"
#include "DelayedScaling.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Dialect/StateNames.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"
#include "ax/Support/JoinFirst.h"

#include "llvm/ADT/MapVector.h"

namespace ax {
#define GEN_PASS_DEF_SETFLOAT8
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

/// Whether `op` rounds a weight of f32 for a model of narrow floats.
static bool isRounding(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  return cast && isNarrowFloat(elementType(cast.getResult())) &&
         cast.getOperand().getDefiningOp<LoadOp>() &&
         elementType(cast.getOperand()).isF32();
}

/// What it is a view of, element for element, or, a weight, was rounded from.
static Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp, TransposeOp>(op) && !isRounding(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The view by way of which alone `value` is a factor, where it is made, and
/// with neighbours as they lie; null where there is none. What a kernel makes
/// is rounded by that one, if anybody else reads it as it is.
static Value onlyViewOf(Value value) {
  Operation *maker = value.getDefiningOp(), *view = nullptr;
  if (!maker || isa<LoadOp>(maker) ||
      (isElementwise(maker) && !value.hasOneUse()))
    return {};
  for (Operation *user : value.getUsers()) {
    bool isView = isa<ReshapeOp, TransposeOp>(user);
    if (isa<LinearOp, DotOp>(user) || (isView && view))
      return {};
    if (isView)
      view = user;
  }
  auto transpose = dyn_cast_or_null<TransposeOp>(view);
  bool keepsLast = isa_and_present<ReshapeOp>(view) ||
                   (transpose && transpose.getPermutation().back() + 1 ==
                                     tensorType(value).getRank());
  return keepsLast && view->getAttr(kStage) == maker->getAttr(kStage)
             ? view->getResult(0)
             : Value();
}

/// Whether a product gives the type, of which its factors have more digits than
/// eight bits.
static bool isWide(Type element) {
  return element.isF32() || element.isBF16() || element.isF16();
}

/// Tensor cores take factors whose dimensions are multiples of it; a gradient
/// sums over the rows.
static bool fits(LinearOp linear) {
  constexpr int64_t multiple = 16;
  RankedTensorType x = tensorType(linear.getX());
  int64_t k = linear.getK(), n = linear.getN();
  return k > 0 && k % multiple == 0 && n % multiple == 0 &&
         x.getNumElements() / k % multiple == 0;
}

namespace {

class Float8Setter {
public:
  Float8Setter(ProgramOp program, const Float8Recipe &recipe)
      : program(program), block(program.getBody().front()),
        plan(program->getParentOfType<PlanOp>()), recipe(recipe),
        first(&block.front()) {}

  LogicalResult run();

private:
  /// A Linear, and what its factors were before they were rounded.
  struct Layer {
    LinearOp linear;
    Value x, w;
  };
  /// A tensor that is rounded, and what its rounding goes by.
  struct Scaled {
    std::string name;
    FloatType type;
    Value state, scale, inverse, amax;
  };

  Value originOf(Value value);
  LogicalResult choose();
  LogicalResult checkPatterns();
  void setProduct(Operation *product, FloatType left, FloatType right,
                  const Layer &of);
  void setGradient(Operation *product);
  static std::string nameOf(Value root, const Layer &of);
  void addScaled(Value root, FloatType type, Operation *user, const Layer &of);
  Value rounded(Value value, FloatType type, Operation *user, const Layer &of);
  Value load(StringRef name, RankedTensorType type);
  void storeAll();

  ProgramOp program;
  Block &block;
  PlanOp plan;
  const Float8Recipe &recipe;
  SymbolTable states{plan};
  /// What is known before any input is made in front of it.
  Operation *first;
  /// Of what views are of, what is rounded.
  llvm::DenseMap<Value, Value> origins;
  /// By the name of the node.
  llvm::MapVector<StringRef, Layer> layers;
  llvm::MapVector<Value, Scaled> scaled;
  /// Casts of what products give, and what that was before it was rounded.
  SmallVector<std::pair<CastOp, Value>> widened;
  /// What a value is rounded to.
  llvm::DenseMap<Value, Value> known;
  FloatType forward = Float8E4M3FNType::get(plan.getContext()),
            backward = recipe.isHybrid
                           ? FloatType(Float8E5M2Type::get(plan.getContext()))
                           : forward;
  bool isSound = true;
};

} // namespace

/// What is rounded of what `value` is a view of: where everybody goes by the
/// same view of that, the view, so that one kernel does both. E.g. what
/// attention gives, [batch, heads, tokens, width], with tokens in front of
/// heads.
Value Float8Setter::originOf(Value value) {
  auto [known, isNew] = origins.try_emplace(rootOf(value), rootOf(value));
  if (isNew)
    while (Value view = onlyViewOf(known->second))
      known->second = view;
  return known->second;
}

/// A pattern that nothing has is a mistake.
LogicalResult Float8Setter::checkPatterns() {
  for (const auto *patterns : {&recipe.include, &recipe.exclude})
    for (const std::string &pattern : *patterns)
      if (llvm::none_of(block.getOps<LinearOp>(), [&](LinearOp linear) {
            return Float8Recipe::matches({pattern}, getNodeNames(linear));
          }))
        return program.emitError("--precision=")
               << recipe.text << ": no Linear is called '" << pattern << "'";
  return success();
}

LogicalResult Float8Setter::choose() {
  if (failed(checkPatterns()))
    return failure();
  SmallVector<std::string> unfit;
  for (auto linear : block.getOps<LinearOp>()) {
    // Gradients are found by the name.
    StringRef node = getNodeName(linear);
    if (markedAction(linear) != Action::Forward || node.empty() ||
        !isWide(elementType(linear.getX())) ||
        !recipe.contains(getNodeNames(linear)))
      continue;
    if (fits(linear))
      layers.insert(
          {node, {linear, originOf(linear.getX()), originOf(linear.getW())}});
    else
      unfit.push_back(node.str());
  }
  if (!unfit.empty())
    plan.emitRemark("not in fp8, as not all dimensions are multiples of 16: ")
        << joinFirst(unfit);
  return success();
}

std::string Float8Setter::nameOf(Value root, const Layer &of) {
  if (auto load = root.getDefiningOp<LoadOp>())
    return "fp8." + load.getState().str();
  const char *role = root == of.x   ? ".input"
                     : root == of.w ? ".weight"
                                    : ".gradient";
  return "fp8." + getNodeName(of.linear).str() + role;
}

/// One load of a state in the program: it has one layout.
Value Float8Setter::load(StringRef name, RankedTensorType type) {
  for (auto load : block.getOps<LoadOp>())
    if (load.getState() == name)
      return load;
  OpBuilder atStates(program);
  auto state = getTrainingState(states, atStates, name, type);
  if (!state) {
    program.emitError(describeError(state.takeError()).message);
    isSound = false;
  }
  OpBuilder builder(&block, block.begin());
  return LoadOp::create(builder, program.getLoc(), type, name);
}

void Float8Setter::addScaled(Value root, FloatType type, Operation *user,
                             const Layer &of) {
  Scaled made;
  // A node may be several products of one matrix, as interpolation of rows and
  // of columns is: their gradients have scales of their own.
  std::string name = nameOf(root, of);
  auto isTaken = [&] {
    return llvm::any_of(scaled, [&](const auto &entry) {
      return entry.second.name == made.name;
    });
  };
  made.name = name;
  for (int number = 1; isTaken(); ++number)
    made.name = name + "." + std::to_string(number);
  made.type = type;
  made.state = load(made.name, scalingStateType(plan.getContext(), recipe));
  OpBuilder atFirst(first);
  TensorBuilder t(user->getLoc(), atFirst);
  made.scale = scaleOf(t, made.state);
  made.inverse = t.div(t.number(made.scale, 1), made.scale);
  // Views of it are where what it is of is made.
  Operation *maker = root.getDefiningOp();
  Attribute stage = maker ? maker->getAttr(kStage) : Attribute();
  MarkStageAndAction mark(markedAction(user),
                          stage ? stage : user->getAttr(kStage));
  OpBuilder atRoot(first, &mark);
  if (maker)
    atRoot.setInsertionPointAfter(maker);
  TensorBuilder ofRoot(user->getLoc(), atRoot);
  Value wide = ofRoot.wide(root);
  known[root] = ofRoot.cast(ofRoot.mul(wide, made.scale), type);
  made.amax = amaxOf(ofRoot, wide);
  scaled.insert({root, std::move(made)});
}

/// `value`, which is a view of what is rounded.
Value Float8Setter::rounded(Value value, FloatType type, Operation *user,
                            const Layer &of) {
  if (Value view = known.lookup(value))
    return view;
  if (value == originOf(value)) {
    addScaled(value, type, user, of);
    return known.lookup(value);
  }
  Operation *op = value.getDefiningOp();
  Value inner = rounded(op->getOperand(0), type, user, of);
  if (isRounding(op))
    return known[value] = inner;
  Operation *made = OpBuilder(op).clone(*op);
  made->setOperand(0, inner);
  made->getResult(0).setType(tensorType(value).clone(type));
  known[value] = made->getResult(0);
  return made->getResult(0);
}

/// Rounds the factors; what they were multiplied with is taken from the result,
/// which is bf16, as --precision=bf16 has it: the sum, which may be beyond what
/// f16 has.
void Float8Setter::setProduct(Operation *product, FloatType left,
                              FloatType right, const Layer &of) {
  FloatType types[] = {left, right};
  Value inverse;
  MarkStageAndAction mark(markedAction(product), product->getAttr(kStage));
  OpBuilder builder(product->getContext(), &mark);
  builder.setInsertionPointAfter(product);
  TensorBuilder t(product->getLoc(), builder);
  for (auto [operand, type] : llvm::zip(product->getOpOperands(), types)) {
    Value root = originOf(operand.get());
    operand.set(rounded(operand.get(), type, product, of));
    Value one = scaled.find(root)->second.inverse;
    inverse = inverse ? t.mul(inverse, one) : one;
  }
  Value result = product->getResult(0);
  RankedTensorType wanted = tensorType(result);
  result.setType(wanted.clone(t.b.getBF16Type()));
  Value wide = t.wide(result), exact = t.mul(wide, inverse);
  for (Operation *user : result.getUsers())
    if (auto cast = dyn_cast<CastOp>(user); cast &&
                                            cast != wide.getDefiningOp() &&
                                            cast.getType() == exact.getType())
      widened.emplace_back(cast, exact);
  Value rounded = t.cast(exact, wanted.getElementType());
  result.replaceAllUsesExcept(rounded, wide.getDefiningOp());
}

/// Products of the backward pass are called as their Linear, and have one of
/// its factors.
void Float8Setter::setGradient(Operation *product) {
  auto found = layers.find(getNodeName(product));
  if (found == layers.end() || !isWide(elementType(product->getResult(0))))
    return;
  const Layer &of = found->second;
  Value left = originOf(product->getOperand(0)),
        right = originOf(product->getOperand(1));
  if (right == of.w || right == of.x)
    setProduct(product, backward, forward, of);
  else if (left == of.x || left == of.w)
    setProduct(product, forward, backward, of);
}

void Float8Setter::storeAll() {
  MarkStageAndAction mark(Action::Update);
  OpBuilder builder(block.getTerminator(), &mark);
  TensorBuilder t(program.getLoc(), builder);
  Value step;
  if (recipe.interval > 1)
    step = load(kStepCounter, RankedTensorType::get({}, t.b.getI64Type()));
  for (auto &[root, of] : scaled) {
    t.nameOps("scale of " + of.name);
    double largest = llvm::APFloat::getLargest(of.type.getFloatSemantics())
                         .convertToDouble();
    StoreOp::create(t.b, of.name,
                    nextState(t, recipe, largest, of.state, of.amax, step));
  }
}

LogicalResult Float8Setter::run() {
  if (failed(choose()))
    return failure();
  SmallVector<Operation *> gradients;
  for (Operation &op : block)
    if (isa<LinearOp, DotOp>(op) && markedAction(&op) == Action::Backward)
      gradients.push_back(&op);
  for (auto &[node, layer] : layers)
    setProduct(layer.linear, forward, forward, layer);
  for (Operation *product : gradients)
    setGradient(product);
  storeAll();
  // What the model widens is not rounded before.
  for (auto [cast, exact] : widened) {
    cast.getResult().replaceAllUsesWith(exact);
    cast.erase();
  }
  return success(isSound);
}

namespace {
struct SetFloat8 : ax::impl::SetFloat8Base<SetFloat8> {
  using SetFloat8Base::SetFloat8Base;

  void runOnOperation() final {
    if (type.type != Precision::FP8)
      return;
    for (ProgramOp program :
         llvm::to_vector(getOperation().getBody().getOps<ProgramOp>()))
      if (!isEvaluationMode(program.getSymName()) &&
          failed(Float8Setter(program, type.float8).run()))
        return signalPassFailure();
  }
};
} // namespace
