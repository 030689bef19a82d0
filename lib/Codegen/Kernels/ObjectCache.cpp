//===- ObjectCache.cpp - Compiled kernels on disk -------------------------===//

#include "ObjectCache.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

namespace ax::codegen {

namespace {
struct Header {
  char magic[8] = {'a', 'x', 'k', 'e', 'r', 'n', '0', '2'};
  int64_t outerCount;
  int64_t scratchBytes;
  uint64_t codeBytes;
  /// Of the whole file, with 0 here.
  uint64_t hash;
};

uint64_t hashOf(Header header, llvm::StringRef code) {
  header.hash = 0;
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  return llvm::xxh3_64bits(bytes + code.str());
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

std::string ObjectCache::pathOf(const std::string &key) const {
  return folder + "/" + key + ".o";
}

std::optional<CachedObject> ObjectCache::find(const std::string &key) const {
  auto file = llvm::MemoryBuffer::getFile(pathOf(key), /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  llvm::StringRef bytes = (*file)->getBuffer();
  Header header, expected;
  if (bytes.size() < sizeof(header))
    return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  llvm::StringRef code = bytes.drop_front(sizeof(header));
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0 ||
      header.codeBytes != code.size() || header.hash != hashOf(header, code))
    return std::nullopt;
  return CachedObject{header.outerCount, header.scratchBytes,
                      llvm::SmallVector<char, 0>(code.begin(), code.end())};
}

void ObjectCache::store(const std::string &key,
                        const CachedObject &object) const {
  llvm::StringRef code(object.code.data(), object.code.size());
  Header header;
  header.outerCount = object.outerCount;
  header.scratchBytes = object.scratchBytes;
  header.codeBytes = code.size();
  header.hash = hashOf(header, code);
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  bytes += code;
  // Another process may be writing the same; a full disk costs only time.
  llvm::consumeError(writeFileAtomically(pathOf(key), llvm::StringRef(bytes)));
}

} // namespace ax::codegen
