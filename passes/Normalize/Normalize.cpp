//===- Normalize.cpp - One form for what is written in many -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Passes/Passes.h"

#include "Patterns.h"
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/StageAndAction.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ax {
#define GEN_PASS_DEF_NORMALIZE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;

namespace {

/// What is made for an operation belongs where that does.
struct KeepPlace : RewriterBase::Listener {
  void notifyPatternBegin(const Pattern &, Operation *op) final {
    for (auto [place, name] : llvm::zip_equal(places, names))
      place = op->getAttr(name);
  }
  void notifyOperationInserted(Operation *made, OpBuilder::InsertPoint) final {
    for (auto [place, name] : llvm::zip_equal(places, names))
      if (place && !made->hasAttr(name))
        made->setAttr(name, place);
  }

  static constexpr StringLiteral names[] = {ax::kStage, ax::kAction};
  /// Of the operation that a pattern is tried on.
  Attribute places[2];
};

struct Normalize : ax::impl::NormalizeBase<Normalize> {
  using NormalizeBase::NormalizeBase;

  LogicalResult initialize(MLIRContext *context) final {
    RewritePatternSet set(context);
    ax::addMovementPatterns(set);
    ax::addArithmeticPatterns(set);
    ax::addConstantPatterns(set);
    ax::addBroadcastPatterns(set);
    ax::addSinkReshapePatterns(set);
    ax::addContractionPatterns(set);
    ax::addSumPatterns(set);
    ax::addLookupPatterns(set);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() final {
    GreedyRewriteConfig config;
    // What comes first in the program is in its form before its users are: a
    // chain of movements is one before anything is moved across it.
    config.setUseTopDownTraversal(true);
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    KeepPlace places;
    config.setListener(&places);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
