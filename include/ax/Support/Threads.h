//===- Threads.h - Threads that may not start -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_THREADS_H
#define AX_SUPPORT_THREADS_H

#include "ax/Support/Error.h"

#include "llvm/ADT/Twine.h"

#include <system_error>
#include <thread>

namespace ax {

/// Where the limit is that a thread lacks, for people.
inline constexpr llvm::StringLiteral threadLimits =
    "allow more threads (ulimit -u, pids.max of the container) or memory "
    "(ulimit -v)";

/// A RunFailed error of a thread that the system does not start: `no thread for
/// the control channel: Resource temporarily unavailable: allow more threads
/// ...`.
llvm::Error noThread(const llvm::Twine &what, const std::error_code &code);

/// Runs `fn` in a thread of its own. `what` it is for is for the error.
template <typename Fn>
llvm::Expected<std::thread> startThread(const llvm::Twine &what, Fn fn) {
  try {
    return std::thread(std::move(fn));
  } catch (const std::system_error &error) {
    return noThread(what, error.code());
  }
}

/// An error, as that of `startThread`, where so many threads do not start: for
/// libraries that end the process then.
llvm::Error tryThreads(const llvm::Twine &what, int count);

} // namespace ax

#endif // AX_SUPPORT_THREADS_H
