//===- ProductRunner.h - Library operations on device cuda ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_PRODUCTRUNNER_H
#define AX_TEST_PRODUCTRUNNER_H

#include "LibraryRunner.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Support/Error.h"

namespace ax::rt {

/// A rank on device cuda, whose driver is set up before.
class ProductRunner {
public:
  explicit ProductRunner(const DeviceOptions &options = {})
      : devices(create(options)), device(*devices[0]),
        stream(llvm::cantFail(device.createStream())),
        transfer(device, *stream, 1 << 16) {
    device.setSpareMemory(llvm::cantFail(device.getMemorySize()).free);
  }

  static std::vector<std::unique_ptr<Device>>
  create(const DeviceOptions &options) {
    DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
    return llvm::cantFail(cuda.create({0}, options));
  }
  /// Does the operation with `data`, each argument so many elements behind what
  /// is aligned; what it did is in `data` afterwards.
  llvm::Error run(const LibraryDesc &desc, std::vector<ViewData> &data,
                  int64_t shift = 0) {
    auto op = device.prepare(desc, {});
    if (!op)
      return op.takeError();
    auto workspace = device.allocate((*op)->getWorkspaceBytes());
    if (!workspace)
      return workspace.takeError();
    std::vector<std::unique_ptr<DeviceMemory>> memory;
    std::vector<DeviceAddress> addresses;
    for (ViewData &argument : data) {
      int64_t before = shift * byteSize(argument.view.dtype);
      int64_t bytes = argument.memory.numBytes();
      memory.push_back(llvm::cantFail(device.allocate(before + bytes)));
      addresses.push_back(memory.back()->getAddress() + before);
      llvm::cantFail(
          transfer.upload(argument.memory.data(), addresses.back(), bytes));
    }
    llvm::Error failed =
        stream->execute(**op, addresses.data(), (*workspace)->getAddress());
    for (size_t i = 0; !failed && i < data.size(); ++i)
      failed = transfer.download(addresses[i], data[i].memory.mutableData(),
                                 data[i].memory.numBytes());
    // What is not done yet uses the memory.
    llvm::consumeError(stream->synchronize());
    return failed;
  }
  /// The scratch memory that is known before, of which what is prepared asks
  /// for no more.
  int64_t findWorkspace(const LibraryDesc &desc) {
    int64_t known = llvm::cantFail(device.findWorkspace(desc));
    EXPECT_GE(known,
              llvm::cantFail(device.prepare(desc, {}))->getWorkspaceBytes());
    return known;
  }
  /// What preparing it says.
  ErrorDescription refusal(const LibraryDesc &desc) {
    return describeError(device.prepare(desc, {}).takeError());
  }

  std::vector<std::unique_ptr<Device>> devices;
  Device &device;
  std::unique_ptr<Stream> stream;
  HostTransfer transfer;
};

inline MatmulDesc makeProduct(DType dtype, std::vector<int64_t> batch,
                              int64_t m, int64_t k, int64_t n) {
  auto dense = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    return TensorDesc::dense(dtype, sizes);
  };
  MatmulDesc desc;
  desc.a = dense(m, k);
  desc.b = dense(k, n);
  desc.c = dense(m, n);
  return desc;
}

} // namespace ax::rt

#endif // AX_TEST_PRODUCTRUNNER_H
