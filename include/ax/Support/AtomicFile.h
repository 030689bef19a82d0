//===- AtomicFile.h - Files that appear whole or not at all -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_ATOMICFILE_H
#define AX_SUPPORT_ATOMICFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <system_error>

namespace ax {

/// Writes beside the destination; `commit` syncs and renames over it. Without
/// commit the destination stays as it was and nothing is left behind. A
/// symbolic link stays one: what it names is replaced. What is no regular file
/// (a device, a pipe, /dev/stdout) is written to directly.
class AtomicFile {
public:
  /// A new file may be read and written by all whom the process's mask lets,
  /// an old one by whom it was; with `mode` by those in either case.
  static llvm::Expected<AtomicFile>
  create(const std::string &path, std::optional<mode_t> mode = std::nullopt);
  /// Fails where `create` would. Of what is no regular file only the right to
  /// write is looked at: who reads a pipe would see its end.
  static llvm::Error check(const std::string &path);
  AtomicFile(AtomicFile &&other);
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  llvm::Error write(llvm::ArrayRef<uint8_t> bytes);
  llvm::Error write(llvm::StringRef text);
  /// Bytes written so far.
  int64_t getPosition() const { return position; }
  /// Says that all is written, and puts it on disk; only `commit` may follow.
  /// Files that wait for others to be there hold nothing open until then.
  llvm::Error finish();
  llvm::Error commit();

private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path(std::move(path)), temporary(std::move(temporary)), fd(fd) {}

  std::string path;
  std::string temporary;
  int fd = -1;
  int64_t position = 0;
  bool isCommitted = false;
};

/// The file that takes the place of `path`: what it names behind symbolic
/// links. `path` itself where nothing can be written there.
std::string behindLinks(const std::string &path);

/// The whole file in one go.
llvm::Error writeFileAtomically(const std::string &path,
                                llvm::ArrayRef<uint8_t> bytes,
                                std::optional<mode_t> mode = std::nullopt);
llvm::Error writeFileAtomically(const std::string &path, llvm::StringRef text,
                                std::optional<mode_t> mode = std::nullopt);

/// The folder, and those that it is in, for results: may be read and written by
/// all whom the process's mask lets.
std::error_code makeFolder(const std::string &path);

/// Gives `make` names that begin with `prefix` until one is new: until it
/// gives 0 or more, or fails with another errno than EEXIST. What it gave last;
/// `name` is what it was given. Unlike mkstemp's, what is made has the
/// permissions that it is made with: no mask is asked for, which would be that
/// of all threads.
int makeWithNewName(const std::string &prefix, std::string &name,
                    llvm::function_ref<int(const char *)> make);

} // namespace ax

#endif // AX_SUPPORT_ATOMICFILE_H
