//===- FaultLog.h - Indices out of range, of one rank -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FAULTLOG_H
#define AX_RUNTIME_FAULTLOG_H

#include "RankContext.h"
#include "ax/Runtime/Device.h"
#include "ax/Runtime/IndexFault.h"

namespace ax::rt {

/// Keeps the first index out of range of a request: of those that operations
/// find at once, and of those that kernels find, which are read at its end.
class FaultLog {
public:
  explicit FaultLog(const RankContext &context) : context(context) {}

  /// Makes room for the words of so many commands, in all micro-batches.
  llvm::Error create(size_t numCommands);
  /// Lets the stream bring the word of such a command, number `command` among
  /// them. It is there when the stream has done that.
  llvm::Error bring(Stream &stream, DeviceAddress word, size_t command,
                    int32_t microBatch);
  /// Looks at a word that is there. `name` says which command has it.
  void look(const FaultCommand &body, size_t command, int32_t microBatch,
            llvm::function_ref<std::string()> name);
  /// Keeps what a check has found; an error where there is no index to go on
  /// with.
  llvm::Error keep(const IndexCheckDesc &check, const IndexFault &found,
                   int32_t microBatch, llvm::function_ref<std::string()> name);
  /// Returns the first that was found since this was called.
  std::optional<FirstFault> take() {
    return std::exchange(first, std::nullopt);
  }

private:
  int64_t offsetOf(size_t command, int32_t microBatch) const;
  void keep(const IndexCheckDesc &check, const IndexFault::Entry &entry,
            int32_t microBatch, llvm::function_ref<std::string()> name);

  const RankContext &context;
  std::unique_ptr<PinnedMemory> words;
  std::optional<FirstFault> first;
};

} // namespace ax::rt

#endif // AX_RUNTIME_FAULTLOG_H
