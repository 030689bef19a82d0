//===- MappedFile.cpp - Read-only memory-mapped file ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/MappedFile.h"

#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ax {

namespace {
/// A file that is mapped, for who must not wait for a lock. Places are taken
/// and given back, but never freed.
struct Place {
  std::atomic<const MappedFile *> file{nullptr};
  std::atomic<const uint8_t *> base{nullptr};
  std::atomic<int64_t> size{0};
  std::atomic<const char *> path{nullptr};
  Place *next = nullptr;
};
} // namespace

static std::atomic<Place *> places{nullptr};
/// Who changes `places`, or uses the files in it, holds this.
static std::mutex placesMutex;

static void enter(const MappedFile &file) {
  std::lock_guard<std::mutex> lock(placesMutex);
  Place *place = places;
  while (place && place->file.load())
    place = place->next;
  bool isNew = !place;
  if (isNew)
    place = new Place;
  place->path = file.getPath().c_str();
  place->size = file.getSize();
  place->base = file.bytes().data();
  place->file = &file;
  if (isNew) {
    place->next = places;
    places = place;
  }
}

static void leave(const MappedFile &file) {
  std::lock_guard<std::mutex> lock(placesMutex);
  for (Place *place = places; place; place = place->next)
    if (place->file == &file) {
      place->base = nullptr;
      place->file = nullptr;
      return;
    }
}

const char *MappedFile::findPath(const void *address) {
  const auto *at = static_cast<const uint8_t *>(address);
  for (Place *place = places; place; place = place->next) {
    const uint8_t *base = place->base;
    if (base && at >= base && at - base < place->size)
      return place->path;
  }
  return nullptr;
}

llvm::Error checkMappedFiles() {
  std::lock_guard<std::mutex> lock(placesMutex);
  for (Place *place = places; place; place = place->next) {
    const MappedFile *file = place->file;
    struct stat info;
    // Who puts another file in its place does no harm.
    if (file && ::stat(file->path.c_str(), &info) == 0 &&
        info.st_dev == file->device && info.st_ino == file->inode &&
        info.st_size < file->size)
      return makeErrorf(ExitCode::InputOutput,
                        "cannot read '{0}': it has become shorter since it was "
                        "opened",
                        file->path);
  }
  return llvm::Error::success();
}

MappedFile::MappedFile(std::string path, const uint8_t *base,
                       const struct stat &info)
    : path(std::move(path)), base(base), size(info.st_size),
      device(info.st_dev), inode(info.st_ino) {
  if (base)
    enter(*this);
}

llvm::Expected<std::shared_ptr<MappedFile>>
MappedFile::open(const std::string &path) {
  // Non-blocking, or opening a pipe would wait for its writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return makeErrnoError("cannot open '" + path + "'", errno);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return makeError(ExitCode::InputOutput,
                     "cannot read '" + path + "': not a regular file");
  }
  const uint8_t *base = nullptr;
  if (info.st_size > 0) {
    void *address = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ,
                         MAP_PRIVATE, fd, 0);
    int error = errno;
    ::close(fd);
    if (address == MAP_FAILED)
      return makeErrnoError("cannot map '" + path + "'", error);
    base = static_cast<const uint8_t *>(address);
  } else {
    ::close(fd);
  }
  return std::shared_ptr<MappedFile>(new MappedFile(path, base, info));
}

MappedFile::~MappedFile() {
  if (!base)
    return;
  leave(*this);
  munmap(const_cast<uint8_t *>(base), static_cast<size_t>(size));
}

llvm::Expected<llvm::ArrayRef<uint8_t>>
MappedFile::range(int64_t offset, int64_t length) const {
  if (offset < 0 || length < 0 || offset > size || length > size - offset)
    return makeErrorf(ExitCode::BadModel,
                      "bytes {0} to {0} + {1} are not inside '{2}', which has "
                      "{3} bytes",
                      offset, length, path, size);
  return bytes().slice(static_cast<size_t>(offset),
                       static_cast<size_t>(length));
}

void MappedFile::visitSamples(
    int64_t count, int64_t length,
    llvm::function_ref<void(llvm::ArrayRef<uint8_t>)> fn) const {
  if (size <= length * count)
    return fn(bytes());
  int64_t distance = (size - length) / (count - 1);
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = i < count - 1 ? distance * i : size - length;
    fn(bytes().slice(static_cast<size_t>(from), static_cast<size_t>(length)));
    // Systems map what is around a page, too: megabytes of it.
    int64_t begin = std::max<int64_t>(from - distance, 0);
    release(begin, std::min(from + 2 * distance, size) - begin);
  }
}

std::string MappedFile::fingerprint() const {
  constexpr int64_t pieceBytes = 4096, numPieces = 256;
  std::vector<uint8_t> sample;
  visitSamples(numPieces, pieceBytes, [&](llvm::ArrayRef<uint8_t> piece) {
    sample.insert(sample.end(), piece.begin(), piece.end());
  });
  return std::to_string(size) + ":" + checksumOf(sample);
}

void MappedFile::release(int64_t offset, int64_t length) const {
  int64_t page = sysconf(_SC_PAGESIZE);
  int64_t begin = (offset + page - 1) / page * page;
  int64_t end = (offset + length) / page * page;
  if (offset >= 0 && end > begin && end <= size)
    madvise(const_cast<uint8_t *>(base) + begin,
            static_cast<size_t>(end - begin), MADV_DONTNEED);
}

} // namespace ax
