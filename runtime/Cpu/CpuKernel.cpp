//===- CpuKernel.cpp - Kernels in this process's memory -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CpuKernel.h"

#include "KernelObject.h"

#include "ax/Support/Error.h"

#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <unordered_map>

namespace ax::rt {

LoadedKernel::~LoadedKernel() = default;

namespace {

/// What is loaded, by content.
struct Loaded {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const LoadedKernel>> kernels;
};

/// The map is never destroyed: kernels may be unloaded while the process ends.
Loaded &loaded() {
  static auto *all = new Loaded;
  return *all;
}

/// Pages that are written first and then run, never both.
class CodePages {
public:
  CodePages() = default;
  CodePages(const CodePages &) = delete;
  ~CodePages() {
    if (mapping != MAP_FAILED)
      munmap(mapping, mappedBytes);
  }

  llvm::Error load(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef name,
                   FindFunction functions) {
    auto object = KernelObject::parse(bytes, name, functions);
    if (!object)
      return object.takeError();
    mappedBytes = object->getSize();
    mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
      return makeErrnoError("no memory for its code", errno);
    auto *to = static_cast<uint8_t *>(mapping);
    if (llvm::Error error = object->link(to))
      return error;
    if (mprotect(mapping, mappedBytes, PROT_READ | PROT_EXEC) != 0)
      return makeErrnoError("its code may not be run", errno);
    entry = to + object->getEntry();
    return llvm::Error::success();
  }

  const void *getEntry() const { return entry; }

private:
  void *mapping = MAP_FAILED;
  size_t mappedBytes = 0;
  const void *entry = nullptr;
};

/// A kernel that others find by its content.
class MappedKernel : public LoadedKernel {
public:
  MappedKernel() = default;
  MappedKernel(const MappedKernel &) = delete;
  ~MappedKernel() override {
    if (content.empty())
      return;
    std::lock_guard<std::mutex> lock(loaded().mutex);
    auto found = loaded().kernels.find(content);
    // Another thread may have loaded it anew.
    if (found != loaded().kernels.end() && found->second.expired())
      loaded().kernels.erase(found);
  }

  llvm::Error load(const Kernel &kernel) {
    if (llvm::Error error =
            pages.load(kernel.image, kernel.entry, hostFunction))
      return error;
    function =
        reinterpret_cast<CpuKernelFn>(const_cast<void *>(pages.getEntry()));
    return llvm::Error::success();
  }

  /// The bytes by which others find it; empty as long as they do not.
  std::string content;

private:
  CodePages pages;
};

} // namespace

llvm::Expected<std::shared_ptr<const LoadedKernel>>
loadCpuKernel(const Kernel &kernel) {
  if (kernel.format != kernelFormat::elfX86)
    return makeErrorf(ExitCode::Unsupported,
                      "kernel '{0}' is {1}, and this device loads {2}",
                      kernel.name, kernel.format, kernelFormat::elfX86);
  std::string content = kernel.entry + '\0';
  content.append(kernel.image.begin(), kernel.image.end());
  std::lock_guard<std::mutex> lock(loaded().mutex);
  std::weak_ptr<const LoadedKernel> &place = loaded().kernels[content];
  if (std::shared_ptr<const LoadedKernel> known = place.lock())
    return known;
  auto made = std::make_shared<MappedKernel>();
  if (llvm::Error error = made->load(kernel)) {
    loaded().kernels.erase(content);
    return addContext(std::move(error), "kernel '" + kernel.name + "'");
  }
  made->content = std::move(content);
  place = made;
  return made;
}

llvm::Expected<std::shared_ptr<const void>>
loadObject(llvm::ArrayRef<uint8_t> object, llvm::StringRef entry,
           FindFunction functions) {
  auto pages = std::make_shared<CodePages>();
  if (llvm::Error error = pages->load(object, entry, functions))
    return error;
  return std::shared_ptr<const void>(pages, pages->getEntry());
}

} // namespace ax::rt
