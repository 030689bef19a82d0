//===- MappedFile.h - Read-only memory-mapped file --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_MAPPEDFILE_H
#define AX_SUPPORT_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <sys/stat.h>

namespace ax {

/// A regular file, mapped read-only; pages are read when first touched. Where
/// it has become shorter since, that is a bus error (in tools, an error of
/// theirs: Process.h), and zeros up to the end of its last page: see
/// checkMappedFiles.
class MappedFile {
public:
  /// An InputOutput error when `path` cannot be opened or is not a regular
  /// file.
  static llvm::Expected<std::shared_ptr<MappedFile>>
  open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &getPath() const { return path; }
  int64_t getSize() const { return size; }
  llvm::ArrayRef<uint8_t> bytes() const {
    return {base, static_cast<size_t>(size)};
  }

  /// `length` bytes from `offset`; a BadModel error naming the file when they
  /// are not all inside it (negative and wrapping values included).
  llvm::Expected<llvm::ArrayRef<uint8_t>> range(int64_t offset,
                                                int64_t length) const;

  /// Calls fn for `count` pieces of `length` bytes, which lie evenly all over
  /// the file, its end included; once for all of it where it has no more bytes
  /// than these. Hardly a page of it stays in this process's memory.
  void visitSamples(int64_t count, int64_t length,
                    llvm::function_ref<void(llvm::ArrayRef<uint8_t>)> fn) const;

  /// Its size and a hash of some of its bytes, from all over it: another text
  /// for another file. Reads no more than about a megabyte.
  std::string fingerprint() const;

  /// The path of the file that is mapped at `address`, null where none is. For
  /// handlers of signals.
  static const char *findPath(const void *address);

  /// Drops the pages that lie wholly inside the range from this process's
  /// memory; reading them again reads the file again.
  void release(int64_t offset, int64_t length) const;

private:
  friend llvm::Error checkMappedFiles();
  MappedFile(std::string path, const uint8_t *base, const struct stat &info);

  std::string path;
  const uint8_t *base;
  int64_t size;
  dev_t device;
  ino_t inode;
};

/// An InputOutput error that names a file that is mapped now, and has become
/// shorter since it was opened: what was computed with it may be wrong.
llvm::Error checkMappedFiles();

} // namespace ax

#endif // AX_SUPPORT_MAPPEDFILE_H
