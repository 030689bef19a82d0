//===- Arena.cpp - Places for values by when they live --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Arena.h"

#include <algorithm>
#include <numeric>

namespace ax::cost {

static int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t planArena(std::vector<Lifetime> &pieces) {
  std::vector<size_t> bySize(pieces.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  std::stable_sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return pieces[a].bytes > pieces[b].bytes;
  });
  int64_t total = 0;
  // Those placed already, by offset.
  std::vector<size_t> placed;
  for (size_t number : bySize) {
    Lifetime &piece = pieces[number];
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
