//===- ThreadFibers.h - Threads of a block, one at a time -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_THREADFIBERS_H
#define AX_TEST_SIMGPU_THREADFIBERS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace ax {

/// Runs the threads of a block in turns, each until it waits for others: in an
/// order that a seed gives. In some, warps mix; in others, one runs far ahead.
/// Sanitizers are told of each turn.
class ThreadFibers {
public:
  /// `dropped`: the number, from 0 on, of a barrier at which no thread waits;
  /// below 0, all are kept.
  ThreadFibers(int32_t numThreads, uint64_t seed, int64_t dropped);
  ~ThreadFibers();

  /// Does what each thread does. An error if some wait for others that never
  /// come; they are left where they are.
  llvm::Error run(llvm::function_ref<void()> body);

  //===--- For the thread that runs ---------------------------------------===//

  int32_t current() const { return running; }
  /// Waits for all threads of the block.
  void meetBlock();
  /// Waits for lanes of its warp: bit i of `mask` is lane i.
  void meetWarp(uint32_t mask);
  /// As `meetWarp`, and returns what that of them has whose lane is `source`.
  uint32_t exchange(uint32_t mask, uint32_t value, int32_t source);

private:
  enum class State { Ready, AtBlock, AtWarp, AtExchange, Done };
  struct Fiber;

  void enter();
  int32_t chooseNext();
  void setReady(int32_t number);
  void resume(int32_t number);
  void wait(State state);
  bool isDropped();
  void releaseBlock();
  void releaseWarp(int32_t number);

  std::vector<std::unique_ptr<Fiber>> fibers;
  std::unique_ptr<Fiber> scheduler;
  /// Of each warp.
  std::vector<std::vector<int32_t>> ready;
  std::mt19937_64 random;
  int64_t dropped;
  int32_t running = -1, numAtBlock = 0, numReady = 0;
  /// The warp whose turn it is, and out of how many turns one goes to another.
  size_t warp = 0, turnsOfWarp = 1;
  llvm::function_ref<void()> body;
};

} // namespace ax

#endif // AX_TEST_SIMGPU_THREADFIBERS_H
