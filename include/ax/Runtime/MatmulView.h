//===- MatmulView.h - Simpler forms of a matrix product ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_MATMULVIEW_H
#define AX_RUNTIME_MATMULVIEW_H

#include "ax/Runtime/LibraryOps.h"

namespace ax::rt {

/// The same product with as few batch dimensions as the strides allow: where b
/// has no batch, those of a and c become rows. Batch dimensions of stride 0 in
/// a or b get size 1.
MatmulDesc collapse(const MatmulDesc &desc);

} // namespace ax::rt

#endif // AX_RUNTIME_MATMULVIEW_H
