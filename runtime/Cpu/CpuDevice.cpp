//===- CpuDevice.cpp - Ranks that compute on CPU threads ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/CpuDevice.h"

#include "CpuLibrary.h"
#include "Threads.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/CpuKernel.h"
#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/Program.h"
#include "ax/Runtime/StridedCopy.h"
#include "ax/Support/Error.h"
#include "ax/Support/Processors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/ErrorHandling.h"

#include <atomic>
#include <chrono>
#include <unistd.h>

namespace ax::rt {

namespace {

class CpuKernel : public DeviceKernel {
public:
  CpuKernel(const Kernel &kernel, std::shared_ptr<const LoadedKernel> loaded,
            int32_t numThreads)
      : function(loaded->getFunction()), loaded(std::move(loaded)),
        numBuffers(kernel.arguments.size()), iterations(kernel.iterations),
        scratchBytes((kernel.scratchBytes + 63) / 64 * 64) {
    workspaceBytes = scratchBytes * numThreads;
  }

  void run(void *const *buffers, const int64_t *scalars, char *scratch) const {
    if (!scratchBytes) {
      parallelFor(iterations, 1, [&](int64_t begin, int64_t end) {
        function(buffers, scalars, begin, end);
      });
      return;
    }
    // Every range is one thread's: it takes the next piece.
    std::atomic<int64_t> next{0};
    parallelFor(iterations, 1, [&](int64_t begin, int64_t end) {
      llvm::SmallVector<void *, 16> all(buffers, buffers + numBuffers);
      all.push_back(scratch + next++ * scratchBytes);
      function(all.data(), scalars, begin, end);
    });
  }

private:
  CpuKernelFn function;
  /// Keeps the function in memory.
  std::shared_ptr<const LoadedKernel> loaded;
  size_t numBuffers;
  int64_t iterations;
  /// Of one thread.
  int64_t scratchBytes;
};

class CpuMemory : public DeviceMemory {
public:
  explicit CpuMemory(HostMemory memoryIn)
      : DeviceMemory(DeviceAccess::address(memoryIn.getData()),
                     memoryIn.getSize()),
        memory(std::move(memoryIn)) {}

private:
  HostMemory memory;
};

class CpuMapping : public HostMapping {
public:
  DeviceAddress toDevice(const void *host) const override {
    return DeviceAccess::address(host);
  }
  void *toHost(DeviceAddress address) const override {
    return DeviceAccess::pointer(address);
  }
};

class CpuPinned : public PinnedMemory {
public:
  explicit CpuPinned(HostMemory memoryIn)
      : PinnedMemory(memoryIn.getData(), memoryIn.getSize()),
        memory(std::move(memoryIn)) {}

private:
  HostMemory memory;
};

/// Streams are never behind; only when one was here is of interest.
class CpuEvent : public Event {
public:
  explicit CpuEvent(bool isTimed) : isTimed(isTimed) {}
  llvm::Expected<bool> isDone() const override { return true; }
  llvm::Error synchronize() const override { return llvm::Error::success(); }
  llvm::Expected<std::chrono::nanoseconds>
  since(const Event &earlier) const override {
    return time - static_cast<const CpuEvent &>(earlier).time;
  }
  void record() {
    if (isTimed)
      time = std::chrono::steady_clock::now();
  }

private:
  bool isTimed;
  std::chrono::steady_clock::time_point time;
};

class CpuMark : public Mark {
public:
  CpuMark() : Mark(&memory) {}
  void set(uint64_t value) { memory.store(value, std::memory_order_relaxed); }

private:
  std::atomic<uint64_t> memory{0};
};

/// Does everything at once, on the calling thread and its team.
class CpuStream : public Stream {
public:
  llvm::Error launch(const DeviceKernel &kernel, const DeviceAddress *buffers,
                     const int64_t *scalars, DeviceAddress workspace) override {
    static_cast<const CpuKernel &>(kernel).run(
        DeviceAccess::pointers(buffers), scalars,
        static_cast<char *>(DeviceAccess::pointer(workspace)));
    return llvm::Error::success();
  }
  llvm::Error execute(LibraryOp &op, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    return static_cast<CpuOp &>(op).execute(DeviceAccess::pointers(arguments),
                                            DeviceAccess::pointer(workspace));
  }
  llvm::Error clear(DeviceAddress memory, int64_t bytes) override {
    if (bytes)
      std::memset(DeviceAccess::pointer(memory), 0, static_cast<size_t>(bytes));
    return llvm::Error::success();
  }
  llvm::Error upload(const PinnedMemory &host, int64_t offset,
                     DeviceAddress device, int64_t bytes) override {
    if (bytes)
      std::memcpy(DeviceAccess::pointer(device),
                  static_cast<const char *>(host.getData()) + offset,
                  static_cast<size_t>(bytes));
    return llvm::Error::success();
  }
  llvm::Error download(DeviceAddress device, PinnedMemory &host, int64_t offset,
                       int64_t bytes) override {
    if (bytes)
      std::memcpy(static_cast<char *>(host.getData()) + offset,
                  DeviceAccess::pointer(device), static_cast<size_t>(bytes));
    return llvm::Error::success();
  }
  llvm::Error copyStrided(const CopyCommand &command, DeviceAddress source,
                          DeviceAddress destination) override {
    boxOf(command).copy(DeviceAccess::pointer(source),
                        DeviceAccess::pointer(destination));
    return llvm::Error::success();
  }
  llvm::Error record(Event &event) override {
    static_cast<CpuEvent &>(event).record();
    return llvm::Error::success();
  }
  llvm::Error wait(const Event &) override { return llvm::Error::success(); }
  llvm::Error set(Mark &mark, uint64_t number) override {
    static_cast<CpuMark &>(mark).set(number);
    return llvm::Error::success();
  }
  llvm::Expected<bool> isDone() override { return true; }
  llvm::Error synchronize() override { return llvm::Error::success(); }
};

/// Makes subnormal numbers 0 in the calling thread and, since threads inherit
/// it, its future team.
void flushDenormals() {
#if defined(__x86_64__)
  constexpr unsigned flushToZero = 1U << 15, denormalsAreZero = 1U << 6;
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | flushToZero |
                         denormalsAreZero);
#elif defined(__aarch64__)
  constexpr uint64_t flushToZero = uint64_t(1) << 24;
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | flushToZero));
#endif
}

