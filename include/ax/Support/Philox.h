//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Philox4x32-10: Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
// SC 2011.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_PHILOX_H
#define AX_SUPPORT_PHILOX_H

#include <array>
#include <cstdint>

namespace ax::philox {

inline constexpr int rounds = 10;
inline constexpr uint32_t multipliers[2] = {0xD2511F53, 0xCD9E8D57};
/// What the key grows by after each round.
inline constexpr uint32_t increments[2] = {0x9E3779B9, 0xBB67AE85};

inline std::array<uint32_t, 4> generate(std::array<uint32_t, 4> counter,
                                        std::array<uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    uint64_t a = uint64_t(multipliers[0]) * counter[0];
    uint64_t b = uint64_t(multipliers[1]) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key[0] += increments[0];
    key[1] += increments[1];
  }
  return counter;
}

/// What `axl.random` gives.
inline float uniform(uint64_t index, uint64_t seed, uint64_t step,
                     uint64_t id) {
  uint32_t bits = generate(
      {uint32_t(index), uint32_t(index >> 32), uint32_t(id), uint32_t(step)},
      {uint32_t(seed), uint32_t(seed >> 32)})[0];
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

} // namespace ax::philox

#endif // AX_SUPPORT_PHILOX_H
