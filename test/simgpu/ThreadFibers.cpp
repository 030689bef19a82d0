//===- ThreadFibers.cpp - Threads of a block, one at a time ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ThreadFibers.h"

#include "ax/Support/Error.h"

#include <csetjmp>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define AX_ASAN_FIBERS
#elif defined(__SANITIZE_THREAD__)
#define AX_TSAN_FIBERS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AX_ASAN_FIBERS
#elif __has_feature(thread_sanitizer)
#define AX_TSAN_FIBERS
#endif
#endif
#ifdef AX_ASAN_FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef AX_TSAN_FIBERS
#include <sanitizer/tsan_interface.h>
#endif

using namespace ax;

static constexpr int32_t warpThreads = 32;
static constexpr size_t stackBytes = 1 << 16;

/// Stacks that fibers of this thread have left, whose pages are there.
static std::vector<std::unique_ptr<char[]>> &spareStacks() {
  static thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

struct ThreadFibers::Fiber {
  ucontext_t context;
  /// Where it goes on, once it has begun: unlike a context, it has no mask of
  /// signals, for which the system would be called at each turn.
  jmp_buf place;
  bool hasBegun = false;
  std::unique_ptr<char[]> stack;
  State state = State::Ready;
  uint32_t mask = 0, value = 0;
  int32_t source = 0;
  /// Barriers that it came to.
  int64_t numMet = 0;
#ifdef AX_ASAN_FIBERS
  const void *bottom = nullptr;
  size_t size = 0;
  void *fakeStack = nullptr;
#endif
#ifdef AX_TSAN_FIBERS
  void *ofSanitizer = nullptr;
#endif

  /// Lets it begin anew.
  void prepare();
  /// Goes on with `to`, until somebody goes on with this one; never, if it is
  /// done.
  void switchTo(Fiber &to) {
#ifdef AX_ASAN_FIBERS
    __sanitizer_start_switch_fiber(state == State::Done ? nullptr : &fakeStack,
                                   to.bottom, to.size);
#endif
#ifdef AX_TSAN_FIBERS
    __tsan_switch_to_fiber(to.ofSanitizer, 0);
#endif
#if defined(AX_ASAN_FIBERS) || defined(AX_TSAN_FIBERS)
    swapcontext(&context, &to.context);
#else
    if (_setjmp(place) == 0) {
      if (to.hasBegun)
        _longjmp(to.place, 1);
      to.hasBegun = true;
      setcontext(&to.context);
    }
#endif
    arrive(to);
  }
  /// `from` is the one that the others' turns come from, or go to.
  void arrive([[maybe_unused]] Fiber &from) {
#ifdef AX_ASAN_FIBERS
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fakeStack, &bottom, &size);
    if (!from.bottom) {
      from.bottom = bottom;
      from.size = size;
    }
#endif
  }
};

/// Whose `enter` a new fiber is to run.
static thread_local ThreadFibers *entering;

void ThreadFibers::Fiber::prepare() {
  numMet = 0;
  hasBegun = false;
#ifdef AX_ASAN_FIBERS
  // Nobody returned from what was on it.
  fakeStack = nullptr;
  __asan_unpoison_memory_region(stack.get(), stackBytes);
#endif
  getcontext(&context);
  context.uc_stack.ss_sp = stack.get();
  context.uc_stack.ss_size = stackBytes;
  context.uc_link = nullptr;
  makecontext(&context, [] { entering->enter(); }, 0);
}

ThreadFibers::ThreadFibers(int32_t numThreads, uint64_t seed, int64_t dropped)
    : scheduler(std::make_unique<Fiber>()), random(seed), dropped(dropped) {
  scheduler->hasBegun = true;
#ifdef AX_TSAN_FIBERS
  scheduler->ofSanitizer = __tsan_get_current_fiber();
#endif
  for (int32_t i = 0; i != numThreads; ++i) {
    fibers.push_back(std::make_unique<Fiber>());
    Fiber &fiber = *fibers.back();
    // What is in it does not matter, and most of it is never touched.
    if (spareStacks().empty()) {
      fiber.stack.reset(new char[stackBytes]);
    } else {
      fiber.stack = std::move(spareStacks().back());
      spareStacks().pop_back();
    }
#ifdef AX_ASAN_FIBERS
    fiber.bottom = fiber.stack.get();
    fiber.size = stackBytes;
#endif
#ifdef AX_TSAN_FIBERS
    fiber.ofSanitizer = __tsan_create_fiber(0);
#endif
  }
}

