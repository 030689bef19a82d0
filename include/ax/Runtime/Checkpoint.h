//===- Checkpoint.h - The states of a run, in a folder ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FOLDER/step-N holds a .safetensors file for each rank that is the first to
// have a part of some state, written by its process, and manifest.json: what
// the parts are of which tensor, and checksums of everything. So any layout can
// be loaded from any other. FOLDER/latest names the one that was written last.
// A checkpoint is written beside its place, synced and renamed: it is there as
// a whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CHECKPOINT_H
#define AX_RUNTIME_CHECKPOINT_H

#include "ax/Runtime/Safetensors.h"
#include "ax/Support/PiecedTensor.h"

#include "llvm/Support/JSON.h"

#include <functional>
#include <map>
#include <set>

namespace ax::rt {

/// What a checkpoint says of itself and its tensors.
struct CheckpointFacts {
  std::string path;
  int64_t step = 0;
  llvm::json::Object progress;
  /// Those of them that came from a file at first: weights, not moments.
  std::vector<std::string> weights;
  /// Those that the run was given in place of the model's, and never changes.
  std::set<std::string> given;
  /// What the run never changes either, by name, as states or as constants of
  /// the plan: fingerprintOf each. They are the model's, and not in the
  /// checkpoint.
  std::map<std::string, std::string> frozen;
};

struct Checkpoint : CheckpointFacts {
  NamedPieces tensors;
  /// Paths of those that were passed over for it.
  std::vector<std::string> damaged;
};

/// How one process of several reads a checkpoint.
struct CheckpointReading {
  /// Told of checkpoints that are passed over; may be empty.
  std::function<void(const std::string &)> warn = nullptr;
  /// Whether this process reads some of these elements of a state that the run
  /// changes; only then its bytes are looked at. Empty: it reads all.
  std::function<bool(llvm::StringRef state, const ElementBox &elements)> needs =
      nullptr;
  /// `needs` is asked of what the run was given and never changes, too: else
  /// all of that is read.
  bool needsGiven = false;
  /// Gets what this process has found of a checkpoint, and gives what all have:
  /// one that is damaged for one is damaged for all. Empty: there are no
  /// others.
  std::function<llvm::Error(llvm::Error)> agree = nullptr;
  /// Gets the checkpoints that this process finds, by preference, and gives
  /// those that all try. Empty: there are no others.
  std::function<llvm::Expected<std::vector<std::string>>(
      std::vector<std::string>)>
      choose = nullptr;
};

/// What a .safetensors file of a run says of `frozen`, if there is some.
SafetensorsMetadata
describeFrozen(const std::map<std::string, std::string> &frozen);

/// A checkpoint, or the newest one in a folder. One that is damaged is a
/// BadInput error that names it and the file; in a folder the one before is
/// taken, and `warn` is told. Tensors stay in the files, which are mapped.
llvm::Expected<Checkpoint> readCheckpoint(const std::string &path,
                                          const CheckpointReading &reading);

/// A checkpoint, or nothing but the tensors of a .safetensors or .npz file, or
/// of what save_pretrained writes: a folder with model.safetensors, or with
/// several files and an index.
/// What is no checkpoint has no other facts, and needs no agreement.
llvm::Expected<Checkpoint> readWeights(const std::string &path,
                                       const CheckpointReading &reading);

/// Whether it is a checkpoint, or a folder with some.
bool isCheckpoint(const std::string &path);

/// The files that readWeights or readCheckpoint may read of `path`; none of an
/// empty one.
std::vector<std::string> filesOfWeights(const std::string &path);
/// Those of them that tell whether all are equal, in the same order everywhere:
/// of checkpoints the manifests, which have checksums of the others.
std::vector<std::string> filesToCompare(const std::string &path);

namespace checkpoint {
/// Shared by writing and reading.
inline constexpr llvm::StringLiteral manifestName = "manifest.json";
inline constexpr llvm::StringLiteral latestName = "latest";
inline constexpr llvm::StringLiteral stepPrefix = "step-";
/// What the name of a folder begins with that is being written, or was when a
/// run died.
inline constexpr llvm::StringLiteral unfinishedPrefix = ".unfinished-";
/// The name of an empty file that stays: who writes to the folder has it
/// locked.
inline constexpr llvm::StringLiteral lockName = ".lock";
inline constexpr llvm::StringLiteral format = "axopt checkpoint";
inline constexpr int64_t version = 3;
/// Of a manifest that says of a state how it is dealt: who knows only the other
/// would read it in another order.
inline constexpr int64_t dealtVersion = 4;
/// What a manifest calls a state: it trains, an optimizer keeps it, or it is
/// one of Checkpoint::given.
inline constexpr llvm::StringLiteral weightRole = "weight";
inline constexpr llvm::StringLiteral optimizerRole = "optimizer";
inline constexpr llvm::StringLiteral frozenRole = "frozen";
/// No manifest is larger, in bytes: some 150 are of each part.
inline constexpr int64_t mostManifestBytes = int64_t(1) << 30;
/// Numbers up to here are the same in every reader of JSON.
inline constexpr int64_t mostSteps = int64_t(1) << 53;
std::string checksumOf(const llvm::json::Value &value);
/// (step, path) of every checkpoint of a folder, oldest first.
std::vector<std::pair<int64_t, std::string>> list(const std::string &folder);
/// (step, path) of those that a run goes on from, by preference: the one that
/// was written last, and those of steps before it.
std::vector<std::pair<int64_t, std::string>>
newestFirst(const std::string &folder);
} // namespace checkpoint

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKPOINT_H
