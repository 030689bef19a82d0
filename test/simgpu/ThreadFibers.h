//===- ThreadFibers.h - Threads of a block, one at a time -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_THREADFIBERS_H
#define AX_TEST_SIMGPU_THREADFIBERS_H

#include "FiberStack.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace ax {

/// Runs the threads of a block in turns, each until it waits for others.
class ThreadFibers {
public:
  /// `seed`: of an order. In some, warps mix; in others, one runs far ahead.
  /// Without one, the last of those that can run is the next. `dropped`: the
  /// number, from 0 on, of a barrier at which no thread waits; below 0, all are
  /// kept.
  ThreadFibers(int32_t numThreads, std::optional<uint64_t> seed,
               int64_t dropped);
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
  static constexpr int32_t warpThreads = 32;

  struct Fiber;
  /// Bit i of a mask is lane i.
  struct Warp {
    uint32_t ready = 0;
    /// Those that wait for others, at a barrier or to exchange values, and what
    /// each of them has said.
    uint32_t atBarrier = 0, atExchange = 0;
    std::array<uint32_t, warpThreads> masks = {}, values = {};
    std::array<int32_t, warpThreads> sources = {};

    bool isAgreed(uint32_t mask) const;
    void exchange(uint32_t mask);
  };

  uint64_t chooseNumber() { return random() >> 32; }
  void enter();
  /// Goes on with one that can run, or, where none can, behind all of them.
  void goOn(FiberStack &from, bool isLast);
  int32_t chooseNext();
  int32_t chooseWarp();
  void makeReady(int32_t warp, uint32_t lanes);
  void makeAllReady();
  bool isDropped();
  /// Waits at a place until all lanes of the mask do.
  void meet(uint32_t Warp::*place, uint32_t mask);

  std::vector<std::unique_ptr<Fiber>> fibers;
  /// Where `run` was called.
  FiberStack caller;
  std::vector<Warp> warps;
  /// Bit i: warp i has threads that can run.
  uint32_t readyWarps = 0;
  /// Its upper bits are the better ones.
  std::linear_congruential_engine<uint64_t, 6364136223846793005,
                                  1442695040888963407, 0>
      random;
  bool isRandom;
  int64_t dropped;
  int32_t running = -1, numAtBlock = 0, numDone = 0;
  /// The warp whose turn it is, and out of how many turns one goes to another:
  /// a power of two.
  int32_t warp = 0;
  uint64_t turnsOfWarp = 1;
  llvm::function_ref<void()> body;
};

} // namespace ax

#endif // AX_TEST_SIMGPU_THREADFIBERS_H