class CpuDevice : public Device {
public:
  CpuDevice(std::shared_ptr<PackedWeights> packed, const DeviceOptions &options)
      : packed(std::move(packed)), options(options) {}

  const char *getName() const override { return "cpu"; }
  llvm::Expected<std::string> findModel() const override {
    return findProcessorModel();
  }
  void attachThread() override {
    setNumThreads(options.threadsPerRank);
    if (options.flushDenormals)
      flushDenormals();
  }
  int32_t getNumThreads() const override { return options.threadsPerRank; }

  const HostMapping *getHostMapping() const override { return &mapping; }
  int32_t getMemorySpace() const override { return 0; }

  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(int64_t bytes) override {
    llvm::Expected<HostMemory> memory = HostMemory::allocate(bytes);
    if (!memory)
      return memory.takeError();
    return std::make_unique<CpuMemory>(std::move(*memory));
  }
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocateZeroed(int64_t bytes) override {
    return allocate(bytes); // As fresh pages are.
  }
  llvm::Expected<std::unique_ptr<PinnedMemory>>
  allocatePinned(int64_t bytes) override {
    llvm::Expected<HostMemory> memory = HostMemory::allocate(bytes);
    if (!memory)
      return memory.takeError();
    return std::make_unique<CpuPinned>(std::move(*memory));
  }
  llvm::Expected<MemorySize> getMemorySize() const override {
    int64_t page = sysconf(_SC_PAGESIZE);
    return MemorySize{sysconf(_SC_AVPHYS_PAGES) * page,
                      sysconf(_SC_PHYS_PAGES) * page};
  }
  llvm::Expected<std::unique_ptr<Stream>>
  createStream(StreamPriority) override {
    return std::make_unique<CpuStream>();
  }
  llvm::Expected<std::unique_ptr<Event>> createEvent(bool isTimed) override {
    return std::make_unique<CpuEvent>(isTimed);
  }
  llvm::Expected<std::unique_ptr<Mark>> createMark() override {
    return std::make_unique<CpuMark>();
  }
  llvm::Expected<std::unique_ptr<DeviceKernel>>
  loadKernel(const Kernel &kernel) override {
    auto loaded = loadCpuKernel(kernel);
    if (!loaded)
      return loaded.takeError();
    return std::make_unique<CpuKernel>(kernel, std::move(*loaded),
                                       options.threadsPerRank);
  }
  llvm::Expected<std::unique_ptr<LibraryOp>>
  prepare(const LibraryDesc &desc, const ConstantOperand &operand) override {
    CpuConstant constant{DeviceAccess::pointer(operand.data), operand.identity,
                         operand.byteOffset};
    ExpectedCpuOp op = prepareCpuOp(desc, constant, *packed);
    if (!op)
      return addContext(op.takeError(), toString(desc));
    return std::move(*op);
  }

private:
  std::shared_ptr<PackedWeights> packed;
  DeviceOptions options;
  CpuMapping mapping;
};

} // namespace

llvm::Expected<std::shared_ptr<const HostMemory>>
PackedWeights::get(const CpuConstant &constant, const std::string &format,
                   int64_t bytes,
                   llvm::function_ref<llvm::Error(void *)> pack) {
  std::shared_ptr<Entry> entry;
  if (constant.identity) {
    std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<Entry> &known =
        entries[{constant.identity, constant.byteOffset, format}];
    if (!known)
      known = std::make_shared<Entry>();
    entry = known;
  } else {
    entry = std::make_shared<Entry>();
  }
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (std::shared_ptr<const HostMemory> memory = entry->memory.lock())
    return memory;
  llvm::Expected<HostMemory> fresh = HostMemory::allocate(bytes);
  if (!fresh)
    return fresh.takeError();
  auto memory = std::make_shared<const HostMemory>(std::move(*fresh));
  if (llvm::Error error = pack(memory->getData()))
    return error;
  entry->memory = memory;
  return memory;
}

std::vector<std::unique_ptr<Device>>
createCpuDevices(int32_t numRanks, const DeviceOptions &options) {
  auto packed = std::make_shared<PackedWeights>();
  std::vector<std::unique_ptr<Device>> devices;
  for (int32_t i = 0; i < numRanks; ++i)
    devices.push_back(std::make_unique<CpuDevice>(packed, options));
  return devices;
}

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerCpu(Backends &backends) {
  backends.devices.add(
      "cpu",
      {[](llvm::ArrayRef<int32_t> cards, const DeviceOptions &options)
           -> llvm::Expected<std::vector<std::unique_ptr<Device>>> {
         return createCpuDevices(static_cast<int32_t>(cards.size()), options);
       },
       []() -> llvm::Expected<int32_t> { return 1; },
       [](int32_t) -> llvm::Expected<Target> { return Target::native(); }});
}

} // namespace ax::rt
