//===- CudaKernel.cpp - Kernels of a card ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaKernel.h"

#include "ax/Support/Error.h"
#include "ax/Support/Threads.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

namespace ax::rt::cuda {

/// A module, and whether a thread is at it.
struct Place {
  std::weak_ptr<const CudaModule> module;
  bool isLoading = false;
  /// Of what was loaded ahead, as long as that is held.
  std::optional<ErrorDescription> fault;
};

/// What is loaded on all cards, by content. While the driver makes code of a
/// module, which takes long, others may be made: who wants the same one waits
/// for that, and nobody else.
struct Loaded {
  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_map<std::string, Place> places;
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
    auto found = loaded().places.find(content);
    // Another thread may have loaded it anew, or be at it.
    if (found != loaded().places.end() && !found->second.isLoading &&
        found->second.module.expired())
      loaded().places.erase(found);
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

static std::string contentOf(const SharedCard &card, const Kernel &kernel) {
  std::string content =
      std::to_string(card->getIdentity()) + ' ' + kernel.entry + '\0';
  content.append(kernel.image.begin(), kernel.image.end());
  return content;
}

/// `isAhead`: an error is of who loads it next, too.
static llvm::Expected<std::shared_ptr<const CudaModule>>
loadModule(const SharedCard &card, const Kernel &kernel, bool isAhead = false) {
  // Without an end the driver would read on.
  if (!llvm::is_contained(kernel.image, 0))
    return makeError(ExitCode::BadPlan, "its text has no end");
  std::string content = contentOf(card, kernel);
  Loaded &all = loaded();
  std::unique_lock<std::mutex> lock(all.mutex);
  // The place may be gone when another thread has failed at it.
  all.changed.wait(lock, [&] { return !all.places[content].isLoading; });
  if (auto known = all.places[content].module.lock())
    return known;
  if (const auto &fault = all.places[content].fault)
    return makeError(fault->code, fault->message);
  all.places[content].isLoading = true;
  lock.unlock();
  auto made = std::make_shared<CudaModule>(card);
  llvm::Error error = made->load(kernel);
  lock.lock();
  if (error && isAhead) {
    ErrorDescription fault = describeError(std::move(error));
    error = makeError(fault.code, fault.message);
    all.places[content] = {{}, /*isLoading=*/false, std::move(fault)};
  } else if (error) {
    all.places.erase(content);
  } else {
    Place &place = all.places[content];
    place.isLoading = false;
    place.module = made;
    made->content = std::move(content);
  }
  lock.unlock();
  all.changed.notify_all();
  if (error)
    return error;
  return made;
}

namespace {

/// What was loaded ahead, of each kernel the module or else its content.
struct LoadedAhead {
  explicit LoadedAhead(size_t count) : modules(count), failed(count) {}
  LoadedAhead(const LoadedAhead &) = delete;
  ~LoadedAhead() {
    std::lock_guard<std::mutex> lock(loaded().mutex);
    for (const std::string &content : failed)
      if (auto found = loaded().places.find(content);
          found != loaded().places.end() && found->second.fault)
        loaded().places.erase(found);
  }
  std::vector<std::shared_ptr<const CudaModule>> modules;
  std::vector<std::string> failed;
};

} // namespace

std::shared_ptr<const void>
loadModules(const SharedCard &card, llvm::ArrayRef<const Kernel *> kernels) {
  // Few are not worth a thread, and more threads than these would leave other
  // ranks of the process nothing.
  constexpr size_t leastPerThread = 4, mostThreads = 8;
  size_t numThreads = std::min({kernels.size() / leastPerThread, mostThreads,
                                size_t(std::thread::hardware_concurrency())});
  if (numThreads < 2)
    return nullptr;
  auto held = std::make_shared<LoadedAhead>(kernels.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++) {
      if (kernels[i]->format != kernelFormat::ptx)
        continue;
      auto module = loadModule(card, *kernels[i], /*isAhead=*/true);
      if (module) {
        held->modules[i] = std::move(*module);
        continue;
      }
      // Who loads it is told.
      llvm::consumeError(module.takeError());
      held->failed[i] = contentOf(card, *kernels[i]);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < numThreads; ++i) {
    auto started = startThread("a thread that loads kernels", work);
    if (started)
      threads.push_back(std::move(*started));
    else
      // There are fewer of them, then.
      llvm::consumeError(started.takeError());
  }
  work();
  for (std::thread &thread : threads)
    thread.join();
  return held;
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
