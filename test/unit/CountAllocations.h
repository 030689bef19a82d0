//===- CountAllocations.h - What a program allocates ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For one file of a program of tests: replaces its operators new and delete.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_UNIT_COUNTALLOCATIONS_H
#define AX_TEST_UNIT_COUNTALLOCATIONS_H

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

// Sanitizers bring their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define AX_COUNTS_ALLOCATIONS

static std::atomic<int64_t> numAllocations{0};

// NOLINTBEGIN(misc-definitions-in-headers): of one file of a program.
[[gnu::noinline]] void *operator new(size_t size) {
  ++numAllocations;
  if (void *result = std::malloc(size ? size : 1))
    return result;
  std::abort();
}
[[gnu::noinline]] void operator delete(void *address) noexcept {
  std::free(address);
}
[[gnu::noinline]] void operator delete(void *address, size_t) noexcept {
  std::free(address);
}
// NOLINTEND(misc-definitions-in-headers)

#endif

#endif // AX_TEST_UNIT_COUNTALLOCATIONS_H
