//===- VerifyPrepared.cpp - What is computed once, of weights -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Verifier.h"

#include "ax/Dialect/ProgramNames.h"

using namespace mlir;
using namespace ax;

void plan::verifyPrepared(PlanOp plan) {
  auto prepare = plan.lookupSymbol<ProgramOp>(preparationProgram);
  if (prepare && (prepare.getNumArguments() || prepare.getNumResults()))
    prepare.emitOpError() << "is run when the plan is loaded: it takes and "
                             "gives nothing";
  llvm::DenseSet<StringAttr> read;
  if (prepare)
    prepare.walk(
        [&](LoadOp load) { read.insert(load.getStateAttr().getAttr()); });
  SymbolTable symbols(plan);
  llvm::DenseSet<StringAttr> made;
  plan.walk([&](StoreOp store) {
    auto state = symbols.lookup<StateOp>(store.getState());
    bool isPreparing = store->getParentOfType<ProgramOp>() == prepare;
    if (isPreparing && state.getPrepared())
      made.insert(state.getSymNameAttr());
    else if (isPreparing)
      store.emitOpError() << "stores @" << store.getState()
                          << ", which is not prepared";
    else if (state.getPrepared())
      store.emitOpError() << "stores @" << store.getState()
                          << ", which only @prepare does";
    else if (read.contains(state.getSymNameAttr()))
      store.emitOpError() << "stores @" << store.getState()
                          << ", of which others are prepared once, which would "
                             "be of the old one";
  });
  if (prepare)
    prepare.walk([&](LoadOp load) {
      if (symbols.lookup<StateOp>(load.getState()).getPrepared())
        load.emitOpError() << "loads @" << load.getState()
                           << ", which is still to be prepared";
    });
  for (auto state : plan.getBody().getOps<StateOp>())
    if (state.getPrepared() && !made.contains(state.getSymNameAttr()))
      state.emitOpError() << "is prepared, but @prepare does not store it";
}
