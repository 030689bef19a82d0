//===- WaitWord.h - A counter that others can wait for ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waiting spins for a moment and then sleeps in the kernel (futex), so that
// ranks that share a core let the one that has work to do run.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_WAITWORD_H
#define AX_RUNTIME_WAITWORD_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ax::rt {

/// How all waits of some ranks behave.
struct WaitPolicy {
  std::chrono::milliseconds timeout{0};
  /// Rounds of spinning before sleeping; few when cores are scarce.
  int32_t spins = 0;
  /// It becomes true, once, when nobody should wait any more.
  std::atomic<bool> *aborted = nullptr;

  /// Spins enough for `numThreads` busy threads on this machine's cores.
  static int32_t spinsFor(int32_t numThreads);
};

enum class WaitResult { Reached, TimedOut, Aborted };

/// A counter written by one thread and waited for by others. Values compare
/// modulo 2^32; waiters are never 2^31 behind.
class alignas(64) WaitWord {
public:
  uint32_t get() const { return value.load(std::memory_order_acquire); }
  bool hasReached(uint32_t target) const {
    return static_cast<int32_t>(get() - target) >= 0;
  }
  /// Everything written before is visible to who sees the value.
  void set(uint32_t newValue);
  /// Makes waiters look again whether they were told to stop.
  void wake();
  WaitResult waitFor(uint32_t target, const WaitPolicy &policy);

private:
  WaitResult sleepUntil(uint32_t target, const WaitPolicy &policy);

  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace ax::rt

#endif // AX_RUNTIME_WAITWORD_H
