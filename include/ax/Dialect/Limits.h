//===- Limits.h - What is refused everywhere --------------------*- C++ -*-===//
#ifndef AX_DIALECT_LIMITS_H
#define AX_DIALECT_LIMITS_H

#include <cstdint>

namespace ax {

/// No tensor of a model or a plan is larger.
inline constexpr int64_t maxTensorBytes = int64_t(1) << 42;

} // namespace ax

#endif // AX_DIALECT_LIMITS_H
