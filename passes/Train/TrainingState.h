//===- TrainingState.h - States that training adds --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_TRAININGSTATE_H
#define AX_PASSES_TRAIN_TRAININGSTATE_H

#include "ax/Dialect/Ax.h"
#include "llvm/Support/Error.h"

namespace ax {

/// The state `name` that training keeps beside the model's weights; made by
/// `builder`, zero at first, if it is not there yet. BadModel when a weight is
/// called so.
llvm::Expected<StateOp> getTrainingState(mlir::SymbolTable &states,
                                         mlir::OpBuilder &builder,
                                         llvm::StringRef name,
                                         mlir::RankedTensorType type);

} // namespace ax

#endif // AX_PASSES_TRAIN_TRAININGSTATE_H
