//===- BitBlocks.h - Blocks of numbers of few bits --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What processors multiply by blocks: a block has one scale.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_BITBLOCKS_H
#define AX_SUPPORT_BITBLOCKS_H

#include <cstdint>

namespace ax {

/// Numbers of a byte have so many bits each.
constexpr bool isFewBits(int64_t bits) {
  return bits == 2 || bits == 4 || bits == 8;
}

/// A power of two from 16 on. The largest leaves room in 32 bits for a sum of
/// its products of eight bits: 255 * 127 * 2^15 < 2^31.
constexpr bool isBlockLength(int64_t length) {
  constexpr int64_t least = 16, most = 1 << 15;
  return length >= least && length <= most && (length & (length - 1)) == 0;
}

/// Rows whose largest number is smaller become 0 in ax.fake_quantize: of the
/// smallest, 127 / m would be no number.
inline constexpr float leastQuantized = 4e-37F;

} // namespace ax

#endif // AX_SUPPORT_BITBLOCKS_H
