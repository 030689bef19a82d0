//===- KnownValue.h - Values that are known before any input ----*- C++ -*-===//
#ifndef AX_PASSES_KNOWNVALUE_H
#define AX_PASSES_KNOWNVALUE_H

#include "ax/Support/HostTensor.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace ax {

/// The elements of what is computed from constants, and from states that are
/// read from the model's folder: masks, indices, positions. Nothing when inputs
/// take part, when a tensor on the way has more than `maxElements`, or when a
/// file cannot be read.
std::optional<HostTensor> knownValue(mlir::Value value,
                                     int64_t maxElements = int64_t(1) << 24);

/// The number that every element of such a value has.
std::optional<double> knownSplat(mlir::Value value,
                                 int64_t maxElements = int64_t(1) << 16);

} // namespace ax

#endif // AX_PASSES_KNOWNVALUE_H
