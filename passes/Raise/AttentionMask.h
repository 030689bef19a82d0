//===- AttentionMask.h - Masks of attention ---------------------*- C++ -*-===//
#ifndef AX_PASSES_RAISE_ATTENTIONMASK_H
#define AX_PASSES_RAISE_ATTENTIONMASK_H

#include "AttentionMatch.h"

namespace ax {

/// The mask that means what the steps do, for scores [batch, heads, S, T]; null
/// when there are none. Failure when no mask does: a step replaces scores by a
/// number that is not far below all scores, and so would matter in rows where
/// every score is replaced.
mlir::FailureOr<mlir::Value> buildMask(mlir::RewriterBase &rewriter,
                                       mlir::Location loc,
                                       const AttentionMatch &match,
                                       int64_t batch, int64_t heads);

/// Patterns on `ax.attention`: masks known to be causal or to mask nothing, and
/// additive masks of 0 and -inf.
void addAttentionMaskPatterns(mlir::RewritePatternSet &patterns);

} // namespace ax

#endif // AX_PASSES_RAISE_ATTENTIONMASK_H
