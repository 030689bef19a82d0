//===- GuardedDevice.cpp - A CPU whose memory the host cannot touch -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `guarded`: the CPU's kernels and libraries, on memory of its own. Host code
// that reads or writes at an address of it faults at once; an address that is
// no more, or another rank's, is an error of the command; what was never
// written is NaN. So what passes on it moves its data as a device of another
// kind needs it. `bare` is the same without any library.
//
//===----------------------------------------------------------------------===//

#include "GuardedMemory.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/CpuDevice.h"
#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/Error.h"

namespace ax::rt {

namespace {

class GuardedKernel : public DeviceKernel {
public:
  GuardedKernel(std::unique_ptr<DeviceKernel> innerIn, size_t numBuffers)
      : inner(std::move(innerIn)), numBuffers(numBuffers) {
    workspaceBytes = inner->getWorkspaceBytes();
  }
  std::unique_ptr<DeviceKernel> inner;
  size_t numBuffers;
};

class GuardedOp : public LibraryOp {
public:
  GuardedOp(std::unique_ptr<LibraryOp> innerIn, int32_t numArguments)
      : inner(std::move(innerIn)), numArguments(numArguments) {
    workspaceBytes = inner->getWorkspaceBytes();
    readsConstantOperand = inner->readsConstant();
  }
  std::unique_ptr<LibraryOp> inner;
  int32_t numArguments;
};

/// Every address becomes the one behind it.
class GuardedStream : public Stream {
public:
  GuardedStream(std::unique_ptr<Stream> inner, const GuardedSpace &space)
      : inner(std::move(inner)), space(space) {}

  llvm::Error launch(const DeviceKernel &kernel, const DeviceAddress *buffers,
                     const int64_t *scalars, DeviceAddress workspace) override {
    const auto &guarded = static_cast<const GuardedKernel &>(kernel);
    llvm::SmallVector<DeviceAddress, 16> all(buffers,
                                             buffers + guarded.numBuffers);
    all.push_back(workspace);
    return with(all, [&](const DeviceAddress *found) {
      return inner->launch(*guarded.inner, found, scalars,
                           found[guarded.numBuffers]);
    });
  }
  llvm::Error execute(LibraryOp &op, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    auto &guarded = static_cast<GuardedOp &>(op);
    llvm::SmallVector<DeviceAddress, 16> all(arguments,
                                             arguments + guarded.numArguments);
    all.push_back(workspace);
    return with(all, [&](const DeviceAddress *found) {
      return inner->execute(*guarded.inner, found, found[guarded.numArguments]);
    });
  }
  llvm::Error copyStrided(const CopyCommand &box, DeviceAddress source,
                          DeviceAddress destination) override {
    return with({source, destination}, [&](const DeviceAddress *found) {
      return inner->copyStrided(box, found[0], found[1]);
    });
  }
  llvm::Error clear(DeviceAddress memory, int64_t bytes) override {
    return with(memory, [&](const DeviceAddress *found) {
      return inner->clear(*found, bytes);
    });
  }
  llvm::Error upload(const PinnedMemory &host, int64_t offset,
                     DeviceAddress device, int64_t bytes) override {
    return with(device, [&](const DeviceAddress *found) {
      return inner->upload(host, offset, *found, bytes);
    });
  }
  llvm::Error download(DeviceAddress device, PinnedMemory &host, int64_t offset,
                       int64_t bytes) override {
    return with(device, [&](const DeviceAddress *found) {
      return inner->download(*found, host, offset, bytes);
    });
  }
  llvm::Error record(Event &event) override { return inner->record(event); }
  llvm::Error wait(const Event &event) override { return inner->wait(event); }
  llvm::Error set(Mark &mark, uint64_t number) override {
    return inner->set(mark, number);
  }
  llvm::Expected<bool> isDone() override { return inner->isDone(); }
  llvm::Error synchronize() override { return inner->synchronize(); }

private:
  template <typename Fn>
  llvm::Error with(llvm::ArrayRef<DeviceAddress> addresses, Fn &&fn) {
    translated.clear();
    for (DeviceAddress address : addresses) {
      llvm::Expected<void *> found = space.find(address);
      if (!found)
        return found.takeError();
      translated.push_back(DeviceAccess::address(*found));
    }
    return fn(translated.data());
  }

