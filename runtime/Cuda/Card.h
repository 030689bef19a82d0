//===- Card.h - One GPU, as all ranks on it share it ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CARD_H
#define AX_RUNTIME_CUDA_CARD_H

#include "Driver.h"

#include "ax/Runtime/Device.h"
#include "ax/Support/Target.h"

namespace ax::rt::cuda {

/// A card and its primary context, which lives as long as this. Thread-safe.
class Card {
public:
  /// A Usage error where the card is older than sm_80.
  static llvm::Expected<std::shared_ptr<const Card>> open(int32_t number);
  /// Returns how many there are.
  static llvm::Expected<int32_t> count();
  /// As `open`; nothing is done on the card.
  static llvm::Expected<GpuTarget> findTarget(int32_t number);
  ~Card();
  Card(const Card &) = delete;
  Card &operator=(const Card &) = delete;

  int32_t getNumber() const { return number; }
  uint64_t getIdentity() const { return identity; }
  /// Rows of a copy begin at most so many bytes behind each other.
  int64_t getMaxPitch() const { return maxPitch; }
  int getPriority(StreamPriority priority) const {
    return priority == StreamPriority::High ? highPriority : normalPriority;
  }
  llvm::Expected<MemorySize> getMemorySize() const;
  llvm::Expected<CardIdentity> getUuid() const;
  llvm::Expected<std::string> findModel() const;
  /// Its model, and the driver's version.
  llvm::Expected<std::string> describe() const;

  /// Makes the card's context that of the calling thread.
  llvm::Error enter() const;
  /// As the driver's functions of these names, on that context.
  template <typename Function, typename... Args>
  llvm::Error call(Function Driver::*member, Args... args) const {
    if (llvm::Error error = enter())
      return error;
    return driver->call(member, args...);
  }
  template <typename Function, typename Handle>
  llvm::Expected<bool> ask(Function Driver::*member, Handle handle) const {
    if (llvm::Error error = enter())
      return error;
    return driver->ask(member, handle);
  }

private:
  Card(std::shared_ptr<const Driver> driver, int32_t number);
  static llvm::Expected<GpuTarget> findTarget(const Driver &driver,
                                              CUdevice device);
  llvm::Error retain();

  std::shared_ptr<const Driver> driver;
  int32_t number;
  /// Never that of another one: the driver may give a new context the address
  /// of an old one.
  const uint64_t identity;
  CUdevice device = 0;
  CUcontext context = nullptr;
  int maxPitch = 0;
  int normalPriority = 0, highPriority = 0;
};

using SharedCard = std::shared_ptr<const Card>;

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CARD_H
