//===- WeightKind.cpp - What a model tells of a weight --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/WeightKind.h"

#include "llvm/ADT/ArrayRef.h"

using namespace ax;

/// The names, in the order of the enum.
static constexpr llvm::StringLiteral names[] = {
    "parameter",   "buffer", "constant",      "layer_parameter",
    "statistic",   "sines",  "mask",          "zero_row",
    "progression", "grid",   "initial_state", "repeated"};

llvm::StringRef ax::toString(WeightKind kind) {
  return names[static_cast<size_t>(kind)];
}

std::optional<WeightKind> ax::parseWeightKind(llvm::StringRef name) {
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<WeightKind>(i);
  return std::nullopt;
}