ThreadFibers::~ThreadFibers() {
  for (auto &fiber : fibers) {
#ifdef AX_TSAN_FIBERS
    __tsan_destroy_fiber(fiber->ofSanitizer);
#endif
    spareStacks().push_back(std::move(fiber->stack));
  }
}

llvm::Error ThreadFibers::run(llvm::function_ref<void()> threadBody) {
  body = threadBody;
  ready.assign((fibers.size() + warpThreads - 1) / warpThreads, {});
  numAtBlock = numReady = 0;
  turnsOfWarp = size_t(1) << random() % 13;
  for (size_t i = 0; i != fibers.size(); ++i) {
    fibers[i]->prepare();
    setReady(static_cast<int32_t>(i));
  }
  size_t numDone = 0;
  while (numReady > 0) {
    int32_t next = chooseNext();
    resume(next);
    switch (fibers[next]->state) {
    case State::Done:
      ++numDone;
      break;
    case State::AtBlock:
      releaseBlock();
      break;
    default:
      releaseWarp(next);
    }
  }
  if (numDone == fibers.size())
    return llvm::Error::success();
  return makeErrorf(
      ExitCode::Internal,
      "{0} of {1} threads of a block wait for others that never come",
      fibers.size() - numDone, fibers.size());
}

int32_t ThreadFibers::chooseNext() {
  if (ready[warp].empty() || random() % turnsOfWarp == 0) {
    std::vector<size_t> others;
    for (size_t w = 0; w != ready.size(); ++w)
      if (!ready[w].empty())
        others.push_back(w);
    warp = others[random() % others.size()];
  }
  std::vector<int32_t> &threads = ready[warp];
  std::swap(threads[random() % threads.size()], threads.back());
  --numReady;
  int32_t next = threads.back();
  threads.pop_back();
  return next;
}

void ThreadFibers::setReady(int32_t number) {
  fibers[number]->state = State::Ready;
  ready[number / warpThreads].push_back(number);
  ++numReady;
}

void ThreadFibers::enter() {
  Fiber &fiber = *fibers[running];
  fiber.arrive(*scheduler);
  body();
  fiber.state = State::Done;
  fiber.switchTo(*scheduler);
}

void ThreadFibers::resume(int32_t number) {
  running = number;
  entering = this;
  scheduler->switchTo(*fibers[number]);
  running = -1;
}

void ThreadFibers::wait(State state) {
  Fiber &fiber = *fibers[running];
  fiber.state = state;
  fiber.switchTo(*scheduler);
}

bool ThreadFibers::isDropped() { return fibers[running]->numMet++ == dropped; }

void ThreadFibers::meetBlock() {
  if (!isDropped())
    wait(State::AtBlock);
}

void ThreadFibers::meetWarp(uint32_t mask) {
  fibers[running]->mask = mask;
  if (!isDropped())
    wait(State::AtWarp);
}

uint32_t ThreadFibers::exchange(uint32_t mask, uint32_t value, int32_t source) {
  Fiber &fiber = *fibers[running];
  fiber.mask = mask;
  fiber.value = value;
  fiber.source = source;
  wait(State::AtExchange);
  return fiber.value;
}

void ThreadFibers::releaseBlock() {
  if (++numAtBlock != static_cast<int32_t>(fibers.size()))
    return;
  numAtBlock = 0;
  for (size_t i = 0; i != fibers.size(); ++i)
    setReady(static_cast<int32_t>(i));
}

/// If all lanes of its mask wait for the same.
void ThreadFibers::releaseWarp(int32_t number) {
  const Fiber &last = *fibers[number];
  int32_t first = number / warpThreads * warpThreads;
  uint32_t values[warpThreads] = {};
  for (int32_t lane = 0; lane != warpThreads; ++lane) {
    if (!(last.mask >> lane & 1))
      continue;
    if (first + lane >= static_cast<int32_t>(fibers.size()))
      return;
    const Fiber &fiber = *fibers[first + lane];
    if (fiber.state != last.state || fiber.mask != last.mask)
      return;
    values[lane] = fiber.value;
  }
  for (int32_t lane = 0; lane != warpThreads; ++lane) {
    if (!(last.mask >> lane & 1))
      continue;
    Fiber &fiber = *fibers[first + lane];
    if (fiber.state == State::AtExchange)
      fiber.value = values[fiber.source];
    setReady(first + lane);
  }
}
