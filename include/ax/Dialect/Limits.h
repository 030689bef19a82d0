//===- Limits.h - What is refused everywhere --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_LIMITS_H
#define AX_DIALECT_LIMITS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ax {

/// No tensor of a model or a plan is larger, or has more dimensions.
inline constexpr int64_t maxTensorBytes = int64_t(1) << 42;
inline constexpr int64_t maxTensorRank = 64;
/// Ends the messages about tensors that are.
inline constexpr llvm::StringLiteral tooLarge = "larger than 4 TiB";

/// Why no tensor has this shape: `has more than 64 dimensions`; empty when one
/// may. Sizes are at least 0.
inline std::string findSizeFault(llvm::ArrayRef<int64_t> shape,
                                 int64_t elementBytes) {
  if (static_cast<int64_t>(shape.size()) > maxTensorRank)
    return "has more than " + std::to_string(maxTensorRank) + " dimensions";
  int64_t room = maxTensorBytes / elementBytes;
  for (int64_t size : shape) {
    if (size > room)
      return "is " + tooLarge.str();
    room /= std::max<int64_t>(size, 1);
  }
  return "";
}

} // namespace ax

#endif // AX_DIALECT_LIMITS_H
