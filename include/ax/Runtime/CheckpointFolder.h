//===- CheckpointFolder.h - Where a run saves its states --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A checkpoint (Checkpoint.h) is written beside its place, synced and renamed:
// it is there as a whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CHECKPOINTFOLDER_H
#define AX_RUNTIME_CHECKPOINTFOLDER_H

#include "ax/Runtime/Executor.h"

#include "llvm/Support/JSON.h"

#include <functional>
#include <map>
#include <utility>

namespace ax::rt {

struct CheckpointOptions {
  /// Steps done: the checkpoint's name.
  int64_t step = 0;
  /// What else is to be found again.
  llvm::json::Object progress;
  /// Newest checkpoints that stay in the folder; 0: all.
  int64_t keep = 2;
};

/// A folder of checkpoints that one run writes to: locked as long as this is
/// there, for other processes and for this one, where the file system has
/// locks.
class CheckpointFolder {
public:
  /// Makes the folder if there is none. InputOutput errors when another run
  /// has it, and when something in it has the name of a checkpoint and is none:
  /// what this one will replace and remove is checkpoints. `warn` is told of a
  /// file system without locks; what looks unfinished there stays, as another
  /// run may be writing it.
  static llvm::Expected<CheckpointFolder>
  open(const std::string &path,
       const std::function<void(const std::string &)> &warn = nullptr);
  CheckpointFolder(CheckpointFolder &&other)
      : path(std::move(other.path)), warn(std::move(other.warn)),
        frozen(std::move(other.frozen)), lock(std::exchange(other.lock, -1)),
        isLocked(other.isLocked) {}
  CheckpointFolder &operator=(CheckpointFolder &&) = delete;
  ~CheckpointFolder();

  /// Writes a checkpoint and gives its path. Nothing may be in flight. Errors
  /// are InputOutput errors, after which the folder is as it was.
  llvm::Expected<std::string> write(const Executor &executor,
                                    const CheckpointOptions &options);

private:
  CheckpointFolder(std::string path,
                   std::function<void(const std::string &)> warn)
      : path(std::move(path)), warn(std::move(warn)) {}
  llvm::Error acquire();
  llvm::Error takeLock();

  std::string path;
  std::function<void(const std::string &)> warn;
  /// Checkpoint::frozen, which is the same each time.
  std::map<std::string, std::string> frozen;
  /// The open file that is locked, where that is possible.
  int lock = -1;
  bool isLocked = false;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKPOINTFOLDER_H
