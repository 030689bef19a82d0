//===- GuardedBytes.cpp - Memory with nothing around it -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GuardedBytes.h"

#include <cstring>
#include <sys/mman.h>

namespace simgpu {

static constexpr size_t pageBytes = 4096;
/// Wrong indices are seldom further off.
static constexpr size_t guardBytes = size_t(1) << 20;
/// What the driver aligns memory to, at least.
static constexpr size_t alignment = 256;

static unsigned char *at(uintptr_t address) {
  return reinterpret_cast<unsigned char *>(address);
}

/// Of an address that is not of the bytes. Not what the bytes are at first, so
/// that a copy of these is seen, too.
static unsigned char patternOf(uintptr_t address) {
  return address % 2 ? 0xff : 0xd5;
}

GuardedBytes::GuardedBytes(size_t bytes) {
  size_t touched = (bytes + pageBytes - 1) / pageBytes * pageBytes;
  size_t mapped = touched + 2 * guardBytes;
  void *made = mapped < bytes ? MAP_FAILED
                              : mmap(nullptr, mapped, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED)
    return;
  mapping.begin = reinterpret_cast<uintptr_t>(made);
  mapping.end = mapping.begin + mapped;
  pages = {mapping.begin + guardBytes, mapping.end - guardBytes};
  if (mprotect(at(pages.begin), touched, PROT_READ | PROT_WRITE) != 0)
    return;
  range.begin = (pages.end - bytes) / alignment * alignment;
  range.end = range.begin + bytes;
  std::memset(at(range.begin), 0xff, bytes);
  for (uintptr_t address = pages.begin; address != range.begin; ++address)
    *at(address) = patternOf(address);
  for (uintptr_t address = range.end; address != pages.end; ++address)
    *at(address) = patternOf(address);
}

GuardedBytes::~GuardedBytes() {
  if (mapping.begin)
    munmap(at(mapping.begin), mapping.end - mapping.begin);
}

bool GuardedBytes::isPatternIntact() const {
  for (uintptr_t address = pages.begin; address != range.begin; ++address)
    if (*at(address) != patternOf(address))
      return false;
  for (uintptr_t address = range.end; address != pages.end; ++address)
    if (*at(address) != patternOf(address))
      return false;
  return true;
}

} // namespace simgpu
