//===- Activations.h - What libraries do behind a product -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_ACTIVATIONS_H
#define AX_DIALECT_ACTIVATIONS_H

#include "ax/Dialect/AxEnums.h"

namespace ax {

/// Whether some device's library does the function of floats in one call with
/// the product that it is of.
inline bool isActivation(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::relu:
  case UnaryKind::gelu:
  case UnaryKind::gelu_tanh:
  case UnaryKind::silu:
  case UnaryKind::sigmoid:
  case UnaryKind::tanh:
    return true;
  default:
    return false;
  }
}

} // namespace ax

#endif // AX_DIALECT_ACTIVATIONS_H
