//===- CheckpointFolder.h - Where a run saves its states --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A checkpoint (Checkpoint.h) is written beside its place, synced and renamed:
// it is there as a whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CHECKPOINTFOLDER_H
#define AX_RUNTIME_CHECKPOINTFOLDER_H

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Executor.h"

#include "llvm/Support/JSON.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

namespace ax::rt {

class CheckpointWriter;

struct CheckpointOptions {
  /// Steps done: the checkpoint's name.
  int64_t step = 0;
  /// What else is to be found again.
  llvm::json::Object progress;
  /// Newest checkpoints that stay in the folder, whole ones first; 0: all.
  int64_t keep = 2;
  /// A larger manifest is an error: it could not be read.
  int64_t mostManifestBytes = checkpoint::mostManifestBytes;
};

/// A folder of checkpoints that one run writes to: locked as long as this is
/// there, for other processes and for this one, where the file system has
/// locks. Of a run of several processes each has one; process 0 has the lock,
/// and all make the same calls, which end with the same errors.
class CheckpointFolder {
public:
  /// Makes the folder if there is none. InputOutput errors when another run
  /// has it, and when something in it has the name of a checkpoint and is none:
  /// what this one will replace and remove is checkpoints. `warn` is told of a
  /// file system without locks; what looks unfinished there stays, as another
  /// run may be writing it. A Usage error, which names the host, where a
  /// process does not see the folder that process 0 does. `world`: null where
  /// there is but one process.
  static llvm::Expected<CheckpointFolder>
  open(const std::string &path,
       const std::function<void(const std::string &)> &warn = nullptr,
       std::shared_ptr<World> world = nullptr);
  CheckpointFolder(CheckpointFolder &&other)
      : path(std::move(other.path)), warn(std::move(other.warn)),
        world(std::move(other.world)), frozen(std::move(other.frozen)),
        damaged(std::move(other.damaged)), lock(std::exchange(other.lock, -1)),
        isLocked(other.isLocked) {}
  CheckpointFolder &operator=(CheckpointFolder &&) = delete;
  ~CheckpointFolder();

  /// Writes a checkpoint and gives its path. Nothing may be in flight. Errors
  /// are InputOutput errors, after which the folder is as it was: what one
  /// process cannot write is no checkpoint for any. Where an exchange with the
  /// others fails, they are RunFailed.
  llvm::Expected<std::string> write(const Executor &executor,
                                    const CheckpointOptions &options);

  /// Says which checkpoints are known to be damaged: where too many are in the
  /// folder, they go before all others. Those of other folders do not matter.
  void setDamaged(llvm::ArrayRef<std::string> checkpoints);

private:
  CheckpointFolder(std::string path,
                   std::function<void(const std::string &)> warn,
                   std::shared_ptr<World> world)
      : path(std::move(path)), warn(std::move(warn)), world(std::move(world)) {}
  llvm::Error acquire();
  llvm::Error takeLock();
  llvm::Error checkShared() const;
  /// Returns a new folder for a checkpoint.
  llvm::Expected<std::string> begin();
  /// Makes it the checkpoint of what all processes say that they have written,
  /// and returns that one's path.
  llvm::Expected<std::string> finish(CheckpointWriter &writer,
                                     const std::string &unfinished,
                                     llvm::ArrayRef<std::string> written,
                                     const CheckpointOptions &options);
  /// `spare`: the folder that is removed in the end; empty where that is not
  /// to be.
  llvm::Expected<std::string> putInPlace(const std::string &unfinished,
                                         int64_t step,
                                         std::string &spare) const;
  void removeOld(const CheckpointOptions &options) const;

  std::string path;
  std::function<void(const std::string &)> warn;
  std::shared_ptr<World> world;
  /// Checkpoint::frozen, which is the same each time.
  std::map<std::string, std::string> frozen;
  /// Steps of checkpoints here that are damaged.
  std::set<int64_t> damaged;
  /// The open file that is locked, where that is possible.
  int lock = -1;
  bool isLocked = false;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKPOINTFOLDER_H
