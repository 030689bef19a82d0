//===- NcclRanks.h - Ranks of communicator nccl, as threads -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_NCCLRANKS_H
#define AX_TEST_NCCLRANKS_H

#include "CommunicatorSuite.h"
#include "TestSimgpu.h"
#include "UploadedRanks.h"

#include "ax/Runtime/AllBackends.h"

#include <numeric>
#include <thread>

namespace ax::rt {

/// Each has a simulated card of its own.
class NcclRanks {
public:
  NcclRanks(int32_t numRanks, std::map<std::string, std::string> settings,
            std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    settings.emplace("CARDS", std::to_string(numRanks));
    // A test machine may be slow, and communicators find deadlocks themselves.
    settings.emplace("PATIENCE", "20000");
    startSimgpu(settings);
    std::vector<int32_t> cards(static_cast<size_t>(numRanks));
    std::iota(cards.begin(), cards.end(), 0);
    devices = llvm::cantFail(llvm::cantFail(allBackends().devices.find("cuda"))
                                 .create(cards, DeviceOptions()));
    CommunicatorOptions options;
    options.timeout = timeout;
    for (std::unique_ptr<Device> &device : devices)
      options.devices.push_back(device.get());
    communicators = llvm::cantFail(llvm::cantFail(
        allBackends().communicators.find("nccl"))(numRanks, options));
  }

  /// Runs `body` as every rank, on memory of its device.
  void run(const std::function<void(Communicator &, Device &)> &body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < communicators.size(); ++rank)
      threads.emplace_back([&, rank] {
        devices[rank]->attachThread();
        body(*communicators[rank], *devices[rank]);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Communicator>> communicators;
};

class NcclBackend : public CommunicatorBackend {
public:
  NcclBackend(const char *name, const char *order) : name(name), order(order) {}
  const char *getName() const override { return name; }
  bool roundsOnce() const override { return false; }
  bool findsByTag() const override { return false; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const std::function<void(Communicator &)> &body) override {
    {
      NcclRanks ranks(numRanks, {{"ORDER", order}}, timeout);
      ranks.run([&](Communicator &communicator, Device &device) {
        DeviceCommunicator adapted(communicator, device,
                                   [](const CollectiveSpecs &, size_t) {
                                     return std::shared_ptr<const Kernel>();
                                   });
        body(adapted);
      });
    }
    EXPECT_EQ(simgpuReported(), "");
  }

private:
  const char *name, *order;
};

} // namespace ax::rt

#endif // AX_TEST_NCCLRANKS_H
