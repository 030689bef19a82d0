//===- ExitCode.h - What our tools return to the shell ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one table of exit codes of axopt, axrun, axlaunch and axopt-opt. An error
// carries its code from where it is found to main(); see Error.h.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_EXITCODE_H
#define AX_SUPPORT_EXITCODE_H

namespace ax {

enum class ExitCode : int {
  /// Done, and equal to what was expected where something was.
  Success = 0,
  /// The run is fine, but its outputs differ from the expected ones.
  Differs = 1,
  /// Flags that do not parse, contradict each other, or name an impossible
  /// mesh; a `--strict` request that cannot be met.
  Usage = 2,
  /// The ONNX model (or its external data) is malformed.
  BadModel = 3,
  /// The model is well formed but uses something we do not do.
  Unsupported = 4,
  /// The plan does not parse or does not verify.
  BadPlan = 5,
  /// Inputs, expected outputs or weights given to a run are missing, misshaped
  /// or malformed.
  BadInput = 6,
  /// A file cannot be opened, read, mapped or written.
  InputOutput = 7,
  /// A rank failed, hung or ran out of memory while running.
  RunFailed = 8,
  /// The loss or the gradient of a step of training is no finite number: the
  /// same run would come to it again.
  NotFinite = 9,
  /// A fault of ours: something that should be impossible.
  Internal = 70,
  /// Training was asked to end, by SIGINT or SIGUSR1, and is saved.
  Interrupted = 130,
  /// Likewise, by SIGTERM.
  Terminated = 143,
};

/// `bad plan`; used in messages and in documentation.
const char *toString(ExitCode code);

} // namespace ax

#endif // AX_SUPPORT_EXITCODE_H
