//===- RecipePins.cpp - What a strategy asks of splits --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PinLists.h"
#include "ShardAnalysis.h"
#include "ax/Passes/Passes.h"

namespace ax {
#define GEN_PASS_DEF_RECIPEPINS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {
struct RecipePins : ax::impl::RecipePinsBase<RecipePins> {
  using RecipePinsBase::RecipePinsBase;

  void runOnOperation() final {
    auto &shared = getAnalysis<ShardAnalysis>();
    bool splitsContext = false;
    // Of the programs that nothing of is split over context.
    SmallVector<std::pair<ProgramOp, RecipeWarning>> unsplit;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      const ShardGraph *graph = shared.graphOf(program);
      if (!graph)
        return signalPassFailure();
      Recipe recipe = makeRecipe(*graph, shared.getMesh(), {sequenceParallel});
      splitsContext |= recipe.splitsContext;
      if (recipe.contextFault && recipe.splitsContext)
        recipe.warnings.push_back(*recipe.contextFault);
      else if (recipe.contextFault)
        unsplit.emplace_back(program, *recipe.contextFault);
      addPins(*graph, recipe.pins, shared.getMesh(), recipe.asked);
      for (Operation *op : graph->ops)
        op->removeDiscardableAttr(gatheredAttr);
      if (!sharesStates(program) && failed(tell(program, recipe.warnings)))
        return signalPassFailure();
    }
    // A step of one token at a time has no sequence; what takes several has.
    if (!splitsContext && !unsplit.empty()) {
      auto &[program, warning] =
          unsplit.front().second.isError ? unsplit.front() : unsplit.back();
      if (failed(tell(program, warning)))
        return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  LogicalResult tell(ProgramOp program, ArrayRef<RecipeWarning> warnings) {
    Complaints complaints(strict);
    for (const RecipeWarning &warning : warnings) {
      Operation *op = warning.op ? warning.op : program.getOperation();
      if (warning.isError)
        return op->emitError(warning.text);
      if (failed(complaints.add(op, warning.text)))
        return failure();
    }
    return success();
  }
};
} // namespace
