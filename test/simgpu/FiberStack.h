//===- FiberStack.h - Where a thread of a block is --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_FIBERSTACK_H
#define AX_TEST_SIMGPU_FIBERSTACK_H

#include <cstddef>

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
#if !defined(__x86_64__) || defined(AX_ASAN_FIBERS) || defined(AX_TSAN_FIBERS)
#define AX_PORTABLE_FIBERS
#include <ucontext.h>
#endif

namespace ax {

/// What runs on a stack of its own, and stops only where it says so; or the one
/// that called it first, on the stack that it has. Sanitizers are told of each
/// turn.
class FiberStack {
public:
  FiberStack();
  FiberStack(const FiberStack &) = delete;
  ~FiberStack();

  /// Takes the stack that begins there.
  void setStack(char *stack, size_t bytes);
  /// Lets it begin anew, with `entry`, which never returns.
  void prepare(void (*entry)());
  /// Goes on with `to`, until somebody goes on with this one; `isLast`: nobody
  /// will.
  void switchTo(FiberStack &to, bool isLast = false);
  /// The first thing that a stack of its own does.
  void arrive();

private:
  char *stack = nullptr;
  size_t size = 0;
#ifdef AX_PORTABLE_FIBERS
  ucontext_t context;
#else
  /// What it has on its stack while others run.
  void *top = nullptr;
#endif
#ifdef AX_ASAN_FIBERS
  void *fakeStack = nullptr;
#endif
#ifdef AX_TSAN_FIBERS
  void *ofSanitizer = nullptr;
#endif
};

} // namespace ax

#endif // AX_TEST_SIMGPU_FIBERSTACK_H
