//===- EqualWeights.cpp - Weights that exporters wrote twice, or once -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EqualWeights.h"

#include "../KnownValue.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Support/GivenWeights.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ax;

/// Exporters write tied weights twice, the second one often transposed.
void ax::warnOfTwins(PlanOp plan) {
  std::vector<ModelWeight> weights;
  std::vector<std::shared_ptr<MappedFile>> files;
  for (auto state : plan.getBody().getOps<StateOp>()) {
    RankedTensorType type = state.getTensorType();
    std::optional<DType> element = interpreter::toDType(type.getElementType());
    if (!state.getTrainable() || !element)
      continue;
    ModelWeight weight{
        state.getSymName().str(), *element, Shape(type.getShape()), {}};
    weight.bytes = bytesOf(state, files.emplace_back());
    weights.push_back(std::move(weight));
  }
  std::string twins;
  for (const auto &[name, twin] : findTwins(weights))
    twins += "\n  " + name + " and " + twin.name +
             (twin.isTransposed ? ", transposed" : "");
  if (!twins.empty())
    plan.emitWarning("weights that are equal train as separate "
                     "ones; if they were tied in the model:")
        << twins << "\nsee 'Models to train' in docs/training.md";
}

/// Whether all elements are equal, as in fresh biases and scales, which are
/// small; not in single numbers.
static bool isOfOneNumber(StateOp state) {
  int64_t size = state.getTensorType().getNumElements();
  if (size < 2 || size > (int64_t(1) << 16))
    return false;
  std::optional<HostTensor> contents = contentsOf(state);
  return contents && splatOf(*contents);
}

static bool isBiasIn(Operation *user, Value bias) {
  auto sum = dyn_cast<BinaryOp>(user);
  return sum && llvm::any_of(sum->getOperands(), [&](Value operand) {
           Operation *product = operand.getDefiningOp();
           return product && findBias(product, sum) == bias;
         });
}

/// Returns how many layers read `value`. As the bias of convolutions it is
/// reshaped once for all of them; others make one thing of its parts (the
/// gates of a recurrent layer).
static size_t countUses(Value value) {
  size_t uses = 0;
  for (Operation *user : value.getUsers()) {
    size_t biases = 0;
    if (auto reshape = dyn_cast<ReshapeOp>(user))
      biases = llvm::count_if(reshape->getUsers(), [&](Operation *reader) {
        return isBiasIn(reader, reshape.getResult());
      });
    uses += std::max<size_t>(biases, 1);
  }
  return uses;
}

/// Exporters write equal weights once, which those of a fresh model are.
void ax::warnOfMerged(PlanOp plan) {
  llvm::MapVector<StringAttr, SmallVector<LoadOp>> loads;
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
    if (!isEvaluationMode(program.getSymName()))
      for (auto load : program.getBody().getOps<LoadOp>())
        loads[load.getStateAttr().getAttr()].push_back(load);
  std::string merged;
  for (auto &[name, of] : loads) {
    size_t uses = 0;
    for (LoadOp load : of)
      uses += countUses(load.getResult());
    auto state = plan.lookupSymbol<StateOp>(name);
    if (uses > 1 && state.getTrainable() && isOfOneNumber(state))
      merged += "\n  " + name.str() + ": " + std::to_string(uses) + " times";
  }
  if (!merged.empty())
    plan.emitWarning(
        "weights of equal elements are used several times; if an exporter "
        "merged those of several layers, they train as one:")
        << merged << "\nsee 'Models to train' in docs/training.md";
}
