//===- BatchRunner.h - A program on all samples -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_BATCHRUNNER_H
#define AX_LIB_SESSION_BATCHRUNNER_H

#include "Samples.h"

#include "ax/Runtime/Executor.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax {

/// Runs a program that changes nothing, batch by batch in their order: one for
/// each stage is on its way, and two more. When one ends, the next begins at
/// once, and the inputs of the one behind it go up to their devices.
class BatchRunner {
public:
  explicit BatchRunner(rt::Executor &executor) : executor(executor) {}

  /// Takes the outputs of the batch that begins with sample `first`, of which
  /// `count` count.
  using Keep = llvm::function_ref<void(const rt::Request &request,
                                       int64_t first, int64_t count)>;
  /// Goes through the first `end` samples; behind the last one come copies of
  /// its batch's first ones. False as soon as `goesOn`, asked before each
  /// batch, says so. An error is that of the first batch which has one; nothing
  /// is in flight then, unless the executor has failed. Where there are several
  /// processes, what one of them finds is so for all.
  llvm::Expected<bool> run(const Samples &samples, int64_t end, Keep keep,
                           llvm::function_ref<bool()> goesOn);

private:
  llvm::Error read(rt::Request &request, const Samples &samples, int64_t first,
                   int64_t count);

  rt::Executor &executor;
  std::vector<std::unique_ptr<rt::Request>> requests;
};

} // namespace ax

#endif // AX_LIB_SESSION_BATCHRUNNER_H
