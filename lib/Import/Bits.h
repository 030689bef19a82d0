//===- Bits.h - Numbers of fewer than eight bits ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_BITS_H
#define AX_LIB_IMPORT_BITS_H

#include "Emitter.h"

namespace ax::import {

/// u8 numbers [.., n] of `bits` bits (2, 4 or 8) from the bytes [.., m] in
/// which they lie, the first in the lowest bits; those behind the n-th are left
/// out.
Value unpackBits(Emitter &b, Value bytes, int64_t bits, int64_t n);

/// Numbers of typeOf(fourBits.kind) from the bytes in which `fourBits` lie.
Value unpackFourBits(Emitter &b, Value bytes, const FourBits &fourBits);

/// x with 0 up to whole blocks of `size` in its last dimension, each of which
/// is rounded to integers of eight bits, as onnxruntime does before it
/// multiplies by numbers of few bits.
Value roundBlocks(Emitter &b, Value x, int64_t size);

} // namespace ax::import

#endif // AX_LIB_IMPORT_BITS_H
