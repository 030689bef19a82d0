//===- BatchStatistics.h - What BatchNormalization goes by ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_BATCHSTATISTICS_H
#define AX_LIB_IMPORT_BATCHSTATISTICS_H

#include "ax/Dialect/Ax.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/Error.h"

#include <onnx/onnx_pb.h>

#include <optional>

namespace ax::import {

/// Makes every BatchNormalization of a graph of operator set `opset` take the
/// statistics of the batch (true), or the running ones; without `ofBatch` they
/// stay as the model says. `numParts`: those of parts of the batch. A remark
/// tells by what how many of them normalise, a warning if that is by the
/// running statistics though nobody asked for it. A Usage error when `ofBatch`
/// is given and there is none.
llvm::Error setBatchStatistics(onnx::GraphProto &graph, int opset,
                               std::optional<bool> ofBatch, int64_t numParts,
                               mlir::Location location);

/// Attribute of a reshape that cuts a batch into parts, until checkBatchParts.
inline constexpr llvm::StringLiteral kCutsBatch = "ax.cuts_batch";

/// A Usage error where what was cut into `numParts` parts does not count the
/// samples of the batch in front, or they do not divide that.
llvm::Error checkBatchParts(ProgramOp program, int64_t numParts);

} // namespace ax::import

#endif // AX_LIB_IMPORT_BATCHSTATISTICS_H
