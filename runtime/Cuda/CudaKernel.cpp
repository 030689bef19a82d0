//===- CudaKernel.cpp - Kernels of a card ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaKernel.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <array>
#include <mutex>
#include <unordered_map>

namespace ax::rt::cuda {

/// What is loaded on all cards, by content.
struct Loaded {
  std::mutex mutex;
  std::unordered_map<std::string, std::weak_ptr<const CudaModule>> modules;
};

/// It is never destroyed: kernels may be unloaded while the process ends.
static Loaded &loaded() {
  static auto *all = new Loaded;
  return *all;
}

class CudaModule {
public:
  explicit CudaModule(SharedCard card) : card(std::move(card)) {}
  CudaModule(const CudaModule &) = delete;
  ~CudaModule() {
    if (module)
      llvm::consumeError(card->call(&Driver::cuModuleUnload, module));
    if (content.empty())
      return;
    std::lock_guard<std::mutex> lock(loaded().mutex);
    auto found = loaded().modules.find(content);
    // Another thread may have loaded it anew.
    if (found != loaded().modules.end() && found->second.expired())
      loaded().modules.erase(found);
  }

  llvm::Error load(const Kernel &kernel) {
    std::array<char, 4096> log{};
    std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER,
                                           CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void *, 2> values = {log.data(),
                                    reinterpret_cast<void *>(log.size())};
    if (llvm::Error error =
            card->call(&Driver::cuModuleLoadDataEx, &module,
                       static_cast<const void *>(kernel.image.data()),
                       static_cast<unsigned>(options.size()), options.data(),
                       values.data()))
      return withLog(std::move(error), llvm::StringRef(log.data()).trim());
    return card->call(&Driver::cuModuleGetFunction, &function, module,
                      kernel.entry.c_str());
  }

  CUfunction getFunction() const { return function; }

  /// The bytes by which others find it; empty as long as they do not.
  std::string content;

private:
  static llvm::Error withLog(llvm::Error error, llvm::StringRef log) {
    if (log.empty())
      return error;
    ErrorDescription description = describeError(std::move(error));
    return makeErrorf(description.code, "{0}: {1}", description.message, log);
  }

  SharedCard card;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

static llvm::Expected<std::shared_ptr<const CudaModule>>
loadModule(const SharedCard &card, const Kernel &kernel) {
  // Without an end the driver would read on.
  if (!llvm::is_contained(kernel.image, 0))
    return makeError(ExitCode::BadPlan, "its text has no end");
  std::string content =
      std::to_string(card->getIdentity()) + ' ' + kernel.entry + '\0';
  content.append(kernel.image.begin(), kernel.image.end());
  std::lock_guard<std::mutex> lock(loaded().mutex);
  std::weak_ptr<const CudaModule> &place = loaded().modules[content];
  if (std::shared_ptr<const CudaModule> known = place.lock())
    return known;
  auto made = std::make_shared<CudaModule>(card);
  if (llvm::Error error = made->load(kernel)) {
    loaded().modules.erase(content);
    return error;
  }
  made->content = std::move(content);
  place = made;
  return made;
}

CudaKernel::CudaKernel(std::shared_ptr<const CudaModule> module,
                       const Kernel &kernel, int64_t workspaceBytes)
    : module(std::move(module)), numBuffers(kernel.arguments.size()),
      numScalars(kernel.scalarBounds.size()),
      blocks(static_cast<unsigned>(kernel.launch.blocks)),
      threadsPerBlock(static_cast<unsigned>(kernel.launch.threadsPerBlock)) {
  this->workspaceBytes = workspaceBytes;
}

llvm::Expected<std::unique_ptr<DeviceKernel>>
CudaKernel::load(const SharedCard &card, const Kernel &kernel) {
  if (kernel.format != kernelFormat::ptx)
    return makeErrorf(ExitCode::Unsupported,
                      "kernel '{0}' is {1}, and device cuda loads {2}",
                      kernel.name, kernel.format, kernelFormat::ptx);
  auto module = loadModule(card, kernel);
  if (!module)
    return addContext(module.takeError(), "kernel '" + kernel.name + "'");
  return std::unique_ptr<DeviceKernel>(
      new CudaKernel(std::move(*module), kernel,
                     kernel.scratchBytes * kernel.launch.numGroups()));
}

llvm::Error CudaKernel::launch(const Card &card, CUstream stream,
                               const DeviceAddress *buffers,
                               const int64_t *scalars,
                               DeviceAddress workspace) const {
  // The driver takes a pointer to each parameter, of which it reads 8 bytes.
  static_assert(sizeof(DeviceAddress) == sizeof(CUdeviceptr));
  llvm::SmallVector<void *, 32> parameters;
  for (size_t i = 0; i < numBuffers; ++i)
    parameters.push_back(const_cast<DeviceAddress *>(buffers + i));
  for (size_t i = 0; i < numScalars; ++i)
    parameters.push_back(const_cast<int64_t *>(scalars + i));
  if (workspaceBytes)
    parameters.push_back(&workspace);
  return card.call(&Driver::cuLaunchKernel, module->getFunction(), blocks, 1U,
                   1U, threadsPerBlock, 1U, 1U, 0U, stream, parameters.data(),
                   static_cast<void **>(nullptr));
}

} // namespace ax::rt::cuda
