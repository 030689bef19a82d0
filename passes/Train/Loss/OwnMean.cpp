//===- OwnMean.cpp - A model's own loss as sum and count ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "OwnMean.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;

static bool isOneFloat(Value value) {
  return isa<FloatType>(elementType(value)) &&
         tensorType(value).getNumElements() == 1;
}

static Value toNumber(TensorBuilder &t, Value value) {
  return t.cast(t.reshape(value, {}), t.b.getF32Type());
}

static bool isTrained(LoadOp load) {
  auto state =
      load->getParentOfType<PlanOp>().lookupSymbol<StateOp>(load.getState());
  return !state || state.getTrainable();
}

namespace {
/// What a number depends on.
enum class Made { OfConstants, OfInputs, OfWeights };
} // namespace

static Made getMade(Value number) {
  Made made = Made::OfConstants;
  llvm::SetVector<Value> behind;
  behind.insert(number);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    if (!op) {
      made = Made::OfInputs;
      continue;
    }
    if (auto load = dyn_cast<LoadOp>(op); load && isTrained(load))
      return Made::OfWeights;
    behind.insert(op->operand_begin(), op->operand_end());
  }
  return made;
}

static bool isConstant(Value value) {
  return isOneFloat(value) && getMade(value) == Made::OfConstants;
}

/// Returns the number that `op` gives a constant times as much of; null where
/// it does anything else.
static OpOperand *findScaled(Operation *op) {
  auto operand = [&](unsigned i) { return &op->getOpOperand(i); };
  if (isa<ReshapeOp, CastOp>(op))
    return operand(0);
  if (auto unary = dyn_cast<UnaryOp>(op))
    return unary.getKind() == UnaryKind::neg ? operand(0) : nullptr;
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary)
    return nullptr;
  bool isProduct = binary.getKind() == BinaryKind::mul;
  if (isProduct && isConstant(op->getOperand(0)))
    return operand(1);
  if ((isProduct || binary.getKind() == BinaryKind::div) &&
      isConstant(op->getOperand(1)))
    return operand(0);
  return nullptr;
}

/// What these operations, the last one first, make of another number than that
/// which findScaled has.
static Value scale(TensorBuilder &t, Value number,
                   ArrayRef<Operation *> scalings) {
  for (Operation *op : llvm::reverse(scalings)) {
    if (isa<UnaryOp>(op))
      number = t.unary(UnaryKind::neg, number);
    if (auto binary = dyn_cast<BinaryOp>(op))
      number = t.binary(
          binary.getKind(), number,
          toNumber(t, op->getOperand(1 - findScaled(op)->getOperandNumber())));
  }
  return number;
}

static int64_t countAddends(Value number) {
  while (Operation *op = number.getDefiningOp()) {
    if (auto reduce = dyn_cast<ReduceOp>(op);
        reduce && reduce.getKind() == ReduceOpKind::sum)
      return tensorType(op->getOperand(0)).getNumElements();
    OpOperand *scaled = findScaled(op);
    if (!scaled)
      break;
    number = scaled->get();
  }
  return 1;
}

std::optional<OwnMean> ax::findOwnMean(TensorBuilder &t, Value loss) {
  BinaryOp found;
  SmallVector<Operation *> scalings, behindFound;
  Value number = loss;
  while (isOneFloat(number)) {
    Operation *op = number.getDefiningOp();
    auto mean = dyn_cast_or_null<BinaryOp>(op);
    if (mean && mean.getKind() == BinaryKind::div &&
        llvm::all_of(op->getOperands(), isOneFloat)) {
      Made made = getMade(op->getOperand(1));
      if (made == Made::OfInputs || (made == Made::OfConstants && !found)) {
        found = mean;
        behindFound = scalings;
      }
      if (made == Made::OfInputs)
        break;
    }
    OpOperand *scaled = op ? findScaled(op) : nullptr;
    if (!scaled)
      break;
    scalings.push_back(op);
    number = scaled->get();
  }
  if (!found)
    return std::nullopt;
  Value sum = found->getOperand(0);
  return OwnMean{scale(t, toNumber(t, sum), behindFound),
                 toNumber(t, found->getOperand(1)), countAddends(sum)};
}
