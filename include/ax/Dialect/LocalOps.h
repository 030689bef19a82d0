//===- LocalOps.h - Operations on the parts of one rank ---------*- C++ -*-===//
#ifndef AX_DIALECT_LOCALOPS_H
#define AX_DIALECT_LOCALOPS_H

#include "ax/Dialect/Ax.h"

namespace ax {
/// Of check_indices: the type of the whole indices, with its layout, and the
/// number of the plan's op. Of several faults the first of both is reported.
inline constexpr llvm::StringLiteral kWholeIndices = "ax.whole_indices",
                                     kOrder = "ax.order";
/// Also of check_indices: they are how many results there are.
inline constexpr llvm::StringLiteral kIsCount = "ax.is_count";
} // namespace ax

#define GET_OP_CLASSES
#include "ax/Dialect/AxLocalOps.h.inc"

#endif // AX_DIALECT_LOCALOPS_H
