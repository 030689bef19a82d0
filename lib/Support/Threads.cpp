//===- Threads.cpp - Threads that may not start ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Threads.h"

#include <future>
#include <vector>

namespace ax {

llvm::Error noThread(const llvm::Twine &what, const std::error_code &code) {
  return makeError(ExitCode::RunFailed, "no thread for " + what + ": " +
                                            code.message() + ": " +
                                            threadLimits);
}

llvm::Error tryThreads(const llvm::Twine &what, int count) {
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future().share();
  std::vector<std::thread> threads;
  llvm::Error error = llvm::Error::success();
  // All are there at the same time.
  while (!error && static_cast<int>(threads.size()) < count) {
    auto thread = startThread(what, [ended] { ended.wait(); });
    if (thread)
      threads.push_back(std::move(*thread));
    else
      error = thread.takeError();
  }
  end.set_value();
  for (std::thread &thread : threads)
    thread.join();
  return error;
}

} // namespace ax
