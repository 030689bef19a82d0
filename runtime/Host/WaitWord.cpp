//===- WaitWord.cpp - A counter that others can wait for ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/WaitWord.h"

#include <climits>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ax::rt {

namespace {

/// How soon a sleeper notices an abort.
constexpr int64_t tickNanoseconds = 20'000'000;

void pauseCore() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int32_t countCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return 1;
  return CPU_COUNT(&set);
}

} // namespace

int32_t WaitPolicy::spinsFor(int32_t numThreads) {
  // A pause takes some tens of nanoseconds: about 100 microseconds, or 1 when
  // the one waited for may need this core.
  return numThreads <= countCores() ? 3000 : 30;
}

void WaitWord::set(uint32_t newValue) {
  // With sleepUntil: either it sees the value, or we see the sleeper. Each side
  // writes its own word and then reads the other's. With release and acquire
  // both could read what was there before, and the sleeper would only notice at
  // its next tick; of four seq_cst accesses there is one order, in which the
  // second write comes before a read.
  value.store(newValue, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    wake();
}

void WaitWord::wake() {
  syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

WaitResult WaitWord::waitFor(uint32_t target, const WaitPolicy &policy) {
  for (int32_t i = 0; i < policy.spins; ++i) {
    if (hasReached(target))
      return WaitResult::Reached;
    pauseCore();
  }
  return sleepUntil(target, policy);
}

WaitResult WaitWord::sleepUntil(uint32_t target, const WaitPolicy &policy) {
  using Clock = std::chrono::steady_clock;
  static_assert(sizeof(value) == 4, "the kernel compares 32 bits");
  Clock::time_point deadline = Clock::now() + policy.timeout;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  WaitResult result = WaitResult::Reached;
  while (true) {
    uint32_t seen = value.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - target) >= 0)
      break;
    if (policy.aborted->load(std::memory_order_acquire)) {
      result = WaitResult::Aborted;
      break;
    }
    if (policy.timeout.count() > 0 && Clock::now() >= deadline) {
      result = WaitResult::TimedOut;
      break;
    }
    // The kernel compares again, under its own lock, before it puts the thread
    // to sleep: a value that was set since `seen` makes this return at once.
    // Who aborts does not know which words are waited for, hence the tick.
    timespec tick{0, tickNanoseconds};
    syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, seen, &tick, nullptr, 0);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return result;
}

} // namespace ax::rt
