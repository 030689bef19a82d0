//===- CreateStep.h - A step of a resharding as an operation ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_SHARD_CREATESTEP_H
#define AX_PASSES_SHARD_CREATESTEP_H

#include "ax/Dialect/Ax.h"
#include "ax/Sharding/Reshard.h"

#include "mlir/IR/Builders.h"

namespace ax {

/// Makes the operation that does `step` with `operand`, and returns its result.
/// `because`: its cause, of one that communicates; null where there is none.
mlir::Value createStep(mlir::OpBuilder &builder, mlir::Location loc,
                       const sharding::Step &step, mlir::Value operand,
                       const sharding::Mesh &mesh, mlir::StringAttr because);

} // namespace ax

#endif // AX_PASSES_SHARD_CREATESTEP_H
