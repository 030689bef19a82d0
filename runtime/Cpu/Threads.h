//===- Threads.h - The threads of one rank ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libgomp's, called directly: oneDNN uses the same, and no compiler flag can
// bring in another OpenMP runtime beside it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_THREADS_H
#define AX_RUNTIME_THREADS_H

#include <algorithm>
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

/// Calls fn(unit, part) for 0 .. count; units of one part one after another, so
/// that each of at most `parts` parts may have memory of its own.
template <typename Fn>
void parallelUnits(int64_t count, int64_t parts, Fn &&fn) {
  int64_t perPart = std::max<int64_t>(1, (count + parts - 1) / parts);
  parallelFor((count + perPart - 1) / perPart, 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t part = begin; part < end; ++part)
                  for (int64_t unit = part * perPart;
                       unit < std::min(count, (part + 1) * perPart); ++unit)
                    fn(unit, part);
              });
}

} // namespace ax::rt

#endif // AX_RUNTIME_THREADS_H
