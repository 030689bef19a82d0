//===- Commands.cpp - Kernels and library calls ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Activations.h"
#include "ax/Local/Local.h"
#include "ax/Local/Strides.h"

using namespace mlir;
using namespace ax;

//===----------------------------------------------------------------------===//
// FusionOp
//===----------------------------------------------------------------------===//

LogicalResult FusionOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getOperandTypes())
    return emitOpError("operands and region arguments differ in type");
  auto yield = dyn_cast<LocalYieldOp>(block.back());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("must end with axl.yield of what it gives");
  std::optional<ArrayRef<int64_t>> places = getInPlace();
  if (!places)
    return success();
  if (places->size() != getNumResults())
    return emitOpError("needs a place for each of ")
           << getNumResults() << " results, -1 for one of its own";
  for (auto [result, place] : llvm::zip_equal(getResults(), *places))
    if (place != -1 &&
        (place < 0 || place >= static_cast<int64_t>(getNumOperands()) ||
         getOperand(place).getType() != result.getType()))
      return emitOpError("makes ")
             << result.getType() << " in place of operand " << place
             << ", which is no such tensor";
  return success();
}

//===----------------------------------------------------------------------===//
// UnaryGradientOp
//===----------------------------------------------------------------------===//

LogicalResult UnaryGradientOp::verify() {
  if (!isActivation(getKind()))
    return emitOpError("is of no activation that libraries have: ")
           << stringifyUnaryKind(getKind());
  return success();
}

//===----------------------------------------------------------------------===//
// LibraryOp
//===----------------------------------------------------------------------===//

/// The terminator where the region has no such operation.
static Operation *findCore(LibraryOp library) {
  return &*llvm::find_if(library.getBody().front(),
                         [](Operation &op) { return !isa<TransposeOp>(op); });
}

Operation *LibraryOp::getCore() { return findCore(*this); }

/// The first `OpTy` behind `op`; null where there is none.
template <typename OpTy>
static OpTy firstBehind(Operation *op) {
  while ((op = op->getNextNode()))
    if (auto found = dyn_cast<OpTy>(op))
      return found;
  return {};
}

BinaryOp LibraryOp::getBias() {
  Operation *core = getCore();
  auto sum = dyn_cast_if_present<BinaryOp>(core->getNextNode());
  return sum && findBias(core, sum) ? sum : BinaryOp();
}

UnaryOp LibraryOp::getActivation() { return firstBehind<UnaryOp>(getCore()); }

BinaryOp LibraryOp::getResidual() {
  BinaryOp bias = getBias();
  return firstBehind<BinaryOp>(bias ? bias : getCore());
}

bool LibraryOp::isActivationLast() {
  UnaryOp activation = getActivation();
  return activation && getResidual() == activation->getPrevNode();
}

TransposeOp LibraryOp::getTranspose() {
  return dyn_cast<TransposeOp>(getYield()->getPrevNode());
}

UnaryGradientOp LibraryOp::getGradient() {
  return firstBehind<UnaryGradientOp>(getCore());
}

AccumulateOp LibraryOp::getAccumulation() {
  return firstBehind<AccumulateOp>(getCore());
}

bool LibraryOp::givesInput() {
  return getCore()->getNumResults() == 1 && getNumResults() == 2;
}

/// Whether the region gives it.
static bool isGiven(Value value) {
  return llvm::any_of(value.getUsers(),
                      [](Operation *user) { return isa<LocalYieldOp>(user); });
}

/// Several results are moved to where strides lead, and all of them given.
static LogicalResult checkMoved(LibraryOp library, Operation *core) {
  for (Operation *op = core; op != library.getYield(); op = op->getNextNode()) {
    if (op != core && !isa<TransposeOp, ReshapeOp, ConcatOp>(op))
      return library.emitOpError(
                 "has more than transposes, reshapes and concatenations "
                 "behind ")
             << core->getName();
    for (Value operand : op->getOperands())
      if (Operation *made = operand.getDefiningOp();
          op != core && (!made || made->isBeforeInBlock(core)))
        return library.emitOpError("moves what it does not compute");
    for (Value value : op->getResults())
      if (!value.hasOneUse())
        return library.emitOpError("does not read what it computes once");
  }
  for (OpResult made : core->getResults())
    if (!whereMoved(made, isGiven))
      return library.emitOpError("writes result ")
             << made.getResultNumber() << " of " << core->getName()
             << " to where no strides lead: reshapes behind it may join only "
                "dimensions that are one in memory";
  return success();
}

