//===- Process.h - What surrounds a tool ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_PROCESS_H
#define AX_SUPPORT_PROCESS_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// First thing in main: standard streams and files that fail are errors of
/// ours, not the end of the process by a signal.
/// - Standard streams that are closed stay so: no file of the tool gets their
///   numbers.
/// - Standard output that could not be written: one message at the end, and
///   exit code InputOutput where there would be success. Standard error that
///   could not is nobody's loss.
/// - A pipe without a reader and a file's size limit are errors of write.
/// - A mapped file that has become shorter: one message, and exit code
///   InputOutput at once.
/// `tool` names itself in messages and has to live on.
void setUpProcess(const char *tool);

} // namespace ax

#endif // AX_SUPPORT_PROCESS_H
