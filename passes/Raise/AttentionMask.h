//===- AttentionMask.h - Masks of attention ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_ATTENTIONMASK_H
#define AX_PASSES_RAISE_ATTENTIONMASK_H

#include "AttentionMatch.h"
#include "MaskRegions.h"

#include "llvm/ADT/DenseMap.h"

namespace ax {

/// Whether adding `number` to any sensible score gives `number` again, within
/// rounding: then adding it and putting it in place are the same.
bool swallowsScores(double number, mlir::Type type);

/// A mask's element as what may be attended to. A number says no when no score
/// makes up for it; -1e4 in f32, say, is a number to add, and neither.
std::optional<bool> isAttendable(double element, mlir::Type type,
                                 bool kept = true);

/// What is known of masks before any input. Layers share their masks: each is
/// looked at once. Values asked about must not be erased in between.
class KnownMasks {
public:
  /// Whether every row of a condition is known to have an element `kept`.
  bool keepsEveryRow(mlir::Value condition, bool kept);

  enum Kind { Unknown, Nothing, Causal };
  /// What a mask of scores [.., queries, keys] is known to mask.
  Kind getKind(mlir::Value mask, int64_t queries, int64_t keys);

private:
  bool regionKeepsEveryRow(mlir::Value condition, bool kept);
  Kind kindOfRegion(mlir::Value mask, int64_t queries, int64_t keys);

  llvm::DenseMap<std::pair<mlir::Value, int>, bool> everyRow;
  llvm::DenseMap<mlir::Value, Kind> kinds;
  /// Of those that are too large to look at.
  MaskRegions regions;
};

/// The mask that means what the steps do, for scores [batch, heads, S, T]; null
/// when there are none. Failure when no mask does: a step replaces scores by a
/// number that is not far below all scores, and so would matter in rows where
/// every score is replaced.
mlir::FailureOr<mlir::Value> buildMask(mlir::RewriterBase &rewriter,
                                       mlir::Location loc,
                                       const AttentionMatch &match,
                                       int64_t batch, int64_t heads,
                                       KnownMasks &known);

/// The scale of rows, for scores [batch, heads, S, T]; null when its leading
/// dimensions do not correspond.
mlir::Value buildRowScale(mlir::RewriterBase &rewriter, mlir::Location loc,
                          const AttentionMatch &match, int64_t batch,
                          int64_t heads, KnownMasks &known);

/// Masks known to be causal become the attribute, also those that hide some
/// keys beside that, of which the mask is left; those known to mask nothing are
/// dropped.
void dropKnownMasks(mlir::Operation *root, KnownMasks &known);

/// Patterns on `ax.attention`: additive masks of 0 and -inf, broadcast masks.
void addAttentionMaskPatterns(mlir::RewritePatternSet &patterns);

} // namespace ax

#endif // AX_PASSES_RAISE_ATTENTIONMASK_H