LogicalResult LibraryOp::verify() {
  Block &block = getBody().front();
  if (block.getArgumentTypes() != getOperandTypes())
    return emitOpError("operands and region arguments differ in type");
  auto yield = dyn_cast<LocalYieldOp>(block.back());
  if (!yield || yield.getOperandTypes() != (*this)->getResultTypes())
    return emitOpError("must end with axl.yield of what it gives");
  Operation *core = findCore(*this);
  if (core == yield.getOperation())
    return emitOpError("has no operation to do");
  BinaryOp bias = getBias(), residual = getResidual();
  SmallVector<Value> read(core->getOperands());
  for (BinaryOp sum : {bias, residual})
    if (sum)
      read.push_back(sum.getRhs());
  UnaryGradientOp gradient = getGradient();
  if (gradient)
    read.push_back(gradient.getOperand());
  AccumulateOp accumulation = getAccumulation();
  if (accumulation)
    read.push_back(accumulation.getSum());
  if (residual && residual.getRhs().getType() != residual.getType())
    return emitOpError("adds a residual of ")
           << residual.getRhs().getType() << " to " << residual.getType();
  if (read.size() != block.getNumArguments())
    return emitOpError("needs an operation that reads each argument once");
  for (auto [operand, argument] : llvm::zip_equal(read, block.getArguments())) {
    auto transpose = operand.getDefiningOp<TransposeOp>();
    if ((transpose ? transpose.getOperand() : operand) != argument)
      return emitOpError(
          "needs an operation that reads its arguments in order");
  }
  if (core->getNumResults() > 1)
    return checkMoved(*this, core);
  // Each behind the one before, which it alone reads.
  Operation *last = bias ? bias : core;
  if (gradient) {
    if (!isa<LinearOp, DotOp>(core) || core->getNextNode() != gradient ||
        gradient->getNextNode() != yield)
      return emitOpError("has the gradient of an activation elsewhere than "
                         "between a product and what is given");
    last = gradient;
  }
  if (accumulation) {
    if (!isa<LinearOp, DotOp>(core) || core->getNextNode() != accumulation ||
        accumulation->getNextNode() != yield)
      return emitOpError("adds up micro-batches elsewhere than between a "
                         "product and what is given");
    last = accumulation;
  }
  UnaryOp activation = dyn_cast<UnaryOp>(last->getNextNode());
  if (activation)
    last = activation;
  if (residual && last->getNextNode() == residual &&
      residual.getKind() == BinaryKind::add)
    last = residual;
  if (auto unary = dyn_cast<UnaryOp>(last->getNextNode()); unary && !activation)
    last = unary;
  if (auto transpose = dyn_cast<TransposeOp>(last->getNextNode()))
    last = transpose;
  if (UnaryOp done = getActivation(); done && !isActivation(done.getKind()))
    return emitOpError("has ")
           << stringifyUnaryKind(done.getKind())
           << " behind its product, which is no activation that libraries have";
  if (last->getNextNode() != yield)
    return emitOpError("has more than a bias, an activation, a residual and "
                       "a transpose behind ")
           << core->getName();
  if (getNumResults() != 1 &&
      (!givesInput() || !activation || !isa<LinearOp, DotOp>(core) ||
       last != activation || yield.getOperand(1) != activation.getOperand()))
    return emitOpError("gives more than what it computes and what its "
                       "activation is of");
  for (Operation *op = yield; op != core; op = op->getPrevNode())
    if ((op->getNumOperands() != 1 && op != bias && op != residual &&
         op != gradient && op != accumulation && op != yield) ||
        op->getOperand(0).getDefiningOp() != op->getPrevNode())
      return emitOpError("does not give what it computes");
  return success();
}
