//===- Arena.h - Places for values by when they live ------------*- C++ -*-===//
#ifndef AX_LIB_CODEGEN_ARENA_H
#define AX_LIB_CODEGEN_ARENA_H

#include <cstdint>
#include <vector>

namespace ax::codegen {

/// A piece of memory in use from command `first` to command `last`, both
/// included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
  /// Set by planArena: a multiple of 64.
  int64_t offset = 0;
};

/// Gives every piece an offset such that pieces in use at the same time do not
/// overlap, and returns the bytes that all need together. Large pieces are
/// placed first, each into the lowest gap that holds it.
int64_t planArena(std::vector<Lifetime> &pieces);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_ARENA_H
