//===- KnownValue.cpp - Values that are known before any input --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KnownValue.h"

#include "Match.h"

#include "ax/Dialect/WeightKind.h"
#include "ax/Interpreter/FoldedWeights.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Interpreter/States.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;

namespace {

template <typename T>
std::optional<T> orNothing(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  llvm::consumeError(value.takeError());
  return std::nullopt;
}

/// The state's elements, where no training changes them. Of those that are
/// dealt the model was looked at before.
std::optional<HostTensor> readState(LoadOp load) {
  auto plan = load->getParentOfType<PlanOp>();
  auto state = plan ? plan.lookupSymbol<StateOp>(load.getState()) : StateOp();
  if (!state || state.getTrainable() || state->hasAttr(kMayBeTrained) ||
      state.getDealt())
    return std::nullopt;
  return contentsOf(state);
}

using Known = llvm::DenseMap<Value, std::optional<HostTensor>>;

std::optional<HostTensor> compute(Value value, int64_t maxElements,
                                  Known &known);

std::optional<HostTensor> computeOnce(Value value, int64_t maxElements,
                                      Known &known) {
  Operation *op = value.getDefiningOp();
  if (tensorType(value).getNumElements() > maxElements)
    return std::nullopt;
  if (auto load = dyn_cast<LoadOp>(op))
    return readState(load);
  std::vector<HostTensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<HostTensor> tensor = compute(operand, maxElements, known);
    if (!tensor)
      return std::nullopt;
    operands.push_back(std::move(*tensor));
  }
  auto results = orNothing(interpreter::interpret(op, operands));
  if (!results)
    return std::nullopt;
  return (*results)[cast<OpResult>(value).getResultNumber()];
}

std::optional<HostTensor> compute(Value value, int64_t maxElements,
                                  Known &known) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::optional<HostTensor> tensor = computeOnce(value, maxElements, known);
  known[value] = tensor;
  return tensor;
}

} // namespace

llvm::ArrayRef<uint8_t> ax::bytesOf(StateOp state,
                                    std::shared_ptr<MappedFile> &file) {
  return orNothing(interpreter::bytesOf(state, file))
      .value_or(llvm::ArrayRef<uint8_t>());
}

std::optional<HostTensor> ax::contentsOf(StateOp state) {
  return orNothing(interpreter::readState(state));
}

std::optional<HostTensor> ax::knownValue(Value value, int64_t maxElements) {
  if (!isWeight(value))
    return std::nullopt;
  Known known;
  return compute(value, maxElements, known);
}

void ax::noteDecided(Value value) {
  llvm::SetVector<Operation *> behind;
  behind.insert(value.getDefiningOp());
  for (size_t i = 0; i < behind.size(); ++i) {
    if (auto load = dyn_cast<LoadOp>(behind[i]))
      if (std::optional<HostTensor> tensor = readState(load))
        addFolded(load->getParentOfType<PlanOp>(), load.getState(), *tensor);
    for (Value operand : behind[i]->getOperands())
      behind.insert(operand.getDefiningOp());
  }
}

std::optional<double> ax::splatOf(const HostTensor &tensor) {
  if (tensor.numElements() == 0)
    return std::nullopt;
  double first = tensor.getDouble(0);
  for (int64_t i = 1; i < tensor.numElements(); ++i)
    if (tensor.getDouble(i) != first)
      return std::nullopt;
  return first;
}

std::optional<double> ax::knownSplat(Value value, int64_t maxElements) {
  std::optional<HostTensor> known = knownValue(value, maxElements);
  return known ? splatOf(*known) : std::nullopt;
}
