//===- Arena.h - Places for values by when they live ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_ARENA_H
#define AX_COST_ARENA_H

#include <cstdint>
#include <vector>

namespace ax::cost {

/// A piece of memory in use from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
  /// planArena sets it, to a multiple of 64.
  int64_t offset = 0;
};

/// Gives every piece an offset such that pieces in use at the same time do not
/// overlap, and returns the bytes that all need together. Large pieces are
/// placed first, each into the lowest gap that holds it.
int64_t planArena(std::vector<Lifetime> &pieces);

} // namespace ax::cost

#endif // AX_COST_ARENA_H
