//===- Random.h - What random numbers depend on -----------------*- C++ -*-===//
#ifndef AX_DIALECT_RANDOM_H
#define AX_DIALECT_RANDOM_H

#include "ax/Dialect/Ax.h"

#include "llvm/ADT/StringRef.h"

namespace ax {

/// The state that decides all that is random: `axrun --seed`. And the one that
/// counts the steps that are done.
inline constexpr llvm::StringLiteral kRandomSeed = "random.seed",
                                     kStepCounter = "optimizer.step";

/// Whether the op's results are others with another seed or in another step.
inline bool isRandom(mlir::Operation *op) {
  return mlir::isa<DropoutOp, UniformOp>(op);
}

} // namespace ax

#endif // AX_DIALECT_RANDOM_H
