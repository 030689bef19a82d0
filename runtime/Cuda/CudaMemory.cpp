//===- CudaMemory.cpp - Memory of a card, pinned memory -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaMemory.h"

#include "ax/Support/Error.h"

namespace ax::rt::cuda {

namespace {

class CudaMemory : public DeviceMemory {
public:
  CudaMemory(SharedCard card, DeviceAddress address, int64_t bytes)
      : DeviceMemory(address, bytes), card(std::move(card)) {}
  ~CudaMemory() override {
    if (getAddress())
      llvm::consumeError(card->call(&Driver::cuMemFree, toCuda(getAddress())));
  }

private:
  SharedCard card;
};

class CudaPinned : public PinnedMemory {
public:
  CudaPinned(SharedCard card, void *data, int64_t bytes)
      : PinnedMemory(data, bytes), card(std::move(card)) {}
  ~CudaPinned() override {
    if (getData())
      llvm::consumeError(card->call(&Driver::cuMemFreeHost, getData()));
  }

private:
  SharedCard card;
};

} // namespace

llvm::Expected<std::unique_ptr<DeviceMemory>>
allocateMemory(const SharedCard &card, int64_t bytes) {
  CUdeviceptr address = 0;
  if (bytes == 0)
    return std::make_unique<CudaMemory>(card, DeviceAddress(), bytes);
  if (llvm::Error error = card->call(&Driver::cuMemAlloc, &address,
                                     static_cast<size_t>(bytes))) {
    llvm::Expected<MemorySize> size = card->getMemorySize();
    if (!size)
      return llvm::joinErrors(std::move(error), size.takeError());
    return addContext(
        std::move(error),
        llvm::formatv("{0} bytes of card {1}, of whose {2} bytes {3} are free",
                      bytes, card->getNumber(), size->total, size->free));
  }
  return std::make_unique<CudaMemory>(
      card, DeviceAccess::address(reinterpret_cast<void *>(address)), bytes);
}

llvm::Expected<std::unique_ptr<PinnedMemory>>
allocatePinned(const SharedCard &card, int64_t bytes) {
  void *data = nullptr;
  if (bytes == 0)
    return std::make_unique<CudaPinned>(card, data, bytes);
  if (llvm::Error error =
          card->call(&Driver::cuMemHostAlloc, &data, static_cast<size_t>(bytes),
                     static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE |
                                           CU_MEMHOSTALLOC_DEVICEMAP)))
    return addContext(
        std::move(error),
        llvm::formatv("{0} bytes of pinned memory of the host", bytes));
  return std::make_unique<CudaPinned>(card, data, bytes);
}

} // namespace ax::rt::cuda
