//===- Quantised.h - Floats rounded to integers of few bits -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_QUANTISED_H
#define AX_PASSES_TRAIN_QUANTISED_H

#include "ax/Dialect/Ax.h"

#include <optional>

namespace ax {

/// What a quantised number is made of, as ONNX's QuantizeLinear has it.
struct Quantised {
  /// f32: whole, before it is cut to low .. high.
  mlir::Value whole;
  /// All that the integer type has.
  double low = 0, high = 0;
};

/// Returns what is quantised; nothing where the cast is another one.
std::optional<Quantised> matchQuantised(CastOp cast);

} // namespace ax

#endif // AX_PASSES_TRAIN_QUANTISED_H
