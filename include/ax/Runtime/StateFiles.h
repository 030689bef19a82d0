//===- StateFiles.h - Files that states come from ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_STATEFILES_H
#define AX_RUNTIME_STATEFILES_H

#include "ax/Runtime/Program.h"
#include "ax/Support/MappedFile.h"

#include <map>

namespace ax::rt {

/// Returns the bytes of a state's elements; -1 when there are too many.
int64_t bytesOf(const State &state);
/// The same of its elements in its file.
int64_t bytesInFile(const State &state);

/// The files of a program's states, each opened once, or open already
/// (State::openFile).
class StateFiles {
public:
  /// `folder`: what names of files are relative to, and what those files are
  /// in; empty: the current one. A name that is an absolute path is taken as it
  /// is: no plan has one.
  explicit StateFiles(const std::string &folder)
      : folder(folder.empty() ? "." : folder) {}

  struct Range {
    std::shared_ptr<MappedFile> file;
    /// bytesInFile(state) of them, as long as the file is there.
    llvm::ArrayRef<uint8_t> bytes;
  };
  /// Where a state that comes from a file lies. A BadPlan error when the file
  /// is outside of the folder, a BadInput one when it is not that of which the
  /// program was made, and those of MappedFile.
  llvm::Expected<Range> find(const State &state);

private:
  llvm::Expected<std::shared_ptr<MappedFile>> open(const State &state);

  std::string folder;
  std::map<std::string, std::shared_ptr<MappedFile>> files;
};

} // namespace ax::rt

#endif // AX_RUNTIME_STATEFILES_H
