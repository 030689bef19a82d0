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
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      const ShardGraph *graph = shared.graphOf(program);
      if (!graph || failed(pin(program, *graph, shared.getMesh())))
        return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  LogicalResult pin(ProgramOp program, const ShardGraph &graph,
                    const sharding::Mesh &mesh) {
    Recipe recipe = makeRecipe(graph, mesh, {sequenceParallel});
    addPins(graph, recipe.pins, mesh, recipe.asked);
    for (Operation *op : graph.ops)
      op->removeDiscardableAttr(gatheredAttr);
    if (sharesStates(program))
      return success();
    Complaints complaints(strict);
    for (const RecipeWarning &warning : recipe.warnings) {
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
