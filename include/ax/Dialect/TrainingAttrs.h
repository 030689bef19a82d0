//===- TrainingAttrs.h - What Import tells the training passes --*- C++ -*-===//
#ifndef AX_DIALECT_TRAININGATTRS_H
#define AX_DIALECT_TRAININGATTRS_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// On a state that holds what was observed (running means), not what is
/// learned. Gone after ax-select-trainable.
inline constexpr llvm::StringLiteral kStatistic = "ax.statistic";

} // namespace ax

#endif // AX_DIALECT_TRAININGATTRS_H
