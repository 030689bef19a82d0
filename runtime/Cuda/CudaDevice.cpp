//===- CudaDevice.cpp - Ranks that compute on an NVIDIA GPU ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaDnn.h"
#include "CudaKernel.h"
#include "CudaMemory.h"
#include "CudaProducts.h"
#include "CudaStream.h"
#include "Nvtx.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/Error.h"

#include <map>

namespace ax::rt {

namespace {

using namespace cuda;

class CudaDevice : public Device {
public:
  /// What the devices of a card share.
  struct Shared {
    SharedCard card;
    std::shared_ptr<CudaProducts> products;
    std::shared_ptr<CudaDnn> dnn;
  };
  CudaDevice(Shared shared, bool nondeterministic)
      : card(std::move(shared.card)), products(std::move(shared.products)),
        dnn(std::move(shared.dnn)), nondeterministic(nondeterministic) {}

  const char *getName() const override { return "cuda"; }
  // A thread is in the context of the card that it called last.
  void attachThread() override {}
  int32_t getNumThreads() const override { return 1; }
  const HostMapping *getHostMapping() const override { return nullptr; }
  int32_t getMemorySpace() const override { return card->getNumber(); }
  const Card &getHandle() const { return *card; }
  int32_t getCard() const override { return card->getNumber(); }
  llvm::Expected<std::string> findModel() const override {
    return card->findModel();
  }
  bool canCapture() const override { return true; }
  bool canReach(const Device &other) const override {
    const auto *cuda = dynamic_cast<const CudaDevice *>(&other);
    return cuda && cuda->card == card;
  }

  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(int64_t bytes) override {
    return allocateMemory(card, bytes);
  }
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocateZeroed(int64_t bytes) override {
    auto memory = allocateMemory(card, bytes);
    if (!memory)
      return memory.takeError();
    auto stream = makeStream(card, StreamPriority::Normal);
    if (!stream)
      return stream.takeError();
    if (llvm::Error error = (*stream)->clear((*memory)->getAddress(), bytes))
      return error;
    if (llvm::Error error = (*stream)->synchronize())
      return error;
    return memory;
  }
  llvm::Expected<std::unique_ptr<PinnedMemory>>
  allocatePinned(int64_t bytes) override {
    return cuda::allocatePinned(card, bytes);
  }
  llvm::Expected<MemorySize> getMemorySize() const override {
    return card->getMemorySize();
  }
  bool isNondeterministic() const override { return nondeterministic; }
  void setSpareMemory(int64_t bytes) override {
    products->setSpareMemory(bytes);
  }
  llvm::Expected<std::unique_ptr<Stream>>
  createStream(StreamPriority priority) override {
    return makeStream(card, priority);
  }
  llvm::Expected<std::unique_ptr<Event>> createEvent(bool isTimed) override {
    return makeEvent(card, isTimed);
  }
  llvm::Expected<std::unique_ptr<Mark>> createMark() override {
    return makeMark(card);
  }
  llvm::Expected<std::unique_ptr<DeviceKernel>>
  loadKernel(const Kernel &kernel) override {
    return CudaKernel::load(card, kernel);
  }
  std::shared_ptr<const void>
  loadAhead(llvm::ArrayRef<const Kernel *> kernels) override {
    return loadModules(card, kernels);
  }
  llvm::Expected<int64_t> findWorkspace(const LibraryDesc &desc) override {
    auto otherwise = [](llvm::Error error) -> llvm::Expected<int64_t> {
      ErrorDescription why = describeError(std::move(error));
      if (why.code == ExitCode::Unsupported)
        return 0;
      return makeError(why.code, why.message);
    };
    if (const auto *matmul = std::get_if<MatmulDesc>(&desc)) {
      llvm::Expected<int64_t> found = products->findWorkspace(*matmul);
      return found ? std::move(found) : otherwise(found.takeError());
    }
    // Its plan is kept, and takes no memory of the card.
    llvm::Expected<std::unique_ptr<LibraryOp>> op = prepare(desc, {});
    if (!op)
      return otherwise(op.takeError());
    return (*op)->getWorkspaceBytes();
  }
  llvm::Expected<std::unique_ptr<LibraryOp>>
  prepare(const LibraryDesc &desc, const ConstantOperand &) override {
    auto op = llvm::Expected<std::unique_ptr<CudaOp>>(nullptr);
    if (const auto *matmul = std::get_if<MatmulDesc>(&desc))
      op = products->prepare(*matmul);
    else if (const auto *forwards = std::get_if<AttentionDesc>(&desc))
      op = dnn->prepare(*forwards);
    else if (const auto *backwards = std::get_if<AttentionGradientDesc>(&desc))
      op = dnn->prepare(*backwards);
    else if (const auto *convolution = std::get_if<ConvDesc>(&desc))
      op = dnn->prepare(*convolution);
    else
      return makeErrorf(ExitCode::Unsupported,
                        "device cuda does not compute {0}", toString(desc));
    if (!op)
      return addContext(op.takeError(),
                        "device cuda does not compute " + toString(desc));
    return std::move(*op);
  }

private:
  SharedCard card;
  std::shared_ptr<CudaProducts> products;
  std::shared_ptr<CudaDnn> dnn;
  bool nondeterministic;
};

llvm::Expected<std::vector<std::unique_ptr<Device>>>
createDevices(llvm::ArrayRef<int32_t> cards, const DeviceOptions &options) {
  std::map<int32_t, CudaDevice::Shared> used;
  std::vector<std::unique_ptr<Device>> devices;
  for (int32_t number : cards) {
    CudaDevice::Shared &shared = used[number];
    if (!shared.card) {
      llvm::Expected<SharedCard> opened = Card::open(number);
      if (!opened)
        return opened.takeError();
      shared.card = std::move(*opened);
      shared.products = makeProducts(shared.card, options.tf32);
      shared.dnn = makeDnn(shared.card, options);
    }
    devices.push_back(
        std::make_unique<CudaDevice>(shared, options.nondeterministic));
  }
  return devices;
}

llvm::Expected<Target> findTarget(int32_t card) {
  llvm::Expected<GpuTarget> target = Card::findTarget(card);
  if (!target)
    return target.takeError();
  target->hasCudnn = whyNoCudnn().empty();
  return Target(*target);
}

} // namespace

llvm::Error cuda::enterCard(const Device &device) {
  return static_cast<const CudaDevice &>(device).getHandle().enter();
}

llvm::Expected<cuda::CardIdentity> cuda::getIdentity(const Device &device) {
  return static_cast<const CudaDevice &>(device).getHandle().getUuid();
}

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerCuda(Backends &backends) {
  backends.devices.add("cuda",
                       {createDevices, Card::count, findTarget, whyNoCudnn});
  listenForProfiler();
}

} // namespace ax::rt
