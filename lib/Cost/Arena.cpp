//===- Arena.cpp - Places for values by when they live --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The least memory is NP-hard to find (dynamic storage allocation, Garey and
// Johnson SR2). Largest first, each as low as it fits ("greedy by size",
// Pisarchyk and Lee, arXiv 2001.03288), comes near it, because small pieces fit
// into gaps beside large ones, but not the other way round. An example:
//
//   a: 64 bytes in steps 0-1,  b: 64 bytes in 0-2,  c: 128 bytes in 2-3
//
// In order of time, a is at 0, b at 64, and c, as b is still in the way, at
// 128: 256 bytes. Largest first, c is at 0, a, which is gone by then, at 0,
// too, and b at 128: 192 bytes, which b and c need at once in any case.
//
// The time is quadratic in the number of pieces at worst.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/Arena.h"

#include <algorithm>
#include <numeric>

namespace ax::cost {

/// Rounds up to cache lines, so that no two pieces share one.
static int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t planArena(std::vector<Lifetime> &pieces) {
  std::vector<size_t> bySize(pieces.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  // Stable, so that a plan has the same places each time it is compiled.
  std::stable_sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return pieces[a].bytes > pieces[b].bytes;
  });
  int64_t total = 0;
  // Those placed already, by offset.
  std::vector<size_t> placed;
  for (size_t number : bySize) {
    Lifetime &piece = pieces[number];
    // `offset` is behind all that is in the way so far. What is in use at other
    // times is not; and as those in the way come by offset, the first that
    // begins far enough behind `offset` leaves a gap.
    int64_t size = alignUp(piece.bytes), offset = 0;
    for (size_t other : placed) {
      const Lifetime &there = pieces[other];
      if (there.last < piece.first || piece.last < there.first)
        continue;
      if (offset + size <= there.offset)
        break;
      offset = std::max(offset, there.offset + alignUp(there.bytes));
    }
    piece.offset = offset;
    total = std::max(total, offset + size);
    auto at = std::upper_bound(placed.begin(), placed.end(), number,
                               [&](size_t a, size_t b) {
                                 return pieces[a].offset < pieces[b].offset;
                               });
    placed.insert(at, number);
  }
  return total;
}

} // namespace ax::cost
