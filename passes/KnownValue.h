//===- KnownValue.h - Values that are known before any input ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_KNOWNVALUE_H
#define AX_PASSES_KNOWNVALUE_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"
#include "ax/Support/MappedFile.h"

#include <optional>

namespace ax {

/// The elements of what is computed from constants, and from states that are
/// read from the model's folder: masks, indices, positions. Nothing when inputs
/// or states that are trained, or may be, take part, when a tensor on the way
/// has more than `maxElements`, or when a file cannot be read.
std::optional<HostTensor> knownValue(mlir::Value value,
                                     int64_t maxElements = int64_t(1) << 24);

/// A state's bytes in the model's folder, as long as `file` is there; none when
/// they cannot be read.
llvm::ArrayRef<uint8_t> bytesOf(StateOp state,
                                std::shared_ptr<MappedFile> &file);

/// What is done follows from the elements of such a value: the weights among
/// its states are noted with the plan (Interpreter/FoldedWeights.h).
void noteDecided(mlir::Value value);

/// A state's elements before any training; none when they cannot be read.
std::optional<HostTensor> contentsOf(StateOp state);

/// The number that every element has.
std::optional<double> splatOf(const HostTensor &tensor);

/// The number that every element of such a value has.
std::optional<double> knownSplat(mlir::Value value,
                                 int64_t maxElements = int64_t(1) << 16);

} // namespace ax

#endif // AX_PASSES_KNOWNVALUE_H
