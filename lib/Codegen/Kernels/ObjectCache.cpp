//===- ObjectCache.cpp - Compiled kernels on disk -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ObjectCache.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/OwnFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"

#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace ax::codegen {

namespace {
struct Header {
  char magic[8] = {'a', 'x', 'k', 'e', 'r', 'n', '0', '4'};
  int64_t outerCount;
  int64_t scratchBytes;
  int64_t blocks, threadsPerBlock, groupThreads;
  /// The key, and then the code, follow.
  uint64_t keyBytes;
  uint64_t codeBytes;
  /// The hash of the whole file, with 0 in its own place.
  uint64_t hash;
};

uint64_t hashOf(Header header, llvm::StringRef keyAndCode) {
  header.hash = 0;
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  return llvm::xxh3_64bits(bytes + keyAndCode.str());
}
} // namespace

llvm::Expected<std::unique_ptr<ObjectCache>>
ObjectCache::create(const std::string &folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return makeErrorf(ExitCode::InputOutput,
                      "cannot create the kernel cache '{0}': {1}", folder,
                      error.message());
  return std::unique_ptr<ObjectCache>(new ObjectCache(folder));
}

KeyLock::~KeyLock() {
  if (file >= 0)
    ::close(file);
}

/// All keys share a file: each has a byte of it, which need not be there.
KeyLock ObjectCache::lock(const std::string &key) const {
  constexpr size_t digits = 15;
  constexpr std::chrono::seconds patience(30);
  constexpr std::chrono::milliseconds pause(2);
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  llvm::StringRef(key).take_front(digits).getAsInteger(16, range.l_start);
  int file = ::open((folder + "/.lock").c_str(),
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0)
    return KeyLock(-1);
  auto last = std::chrono::steady_clock::now() + patience;
  // Of an open file, and not of the process, whose threads have one each.
  while (::fcntl(file, F_OFD_SETLK, &range) != 0 &&
         (errno == EAGAIN || errno == EACCES || errno == EINTR) &&
         std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(pause);
  return KeyLock(file);
}

std::string ObjectCache::pathOf(const std::string &key) const {
  return folder + "/" + key + ".o";
}

std::optional<CachedObject> ObjectCache::find(const std::string &key) const {
  std::unique_ptr<llvm::MemoryBuffer> file = readOwnFile(pathOf(key));
  if (!file)
    return std::nullopt;
  llvm::StringRef bytes = file->getBuffer();
  Header header, expected;
  if (bytes.size() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  llvm::StringRef code = bytes.drop_front(sizeof(header));
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0 ||
      header.keyBytes != key.size() || header.hash != hashOf(header, code) ||
      !code.consume_front(key) || header.codeBytes != code.size())
    return std::nullopt;
  return CachedObject{
      header.outerCount,
      header.scratchBytes,
      {header.blocks, header.threadsPerBlock, header.groupThreads},
      llvm::SmallVector<char, 0>(code.begin(), code.end())};
}

void ObjectCache::store(const std::string &key,
                        const CachedObject &object) const {
  llvm::StringRef code(object.code.data(), object.code.size());
  Header header;
  header.outerCount = object.outerCount;
  header.scratchBytes = object.scratchBytes;
  header.blocks = object.launch.blocks;
  header.threadsPerBlock = object.launch.threadsPerBlock;
  header.groupThreads = object.launch.groupThreads;
  header.keyBytes = key.size();
  header.codeBytes = code.size();
  header.hash = hashOf(header, key + code.str());
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  bytes += key;
  bytes += code;
  // Another process may be writing the same; a full disk costs only time.
  llvm::consumeError(
      writeFileAtomically(pathOf(key), llvm::StringRef(bytes), 0644));
}

} // namespace ax::codegen
