//===- AtomicFile.cpp - Files that appear whole or not at all -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/AtomicFile.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <linux/magic.h>
#include <random>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

namespace ax {

namespace {

struct Destination {
  /// The path behind all symbolic links.
  std::string path;
  /// Whether it is replaced by a new file; else it is written to: a device, a
  /// pipe.
  bool isReplaced = true;
  /// The permissions of the file that is replaced, if there is one.
  std::optional<mode_t> mode;
};

llvm::Error cannotWrite(const std::string &path, int error) {
  return makeErrnoError("cannot write '" + path + "'", error);
}

std::string folderOf(const std::string &path) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  return folder.empty() ? "." : folder.str();
}

llvm::Expected<Destination> findDestination(const std::string &path) {
  constexpr int mostLinks = 40;
  Destination to;
  to.path = path;
  for (int i = 0; i < mostLinks; ++i) {
    struct stat info;
    if (lstat(to.path.c_str(), &info) != 0)
      return to;
    if (S_ISDIR(info.st_mode))
      return cannotWrite(path, EISDIR);
    if (!S_ISLNK(info.st_mode)) {
      to.isReplaced = S_ISREG(info.st_mode);
      to.mode = info.st_mode & 07777;
      return to;
    }
    // /dev/stdout and the like stand for what is open, not for a name.
    struct statfs system;
    if (statfs(folderOf(to.path).c_str(), &system) == 0 &&
        system.f_type == PROC_SUPER_MAGIC) {
      to.isReplaced = false;
      return to;
    }
    char target[PATH_MAX];
    ssize_t length = readlink(to.path.c_str(), target, sizeof(target));
    if (length < 0)
      return cannotWrite(path, errno);
    llvm::StringRef next(target, static_cast<size_t>(length));
    to.path = llvm::sys::path::is_absolute(next)
                  ? next.str()
                  : folderOf(to.path) + "/" + next.str();
  }
  return cannotWrite(path, ELOOP);
}

} // namespace

std::string behindLinks(const std::string &path) {
  llvm::Expected<Destination> to = findDestination(path);
  if (to)
    return to->path;
  llvm::consumeError(to.takeError());
  return path;
}

/// Names in a folder are on disk only then. Not every file system does it.
static int syncFolder(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  int fault = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return fault == EINVAL || fault == ENOTSUP ? 0 : fault;
}

std::error_code makeFolder(const std::string &path) {
  std::vector<std::string> parents;
  for (std::string made = path; !made.empty() && !llvm::sys::fs::exists(made);
       made = llvm::sys::path::parent_path(made).str())
    parents.push_back(folderOf(made));
  if (std::error_code code = llvm::sys::fs::create_directories(
          path, /*IgnoreExisting=*/true, llvm::sys::fs::perms::all_all))
    return code;
  for (const std::string &parent : parents)
    if (int fault = syncFolder(parent))
      return std::error_code(fault, std::generic_category());
  return {};
}

int makeWithNewName(const std::string &prefix, std::string &name,
                    llvm::function_ref<int(const char *)> make) {
  static thread_local std::random_device random;
  constexpr int mostTries = 100;
  int made = -1;
  for (int i = 0; i < mostTries; ++i) {
    name = prefix + llvm::utohexstr(random(), /*LowerCase=*/true, 8);
    made = make(name.c_str());
    if (made >= 0 || errno != EEXIST)
      break;
  }
  return made;
}

llvm::Expected<AtomicFile> AtomicFile::create(const std::string &path,
                                              std::optional<mode_t> mode) {
  llvm::Expected<Destination> to = findDestination(path);
  if (!to)
    return to.takeError();
  if (!to->isReplaced) {
    int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
      return cannotWrite(path, errno);
    return AtomicFile(path, "", fd);
  }
  std::string temporary;
  int fd = makeWithNewName(to->path + ".", temporary, [&](const char *name) {
    return ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                  mode.value_or(0666));
  });
  if (fd < 0)
    return cannotWrite(path, errno);
  if (to->mode && !mode)
    fchmod(fd, *to->mode);
  return AtomicFile(to->path, std::move(temporary), fd);
}

llvm::Error AtomicFile::check(const std::string &path) {
  llvm::Expected<Destination> to = findDestination(path);
  if (!to)
    return to.takeError();
  if (to->isReplaced)
    return create(path).takeError();
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0
             ? llvm::Error::success()
             : cannotWrite(path, errno);
}

AtomicFile::AtomicFile(AtomicFile &&other)
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      fd(other.fd), position(other.position) {
  other.fd = -1;
  other.temporary.clear();
}

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    ::close(fd);
  if (!temporary.empty())
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
      return cannotWrite(path, errno);
    from += written;
    left -= static_cast<size_t>(written);
  }
  position += static_cast<int64_t>(bytes.size());
  return llvm::Error::success();
}

llvm::Error AtomicFile::write(llvm::StringRef text) {
  return write(llvm::ArrayRef<uint8_t>(text.bytes_begin(), text.bytes_end()));
}

llvm::Error AtomicFile::finish() {
  if (fd < 0)
    return llvm::Error::success();
  int synced = temporary.empty() ? 0 : fsync(fd), fault = errno;
  if (::close(std::exchange(fd, -1)) != 0 && synced == 0)
    return cannotWrite(path, errno);
  return synced == 0 ? llvm::Error::success() : cannotWrite(path, fault);
}

llvm::Error AtomicFile::commit() {
  assert(!isCommitted && "already committed");
  isCommitted = true;
  bool isReplaced = !temporary.empty();
  // Renamed only when all of it is on disk; the destructor cleans up after a
  // failure.
  if (llvm::Error error = finish())
    return error;
  if (!isReplaced)
    return llvm::Error::success();
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return cannotWrite(path, errno);
  temporary.clear();
  int fault = syncFolder(folderOf(path));
  return fault == 0 ? llvm::Error::success() : cannotWrite(path, fault);
}

llvm::Error writeFileAtomically(const std::string &path,
                                llvm::ArrayRef<uint8_t> bytes,
                                std::optional<mode_t> mode) {
  llvm::Expected<AtomicFile> file = AtomicFile::create(path, mode);
  if (!file)
    return file.takeError();
  if (llvm::Error error = file->write(bytes))
    return error;
  return file->commit();
}

llvm::Error writeFileAtomically(const std::string &path, llvm::StringRef text,
                                std::optional<mode_t> mode) {
  return writeFileAtomically(
      path, llvm::ArrayRef<uint8_t>(text.bytes_begin(), text.bytes_end()),
      mode);
}

} // namespace ax
