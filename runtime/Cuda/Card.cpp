//===- Card.cpp - One GPU, as all ranks on it share it --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Card.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace ax::rt::cuda {

/// Identity of the card whose context the calling thread is in.
static thread_local uint64_t entered = 0;

static uint64_t nextIdentity() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

static std::string contextOf(int32_t number) {
  return "device cuda: card " + std::to_string(number);
}

Card::Card(std::shared_ptr<const Driver> driver, int32_t number)
    : driver(std::move(driver)), number(number), identity(nextIdentity()) {}

Card::~Card() {
  if (context)
    llvm::consumeError(
        driver->call(&Driver::cuDevicePrimaryCtxRelease, device));
}

llvm::Expected<std::shared_ptr<const Card>> Card::open(int32_t number) {
  llvm::Expected<std::shared_ptr<const Driver>> driver = Driver::load();
  if (!driver)
    return driver.takeError();
  std::shared_ptr<Card> card(new Card(std::move(*driver), number));
  if (llvm::Error error = card->retain())
    return addContext(std::move(error), contextOf(number));
  return card;
}

llvm::Expected<int32_t> Card::count() {
  llvm::Expected<std::shared_ptr<const Driver>> driver = Driver::load();
  if (!driver)
    return driver.takeError();
  int count = 0;
  if (llvm::Error error = (*driver)->call(&Driver::cuDeviceGetCount, &count))
    return addContext(std::move(error), "device cuda");
  return count;
}

llvm::Expected<GpuTarget> Card::findTarget(int32_t number) {
  llvm::Expected<std::shared_ptr<const Driver>> driver = Driver::load();
  if (!driver)
    return driver.takeError();
  CUdevice device = 0;
  if (llvm::Error error =
          (*driver)->call(&Driver::cuDeviceGet, &device, number))
    return addContext(std::move(error), contextOf(number));
  llvm::Expected<GpuTarget> target = findTarget(**driver, device);
  if (!target)
    return addContext(target.takeError(), contextOf(number));
  return target;
}

static llvm::Expected<std::string> modelOf(const Driver &driver,
                                           CUdevice device) {
  std::array<char, 128> name{};
  if (llvm::Error error = driver.call(&Driver::cuDeviceGetName, name.data(),
                                      static_cast<int>(name.size()), device))
    return error;
  return std::string(name.data());
}

llvm::Expected<GpuTarget> Card::findTarget(const Driver &driver,
                                           CUdevice device) {
  int major = 0, minor = 0;
  for (auto [value, attribute] :
       {std::pair(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        std::pair(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)})
    if (llvm::Error error = driver.call(&Driver::cuDeviceGetAttribute, value,
                                        attribute, device))
      return error;
  if (std::optional<GpuTarget> target =
          GpuTarget::newestFor(static_cast<unsigned>(10 * major + minor)))
    return *target;
  llvm::Expected<std::string> name = modelOf(driver, device);
  if (!name)
    return name.takeError();
  return makeErrorf(ExitCode::Usage,
                    "{0} is an sm_{1}{2}, and {3} is needed; --devices says "
                    "which cards ranks use",
                    *name, major, minor, GpuTarget::names().front());
}

llvm::Error Card::retain() {
  if (llvm::Error error = driver->call(&Driver::cuDeviceGet, &device, number))
    return error;
  if (llvm::Error error = findTarget(*driver, device).takeError())
    return error;
  if (llvm::Error error = driver->call(&Driver::cuDeviceGetAttribute, &maxPitch,
                                       CU_DEVICE_ATTRIBUTE_MAX_PITCH, device))
    return error;
  if (llvm::Error error =
          driver->call(&Driver::cuDevicePrimaryCtxRetain, &context, device))
    return error;
  return call(&Driver::cuCtxGetStreamPriorityRange, &normalPriority,
              &highPriority);
}

llvm::Error Card::enter() const {
  if (entered == identity)
    return llvm::Error::success();
  if (llvm::Error error = driver->call(&Driver::cuCtxSetCurrent, context))
    return error;
  entered = identity;
  return llvm::Error::success();
}

llvm::Expected<CardIdentity> Card::getUuid() const {
  CUuuid uuid{};
  if (llvm::Error error = driver->call(&Driver::cuDeviceGetUuid, &uuid, device))
    return error;
  CardIdentity identity;
  std::copy_n(uuid.bytes, identity.size(), identity.begin());
  return identity;
}

llvm::Expected<std::string> Card::findModel() const {
  return modelOf(*driver, device);
}

llvm::Expected<std::string> Card::describe() const {
  llvm::Expected<std::string> name = findModel();
  if (!name)
    return name.takeError();
  int version = 0;
  if (llvm::Error error = driver->call(&Driver::getVersion, &version))
    return error;
  return *name + ", driver " + std::to_string(version);
}

llvm::Expected<MemorySize> Card::getMemorySize() const {
  size_t free = 0, total = 0;
  if (llvm::Error error = call(&Driver::cuMemGetInfo, &free, &total))
    return error;
  return MemorySize{static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

} // namespace ax::rt::cuda
