//===- OwnFile.cpp - Files that nobody else has written -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/OwnFile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ax {

std::unique_ptr<llvm::MemoryBuffer> readOwnFile(const std::string &path) {
  // Non-blocking, or opening a pipe would wait for its writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0)
    return nullptr;
  struct stat info;
  bool isOwn = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
               (info.st_uid == ::geteuid() || info.st_uid == 0) &&
               !(info.st_mode & (S_IWGRP | S_IWOTH));
  std::unique_ptr<llvm::MemoryBuffer> result;
  if (isOwn)
    if (auto read = llvm::MemoryBuffer::getOpenFile(
            fd, path, info.st_size, /*RequiresNullTerminator=*/false,
            /*IsVolatile=*/true))
      result = std::move(*read);
  ::close(fd);
  return result;
}

} // namespace ax
