//===- TrainingState.cpp - States that training adds ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TrainingState.h"

#include "ax/Support/Error.h"

using namespace mlir;
using namespace ax;

llvm::Expected<StateOp> ax::getTrainingState(SymbolTable &states,
                                             OpBuilder &builder, StringRef name,
                                             RankedTensorType type) {
  auto state = states.lookup<StateOp>(name);
  if (state && !state.isZeroAtFirst())
    return makeErrorf(
        ExitCode::BadModel,
        "the model has a weight '{0}', and training keeps a state "
        "of that name: rename the initializer",
        name);
  if (!state) {
    state = StateOp::create(builder, builder.getUnknownLoc(), name, type);
    states.insert(state);
  }
  return state;
}
