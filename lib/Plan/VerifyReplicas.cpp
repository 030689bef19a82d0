//===- VerifyReplicas.cpp - One value for all that hold a state -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages that hold a state each compute its new value.
//
//===----------------------------------------------------------------------===//
#include "ValueNumbers.h"
#include "Verifier.h"

using namespace mlir;
using namespace ax;

void plan::verifyReplicas(ProgramOp program) {
  ValueNumbers numbers(program);
  llvm::DenseMap<StringAttr, StoreOp> first;
  for (StageOp stage : program.getBody().getOps<StageOp>())
    for (auto store : stage.getBody().getOps<StoreOp>()) {
      StoreOp other = first.try_emplace(store.getStateAttr().getAttr(), store)
                          .first->second;
      int64_t on = cast<StageOp>(other->getParentOp()).getOn();
      if (on != static_cast<int64_t>(stage.getOn()) &&
          numbers.of(store.getOperand()) != numbers.of(other.getOperand()))
        store.emitOpError() << "stores another value of @" << store.getState()
                            << " than stage " << on << ", which holds it, too";
    }
}
