//===- Heads.h - Heads of attention, split and merged -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_HEADS_H
#define AX_LIB_IMPORT_HEADS_H

#include "Node.h"

namespace ax::import {

/// [batch, length, heads * width] -> [batch, heads, length, width]; a failure
/// when the last dimension is no multiple.
Value splitHeads(Node &n, Value x, int64_t heads);

/// [batch, heads, length, width] -> [batch, length, heads * width]
Value mergeHeads(Emitter &b, Value x);

/// Rotates the pairs of the last dimension of x [batch, heads, length, width]
/// by angles whose cosines and sines are [batch or 1, 1, length, pairs]; what
/// is behind the pairs stays. The two of a pair lie side by side
/// (`interleaved`) or `pairs` apart.
Value rotate(Emitter &b, Value x, Value cosines, Value sines, bool interleaved);

/// Rows of the caches of angles, inputs `cosines` and `sines`, at positions
/// [batch or 1, length]: two of [batch or 1, 1, length, pairs]. Null, and a
/// failure, where they are none for heads of `width`.
std::pair<Value, Value> readAngles(Node &n, int cosines, int sines,
                                   Value positions, int64_t width);

} // namespace ax::import

#endif // AX_LIB_IMPORT_HEADS_H
