//===- AtomicFile.cpp - Files that appear whole or not at all -------------===//

#include "ax/Support/AtomicFile.h"

#include "ax/Support/Error.h"

#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ax {

llvm::Expected<AtomicFile> AtomicFile::create(const std::string &path) {
  std::string temporary = path + ".XXXXXX";
  int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0)
    return makeErrnoError("cannot write '" + path + "'", errno);
  // mkostemp makes the file private; give it what a plain open would have.
  mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  return AtomicFile(path, std::move(temporary), fd);
}

AtomicFile::AtomicFile(AtomicFile &&other)
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      fd(other.fd), position(other.position) {
  other.fd = -1;
}

AtomicFile::~AtomicFile() {
  if (fd < 0)
    return;
  ::close(fd);
  ::unlink(temporary.c_str());
}

llvm::Error AtomicFile::write(llvm::ArrayRef<uint8_t> bytes) {
  assert(fd >= 0 && "already committed");
  const uint8_t *from = bytes.data();
  size_t left = bytes.size();
  while (left) {
    ssize_t written = ::write(fd, from, left);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return makeErrnoError("cannot write '" + path + "'", errno);
    from += written;
    left -= static_cast<size_t>(written);
  }
  position += static_cast<int64_t>(bytes.size());
  return llvm::Error::success();
}

llvm::Error AtomicFile::write(llvm::StringRef text) {
  return write(llvm::ArrayRef<uint8_t>(text.bytes_begin(), text.bytes_end()));
}

llvm::Error AtomicFile::commit() {
  assert(fd >= 0 && "already committed");
  // Renamed only when all of it is on disk; the destructor cleans up after a
  // failure.
  if (fsync(fd) != 0 || rename(temporary.c_str(), path.c_str()) != 0)
    return makeErrnoError("cannot write '" + path + "'", errno);
  ::close(fd);
  fd = -1;
  std::string folder = llvm::sys::path::parent_path(path).str();
  int folderFd = ::open(folder.empty() ? "." : folder.c_str(),
                        O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folderFd >= 0) {
    fsync(folderFd);
    ::close(folderFd);
  }
  return llvm::Error::success();
}

llvm::Error writeFileAtomically(const std::string &path,
                                llvm::ArrayRef<uint8_t> bytes) {
  llvm::Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  if (llvm::Error error = file->write(bytes))
    return error;
  return file->commit();
}

llvm::Error writeFileAtomically(const std::string &path, llvm::StringRef text) {
  return writeFileAtomically(
      path, llvm::ArrayRef<uint8_t>(text.bytes_begin(), text.bytes_end()));
}

} // namespace ax
