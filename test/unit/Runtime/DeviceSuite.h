//===- DeviceSuite.h - What every device must do ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend's test program links DeviceSuite.cpp, DeviceStreams.cpp and
// DeviceTransfers.cpp, and instantiates DeviceSuite with itself.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_DEVICESUITE_H
#define AX_TEST_DEVICESUITE_H

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/Device.h"

#include "gtest/gtest.h"

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ax::rt {

class DeviceBackend {
public:
  /// `device` is the name by which it is registered.
  DeviceBackend(std::string name, std::string device)
      : name(std::move(name)), device(std::move(device)) {}
  virtual ~DeviceBackend() = default;
  const std::string &getName() const { return name; }
  /// Is called before each test.
  virtual void begin() {}
  virtual std::vector<std::unique_ptr<Device>> create(int32_t numRanks) {
    DeviceKind kind = llvm::cantFail(allBackends().devices.find(device));
    return llvm::cantFail(
        kind.create(std::vector<int32_t>(numRanks), DeviceOptions()));
  }

private:
  std::string name, device;
};

using Bytes = std::vector<char>;

inline Bytes randomBytes(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(static_cast<size_t>(size));
  for (char &byte : bytes)
    byte = static_cast<char>(random());
  return bytes;
}

/// A device with a stream, on this thread.
struct TestRank {
  explicit TestRank(Device &device)
      : device(device), stream(llvm::cantFail(device.createStream())) {}

  std::unique_ptr<PinnedMemory> pin(const Bytes &bytes) {
    auto pinned = llvm::cantFail(
        device.allocatePinned(static_cast<int64_t>(bytes.size())));
    if (!bytes.empty())
      std::memcpy(pinned->getData(), bytes.data(), bytes.size());
    return pinned;
  }
  void write(DeviceAddress address, const Bytes &bytes) {
    auto pinned = pin(bytes);
    llvm::cantFail(stream->upload(*pinned, 0, address, pinned->getSize()));
    llvm::cantFail(stream->synchronize());
  }
  /// Returns new memory with such bytes.
  std::unique_ptr<DeviceMemory> place(const Bytes &bytes) {
    auto memory =
        llvm::cantFail(device.allocate(static_cast<int64_t>(bytes.size())));
    write(memory->getAddress(), bytes);
    return memory;
  }
  Bytes read(DeviceAddress address, int64_t size) {
    auto pinned = llvm::cantFail(device.allocatePinned(size));
    llvm::cantFail(stream->download(address, *pinned, 0, size));
    llvm::cantFail(stream->synchronize());
    const char *data = static_cast<const char *>(pinned->getData());
    return Bytes(data, data + size);
  }
  Bytes read(const DeviceMemory &memory) {
    return read(memory.getAddress(), memory.getSize());
  }
  /// Copies bytes of the device.
  llvm::Error copy(Stream &by, DeviceAddress source, DeviceAddress destination,
                   int64_t bytes);

  Device &device;
  std::unique_ptr<Stream> stream;
};

class DeviceSuite : public ::testing::TestWithParam<DeviceBackend *> {
protected:
  DeviceSuite() : devices(createFirst()), device(*devices.front()) {
    device.attachThread();
    rank.emplace(device);
  }

  static std::vector<std::unique_ptr<Device>> createFirst() {
    GetParam()->begin();
    return GetParam()->create(1);
  }

  std::vector<std::unique_ptr<Device>> devices;
  Device &device;
  std::optional<TestRank> rank;
};

} // namespace ax::rt

#endif // AX_TEST_DEVICESUITE_H
