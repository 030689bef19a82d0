//===- Stack.cpp - Room for recursion -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Stack.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <pthread.h>
#include <system_error>

namespace ax {

static constexpr size_t leastBytes = size_t(8) << 20;

namespace {
struct Call {
  llvm::function_ref<int()> body;
  int result = 0;
};
} // namespace

static void *runCall(void *argument) {
  auto *call = static_cast<Call *>(argument);
  call->result = call->body();
  return nullptr;
}

int runWithLargeStacks(llvm::StringRef tool, llvm::function_ref<int()> body) {
  pthread_attr_t attributes;
  size_t bytes = 0;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_setstacksize(&attributes, std::max(bytes, leastBytes));
  pthread_setattr_default_np(&attributes);
  Call call{body};
  pthread_t thread;
  int failure = pthread_create(&thread, &attributes, runCall, &call);
  pthread_attr_destroy(&attributes);
  if (failure)
    return reportError(
        tool,
        makeErrorf(ExitCode::RunFailed,
                   "cannot start a thread with a stack of {0} MiB: {1}",
                   leastBytes >> 20, std::generic_category().message(failure)));
  pthread_join(thread, nullptr);
  return call.result;
}

} // namespace ax
