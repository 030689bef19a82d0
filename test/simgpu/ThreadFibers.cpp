//===- ThreadFibers.cpp - Threads of a block, one at a time ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadFibers.h"

#include "ax/Support/Error.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>

using namespace ax;

static constexpr size_t stackBytes = 1 << 16;

/// Stacks that fibers of this thread have left, whose pages are there.
static std::vector<std::unique_ptr<char[]>> &spareStacks() {
  static thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

/// Returns memory for a stack. What is in it does not matter, and most of it is
/// never touched.
static std::unique_ptr<char[]> takeStack(size_t bytes) {
  if (spareStacks().empty())
    return std::unique_ptr<char[]>(new char[bytes]);
  std::unique_ptr<char[]> stack = std::move(spareStacks().back());
  spareStacks().pop_back();
  return stack;
}

struct ThreadFibers::Fiber {
  std::unique_ptr<char[]> memory;
  FiberStack stack;
  /// Barriers that it came to.
  int64_t numMet = 0;

  /// Stacks begin at different places of a page, so that a cache holds the
  /// upper ends of many.
  explicit Fiber(int32_t number) {
    constexpr size_t step = 128, room = warpThreads * step;
    memory = takeStack(stackBytes + room);
    auto begin = reinterpret_cast<uintptr_t>(memory.get());
    size_t shift = llvm::alignTo(begin, step) - begin;
    stack.setStack(memory.get() + shift + number % (warpThreads - 1) * step,
                   stackBytes);
  }
  ~Fiber() { spareStacks().push_back(std::move(memory)); }
};

/// Whose `enter` a new fiber is to run.
static thread_local ThreadFibers *entering;

ThreadFibers::ThreadFibers(int32_t numThreads, std::optional<uint64_t> seed,
                           int64_t dropped)
    : warps((numThreads + warpThreads - 1) / warpThreads),
      random(seed.value_or(0)), isRandom(seed.has_value()), dropped(dropped) {
  assert(warps.size() <= warpThreads && "a word has a bit for each warp");
  for (int32_t i = 0; i != numThreads; ++i)
    fibers.push_back(std::make_unique<Fiber>(i));
}

ThreadFibers::~ThreadFibers() = default;

llvm::Error ThreadFibers::run(llvm::function_ref<void()> threadBody) {
  body = threadBody;
  numAtBlock = numDone = 0;
  readyWarps = 0;
  if (isRandom)
    turnsOfWarp = uint64_t(1) << chooseNumber() % 13;
  for (Warp &each : warps)
    each.ready = each.atBarrier = each.atExchange = 0;
  for (std::unique_ptr<Fiber> &fiber : fibers) {
    fiber->numMet = 0;
    fiber->stack.prepare([] { entering->enter(); });
  }
  makeAllReady();
  entering = this;
  goOn(caller, /*isLast=*/false);
  running = -1;
  auto numThreads = static_cast<int32_t>(fibers.size());
  if (numDone == numThreads)
    return llvm::Error::success();
  return makeErrorf(
      ExitCode::Internal,
      "{0} of {1} threads of a block wait for others that never come",
      numThreads - numDone, numThreads);
}

/// The last bit that is set.
static int32_t lastOf(uint32_t mask) {
  return 31 - static_cast<int32_t>(llvm::countl_zero(mask));
}

/// The first bit that is set from a place on, or else from 0.
static int32_t firstFrom(uint32_t mask, uint64_t place) {
  auto shift = static_cast<int>(place % 32);
  return (llvm::countr_zero(llvm::rotr(mask, shift)) + shift) % 32;
}

int32_t ThreadFibers::chooseWarp() {
  bool isReady = readyWarps >> warp & 1;
  if (!isRandom)
    return isReady ? warp : lastOf(readyWarps);
  return isReady && chooseNumber() & (turnsOfWarp - 1)
             ? warp
             : firstFrom(readyWarps, chooseNumber());
}

int32_t ThreadFibers::chooseNext() {
  warp = chooseWarp();
  uint32_t &ready = warps[warp].ready;
  int32_t lane = isRandom ? firstFrom(ready, chooseNumber()) : lastOf(ready);
  ready &= ~(uint32_t(1) << lane);
  if (ready == 0)
    readyWarps &= ~(uint32_t(1) << warp);
  return warp * warpThreads + lane;
}

void ThreadFibers::makeReady(int32_t number, uint32_t lanes) {
  warps[number].ready |= lanes;
  readyWarps |= uint32_t(1) << number;
}

void ThreadFibers::makeAllReady() {
  for (size_t first = 0; first < fibers.size(); first += warpThreads)
    makeReady(static_cast<int32_t>(first / warpThreads),
              llvm::maskTrailingOnes<uint32_t>(static_cast<unsigned>(
                  std::min<size_t>(warpThreads, fibers.size() - first))));
}

void ThreadFibers::goOn(FiberStack &from, bool isLast) {
  if (readyWarps == 0) {
    from.switchTo(caller, isLast);
    return;
  }
  running = chooseNext();
  if (FiberStack &to = fibers[running]->stack; &to != &from)
    from.switchTo(to, isLast);
}

void ThreadFibers::enter() {
  FiberStack &own = fibers[running]->stack;
  own.arrive();
  body();
  ++numDone;
  goOn(own, /*isLast=*/true);
}

bool ThreadFibers::isDropped() { return fibers[running]->numMet++ == dropped; }

void ThreadFibers::meetBlock() {
  if (isDropped())
    return;
  FiberStack &own = fibers[running]->stack;
  if (++numAtBlock == static_cast<int32_t>(fibers.size())) {
    numAtBlock = 0;
    makeAllReady();
  }
  goOn(own, /*isLast=*/false);
}

void ThreadFibers::meetWarp(uint32_t mask) {
  if (isDropped())
    return;
  meet(&Warp::atBarrier, mask);
}

uint32_t ThreadFibers::exchange(uint32_t mask, uint32_t value, int32_t source) {
  int32_t lane = running % warpThreads;
  Warp &own = warps[running / warpThreads];
  own.values[lane] = value;
  own.sources[lane] = source;
  meet(&Warp::atExchange, mask);
  return own.values[lane];
}

void ThreadFibers::meet(uint32_t Warp::*place, uint32_t mask) {
  int32_t number = running / warpThreads, lane = running % warpThreads;
  Warp &own = warps[number];
  FiberStack &stack = fibers[running]->stack;
  own.masks[lane] = mask;
  uint32_t &waiting = own.*place;
  waiting |= uint32_t(1) << lane;
  if ((waiting & mask) == mask && own.isAgreed(mask)) {
    waiting &= ~mask;
    if (place == &Warp::atExchange)
      own.exchange(mask);
    makeReady(number, mask);
  }
  goOn(stack, /*isLast=*/false);
}

/// Whether all lanes of a mask wait for just these.
bool ThreadFibers::Warp::isAgreed(uint32_t mask) const {
  for (int32_t lane = 0; lane != warpThreads; ++lane)
    if (mask >> lane & 1 && masks[lane] != mask)
      return false;
  return true;
}

/// Gives each lane of a mask what its source has.
void ThreadFibers::Warp::exchange(uint32_t mask) {
  std::array<uint32_t, warpThreads> given = {};
  for (int32_t lane = 0; lane != warpThreads; ++lane)
    if (mask >> lane & 1)
      given[lane] = values[lane];
  for (int32_t lane = 0; lane != warpThreads; ++lane)
    if (mask >> lane & 1)
      values[lane] = given[sources[lane]];
}
