//===- Threads.cpp - The threads of one rank ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Threads.h"

#include <algorithm>

extern "C" {
void GOMP_parallel(void (*fn)(void *), void *data, unsigned numThreads,
                   unsigned flags);
int omp_get_thread_num();
int omp_get_num_threads();
int omp_get_max_threads();
void omp_set_num_threads(int count);
}

// ThreadSanitizer does not see how libgomp's threads meet.
#ifdef __SANITIZE_THREAD__
extern "C" {
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}
#else
static void __tsan_acquire(void *) {}
static void __tsan_release(void *) {}
#endif

namespace ax::rt {

void setNumThreads(int32_t count) { omp_set_num_threads(count); }

int32_t getNumThreads() { return omp_get_max_threads(); }

namespace {

struct Ranges {
  int64_t count;
  detail::RangeFn fn;
  void *context;
  /// These two are there for their addresses alone.
  char begun = 0, ended = 0;
};

void runRange(void *data) {
  Ranges &ranges = *static_cast<Ranges *>(data);
  __tsan_acquire(&ranges.begun);
  int64_t index = omp_get_thread_num(), parts = omp_get_num_threads();
  int64_t begin = ranges.count * index / parts;
  int64_t end = ranges.count * (index + 1) / parts;
  if (begin < end)
    ranges.fn(ranges.context, begin, end);
  __tsan_release(&ranges.ended);
}

} // namespace

void detail::parallelRanges(int64_t count, int64_t grain, RangeFn fn,
                            void *context) {
  int64_t most = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  int64_t threads = std::min<int64_t>(getNumThreads(), most);
  if (threads <= 1) {
    if (count > 0)
      fn(context, 0, count);
    return;
  }
  Ranges ranges{count, fn, context};
  __tsan_release(&ranges.begun);
  GOMP_parallel(runRange, &ranges, static_cast<unsigned>(threads), 0);
  __tsan_acquire(&ranges.ended);
}

} // namespace ax::rt