  std::unique_ptr<Stream> inner;
  const GuardedSpace &space;
  llvm::SmallVector<DeviceAddress, 32> translated;
};

class GuardedDevice : public Device {
public:
  GuardedDevice(std::unique_ptr<Device> inner, int32_t rank, bool isBare)
      : inner(std::move(inner)), space(guardedSpace(rank)), isBare(isBare) {}

  const char *getName() const override { return isBare ? "bare" : "guarded"; }
  void attachThread() override { inner->attachThread(); }
  int32_t getNumThreads() const override { return inner->getNumThreads(); }
  const HostMapping *getHostMapping() const override { return nullptr; }
  int32_t getMemorySpace() const override { return space->getNumber(); }
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(int64_t bytes) override {
    return space->allocate(bytes, false);
  }
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocateZeroed(int64_t bytes) override {
    return space->allocate(bytes, true);
  }
  llvm::Expected<std::unique_ptr<PinnedMemory>>
  allocatePinned(int64_t bytes) override {
    return inner->allocatePinned(bytes);
  }
  llvm::Expected<MemorySize> getMemorySize() const override {
    return inner->getMemorySize();
  }
  void setSpareMemory(int64_t bytes) override { inner->setSpareMemory(bytes); }
  llvm::Expected<std::unique_ptr<Stream>>
  createStream(StreamPriority priority) override {
    auto stream = inner->createStream(priority);
    if (!stream)
      return stream.takeError();
    return std::make_unique<GuardedStream>(std::move(*stream), *space);
  }
  llvm::Expected<std::unique_ptr<Event>> createEvent(bool isTimed) override {
    return inner->createEvent(isTimed);
  }
  llvm::Expected<std::unique_ptr<Mark>> createMark() override {
    return inner->createMark();
  }
  llvm::Expected<std::unique_ptr<DeviceKernel>>
  loadKernel(const Kernel &kernel) override {
    auto loaded = inner->loadKernel(kernel);
    if (!loaded)
      return loaded.takeError();
    return std::make_unique<GuardedKernel>(std::move(*loaded),
                                           kernel.arguments.size());
  }
  llvm::Expected<std::unique_ptr<LibraryOp>>
  prepare(const LibraryDesc &desc, const ConstantOperand &constant) override {
    if (isBare)
      return makeErrorf(ExitCode::Unsupported, "device 'bare' has no {0}",
                        toString(desc));
    llvm::Expected<void *> data = space->find(constant.data);
    if (!data)
      return data.takeError();
    ConstantOperand found = constant;
    found.data = DeviceAccess::address(*data);
    auto op = inner->prepare(desc, found);
    if (!op)
      return op.takeError();
    return std::make_unique<GuardedOp>(std::move(*op), numArguments(desc));
  }

private:
  std::unique_ptr<Device> inner;
  std::shared_ptr<GuardedSpace> space;
  bool isBare;
};

template <bool isBare>
llvm::Expected<std::vector<std::unique_ptr<Device>>>
createDevices(llvm::ArrayRef<int32_t> cards, const DeviceOptions &options) {
  std::vector<std::unique_ptr<Device>> devices;
  for (std::unique_ptr<Device> &cpu :
       createCpuDevices(static_cast<int32_t>(cards.size()), options))
    devices.push_back(std::make_unique<GuardedDevice>(
        std::move(cpu), static_cast<int32_t>(devices.size()), isBare));
  return devices;
}

llvm::Expected<int32_t> countCards() { return 1; }

llvm::Expected<Target> findTarget(int32_t) { return Target::native(); }

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerGuarded(Backends &backends) {
  backends.devices.add("guarded",
                       {createDevices<false>, countCards, findTarget});
  backends.devices.add("bare", {createDevices<true>, countCards, findTarget});
}

} // namespace ax::rt
