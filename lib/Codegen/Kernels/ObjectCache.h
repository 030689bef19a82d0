//===- ObjectCache.h - Compiled kernels on disk -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_OBJECTCACHE_H
#define AX_CODEGEN_KERNELS_OBJECTCACHE_H

#include "ax/Runtime/Program.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ax::codegen {

struct CachedObject {
  int64_t outerCount = 1;
  int64_t scratchBytes = 0;
  rt::LaunchShape launch;
  llvm::SmallVector<char, 0> code;
};

/// Holds off who wants to compile the same, as long as it is there.
class KeyLock {
public:
  /// `file`: open, or -1 where nobody is held off.
  explicit KeyLock(int file) : file(file) {}
  KeyLock(KeyLock &&other) noexcept : file(std::exchange(other.file, -1)) {}
  KeyLock &operator=(KeyLock &&) = delete;
  ~KeyLock();

private:
  int file;
};

/// One file for each key. Processes may share the folder: files appear whole.
/// What is in them is run, so that only those count that belong to the user (or
/// to root), and that nobody else may write.
class ObjectCache {
public:
  static llvm::Expected<std::unique_ptr<ObjectCache>>
  create(const std::string &folder);
  /// Returns the object of a key; nothing when there is no file, or one that is
  /// damaged, of another key, or that others could have written.
  std::optional<CachedObject> find(const std::string &key) const;
  void store(const std::string &key, const CachedObject &object) const;
  /// Waits until nobody else has the key, in any process of this host; but not
  /// for who has it for half a minute, nor where the file system has no locks.
  /// Who dies has nothing any more.
  KeyLock lock(const std::string &key) const;

private:
  explicit ObjectCache(std::string folder) : folder(std::move(folder)) {}
  std::string pathOf(const std::string &key) const;
  std::string folder;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_OBJECTCACHE_H
