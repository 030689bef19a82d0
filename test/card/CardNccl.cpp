//===- CardNccl.cpp - NCCL between ranks on cards -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks are threads, with a card each where there are enough. Else all are on
// card 0, which NCCL does from 2.30 on if NCCL_MULTI_RANK_GPU_ENABLE is 1.
//
//===----------------------------------------------------------------------===//

#include "CardTest.h"
#include "CommunicatorSuite.h"
#include "UploadedRanks.h"

#include "ax/Runtime/AllBackends.h"

#include <thread>

using namespace ax;
using namespace ax::rt;

namespace ax::rt {
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorSuite);
} // namespace ax::rt

namespace {

std::vector<std::unique_ptr<Device>> createDevices(int32_t numRanks) {
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  std::vector<int32_t> cards(static_cast<size_t>(numRanks));
  std::iota(cards.begin(), cards.end(), 0);
  if (auto devices = cuda.create(cards, DeviceOptions()))
    return std::move(*devices);
  else
    llvm::consumeError(devices.takeError());
  return llvm::cantFail(
      cuda.create(std::vector<int32_t>(cards.size()), DeviceOptions()));
}

class NcclBackend : public CommunicatorBackend {
public:
  const char *getName() const override { return "Nccl"; }
  bool roundsOnce() const override { return false; }
  bool findsByTag() const override { return false; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const std::function<void(Communicator &)> &body) override {
    auto devices = createDevices(numRanks);
    CommunicatorOptions options;
    options.timeout = timeout;
    for (std::unique_ptr<Device> &device : devices)
      options.devices.push_back(device.get());
    auto make = llvm::cantFail(allBackends().communicators.find("nccl"));
    auto communicators = make(numRanks, options);
    if (!communicators) {
      ADD_FAILURE() << llvm::toString(communicators.takeError());
      return;
    }
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < devices.size(); ++rank)
      threads.emplace_back([&, rank] {
        devices[rank]->attachThread();
        DeviceCommunicator communicator(
            *(*communicators)[rank], *devices[rank],
            [](const CollectiveSpecs &, size_t) {
              return std::shared_ptr<const Kernel>();
            });
        body(communicator);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
};

NcclBackend nccl;

INSTANTIATE_TEST_SUITE_P(
    Card, CommunicatorSuite,
    ::testing::ValuesIn(whyNoCard().empty()
                            ? std::vector<CommunicatorBackend *>{&nccl}
                            : std::vector<CommunicatorBackend *>()),
    [](const auto &info) { return info.param->getName(); });

} // namespace
