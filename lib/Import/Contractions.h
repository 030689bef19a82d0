//===- Contractions.h - Contractions that several operators use -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_CONTRACTIONS_H
#define AX_LIB_IMPORT_CONTRACTIONS_H

#include "Node.h"

namespace ax::import {

/// Multiplies as NumPy's matmul does.
Value matmul(Emitter &b, Value lhs, Value rhs);

/// What a Gemm gives; those that are fused have the same inputs and attributes.
Value importProduct(Node &n);

/// The window that a convolution's or pool's attributes describe for `x`
/// [batch, channels, spatial...]. `kernel` is the default of `kernel_shape`.
/// Fails unless every attribute has one entry (pads: two) a dimension.
std::optional<Window> readWindow(Node &n, Value x, ArrayRef<int64_t> kernel);

/// A convolution with the node's attributes; `bias` may be null.
Value importConvolution(Node &n, Value x, Value w, Value bias);

/// Completes a pool's window: pads of `auto_pad`, and how far the last window
/// reaches beyond them in ceil mode.
void finishPoolWindow(Node &n, Value x, Window &window);

/// An average pool with the node's attributes.
Value importAverage(Node &n, Value x);

/// The mean over all dimensions behind batch and channels, which are kept as 1.
Value globalAverage(Node &n, Value x);

} // namespace ax::import

#endif // AX_LIB_IMPORT_CONTRACTIONS_H
