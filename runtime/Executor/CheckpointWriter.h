//===- CheckpointWriter.h - The files of one checkpoint ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process writes the parts of its ranks and says what it has written;
// process 0 makes the manifest of what all say.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CHECKPOINTWRITER_H
#define AX_RUNTIME_CHECKPOINTWRITER_H

#include "ax/Runtime/CheckpointFolder.h"
#include "ax/Runtime/Executor.h"

namespace ax::rt {

/// The name of each rank's file begins so.
inline constexpr llvm::StringLiteral rankPrefix = "rank-";

std::string inFolder(llvm::StringRef folder, const llvm::Twine &name);
/// Puts on disk which files the folder has.
llvm::Error syncFolder(const std::string &path);

class CheckpointWriter {
public:
  /// `frozen`: Checkpoint::frozen, which is filled the first time.
  CheckpointWriter(const Executor &executor, const CheckpointOptions &options,
                   std::map<std::string, std::string> &frozen)
      : executor(executor), program(executor.getProgram()), options(options),
        frozen(frozen) {}

  /// Writes this process's files into the folder, and gives what is in them, as
  /// a text for process 0.
  llvm::Expected<std::string> writeFiles(const std::string &folder);
  /// Writes the manifest of what all processes have given, by their numbers.
  llvm::Error writeManifest(const std::string &folder,
                            llvm::ArrayRef<std::string> written);

private:
  struct Piece {
    int32_t state;
    HeldPart part;
  };
  bool isHere(int32_t rank) const;
  std::vector<int32_t> findSaved() const;
  llvm::Error collect();
  llvm::Error describeFrozen(int32_t index);
  llvm::Error writeFile(const std::string &folder, int32_t rank,
                        const std::vector<Piece> &pieces);

  const Executor &executor;
  const Program &program;
  const CheckpointOptions &options;
  /// Fingerprints of the model's own, which no step changes.
  std::map<std::string, std::string> &frozen;
  /// Of this process's ranks.
  std::map<int32_t, std::vector<Piece>> byRank;
  /// What is in files of this process, by the name of its state.
  llvm::json::Object parts;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKPOINTWRITER_H
