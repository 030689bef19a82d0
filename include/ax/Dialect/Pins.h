//===- Pins.h - What the steps of the Shard phase tell each other - C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_PINS_H
#define AX_DIALECT_PINS_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// The attribute of an operation or a program's input that says what is asked
/// of splits: a list of `#ax.pin` and `#ax.factor_pin` in the order in which it
/// was asked. It is gone after ax-insert-reshards.
inline constexpr llvm::StringLiteral kPins = "ax.pins";

/// The attribute of an operation or a program's input with the `#ax.sharding`
/// that propagation found. It is gone after ax-insert-reshards.
inline constexpr llvm::StringLiteral kSharding = "ax.sharding";

} // namespace ax

#endif // AX_DIALECT_PINS_H
