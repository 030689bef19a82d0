//===- GuardedBytes.h - Memory with nothing around it -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_GUARDEDBYTES_H
#define AX_TEST_SIMGPU_GUARDEDBYTES_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace simgpu {

/// Addresses [begin, end).
struct Range {
  uintptr_t begin = 0, end = 0;
  bool meets(Range other) const {
    return begin < other.end && other.begin < end;
  }
};

/// Bytes between pages that nobody can touch, as close to the upper ones as
/// their alignment lets them be. What is left of their own pages has a pattern
/// that is NaN as any type.
class GuardedBytes {
public:
  /// The bytes are 0xff. None where the process has not so much memory.
  explicit GuardedBytes(size_t bytes);
  GuardedBytes(GuardedBytes &&other) noexcept
      : mapping(std::exchange(other.mapping, {})), pages(other.pages),
        range(std::exchange(other.range, {})) {}
  ~GuardedBytes();

  /// Null where there are none.
  unsigned char *data() const {
    return reinterpret_cast<unsigned char *>(range.begin);
  }
  size_t size() const { return range.end - range.begin; }
  /// Returns false where somebody wrote next to the bytes.
  bool isPatternIntact() const;
  /// Returns whether the address is next to the bytes rather than next to
  /// others.
  bool isNear(uintptr_t address) const {
    return mapping.meets({address, address + 1});
  }

private:
  /// All pages; those that can be touched; the bytes.
  Range mapping, pages, range;
};

} // namespace simgpu

#endif // AX_TEST_SIMGPU_GUARDEDBYTES_H
