//===- Threads.h - The threads of one rank ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libgomp's, called directly: oneDNN uses the same, and no compiler flag can
// bring in another OpenMP runtime beside it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_THREADS_H
#define AX_RUNTIME_THREADS_H

#include <cstdint>
#include <type_traits>

namespace ax::rt {

/// The number of threads that the calling thread's parallel loops use, here and
/// in libraries.
void setNumThreads(int32_t count);
int32_t getNumThreads();

namespace detail {
using RangeFn = void (*)(void *context, int64_t begin, int64_t end);
void parallelRanges(int64_t count, int64_t grain, RangeFn fn, void *context);
} // namespace detail

/// Calls fn(begin, end) for ranges that cover 0 .. count, at most one per
/// thread, each of at least `grain` iterations; returns when all are done.
template <typename Fn>
void parallelFor(int64_t count, int64_t grain, Fn &&fn) {
  using Callable = std::remove_reference_t<Fn>;
  detail::parallelRanges(
      count, grain,
      [](void *context, int64_t begin, int64_t end) {
        (*static_cast<Callable *>(context))(begin, end);
      },
      const_cast<void *>(static_cast<const void *>(&fn)));
}

} // namespace ax::rt

#endif // AX_RUNTIME_THREADS_H
