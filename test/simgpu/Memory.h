//===- Memory.h - Addresses of the simulated GPU ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_MEMORY_H
#define AX_TEST_SIMGPU_MEMORY_H

#include "GuardedBytes.h"

#include <map>

namespace simgpu {

/// Live allocations, and the bytes behind them. Fresh ones are NaN as any
/// type, and -1 as an index.
class Allocations {
public:
  /// Bytes of all of them.
  size_t getUsed() const { return used; }
  /// Returns where the bytes lie, which are all in one allocation; else null.
  unsigned char *find(uintptr_t address, size_t bytes) const;
  /// Returns what begins there; empty where nothing does.
  Range startingAt(uintptr_t address) const;
  /// Returns the one that the address is in, or at the end of; null: none.
  const std::pair<const uintptr_t, GuardedBytes> *
  around(uintptr_t address) const;
  /// Returns false where somebody wrote next to the bytes.
  bool free(uintptr_t address);

protected:
  /// Null where the process has not so much memory. It begins at `address`,
  /// or, of 0, where its bytes are.
  unsigned char *add(uintptr_t address, size_t bytes);
  std::map<uintptr_t, GuardedBytes> allocations;

private:
  size_t used = 0;
};

/// A card's memory: its addresses lie in a range that the host cannot touch,
/// with room between them, and come back as late as may be.
class CardMemory : public Allocations {
public:
  explicit CardMemory(size_t size);
  ~CardMemory();
  size_t getSize() const { return size; }
  /// 0 where there is not so much.
  uintptr_t allocate(size_t bytes);

private:
  /// Returns the first address from `start` on behind which nothing is for so
  /// many bytes; 0 where there is none.
  uintptr_t findGap(uintptr_t start, size_t bytes) const;

  size_t size;
  Range reserved;
  uintptr_t cursor;
};

/// Pinned memory of the host, whose addresses are those of its bytes.
class PinnedMemory : public Allocations {
public:
  explicit PinnedMemory(size_t size) : size(size) {}
  void *allocate(size_t bytes);

private:
  size_t size;
};

} // namespace simgpu

#endif // AX_TEST_SIMGPU_MEMORY_H
