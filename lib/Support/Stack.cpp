//===- Stack.cpp - Room for recursion -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Stack.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <optional>
#include <pthread.h>
#include <system_error>

namespace ax {

static constexpr size_t leastBytes = size_t(8) << 20;

static void *runCall(void *body) {
  (*static_cast<llvm::function_ref<void()> *>(body))();
  return nullptr;
}

/// Calls `body` on a thread with a stack of so many bytes.
static llvm::Error callOnThread(size_t bytes, llvm::function_ref<void()> body) {
  pthread_attr_t attributes;
  pthread_getattr_default_np(&attributes);
  pthread_attr_setstacksize(&attributes, bytes);
  pthread_t thread;
  int failure = pthread_create(&thread, &attributes, runCall, &body);
  pthread_attr_destroy(&attributes);
  if (failure)
    return makeErrorf(ExitCode::RunFailed,
                      "cannot start a thread with a stack of {0} MiB: {1}",
                      bytes >> 20, std::generic_category().message(failure));
  pthread_join(thread, nullptr);
  return llvm::Error::success();
}

static size_t enoughBytes() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return std::max(bytes, leastBytes);
}

llvm::Error callWithLargeStack(llvm::function_ref<llvm::Error()> body) {
  std::optional<llvm::Error> result;
  if (llvm::Error error =
          callOnThread(enoughBytes(), [&] { result.emplace(body()); }))
    return error;
  return std::move(*result);
}

int runWithLargeStacks(llvm::StringRef tool, llvm::function_ref<int()> body) {
  pthread_attr_t attributes;
  pthread_getattr_default_np(&attributes);
  pthread_attr_setstacksize(&attributes, enoughBytes());
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  int result = 0;
  if (llvm::Error error = callOnThread(enoughBytes(), [&] { result = body(); }))
    return reportError(tool, std::move(error));
  return result;
}

} // namespace ax
