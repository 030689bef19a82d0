//===- StagedCommunicatorTest.cpp - Ranks of cards, by way of the host ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators that know no card, on memory of two: each operation is between
// a download and an upload (RankOperation).
//
//===----------------------------------------------------------------------===//

#include "CommunicatorSuite.h"
#include "Jobs.h"
#include "TestSimgpu.h"
#include "UploadedRanks.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Runtime/TcpMesh.h"

#include "gmock/gmock.h"

#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

using Body = std::function<void(Communicator &)>;

/// Ranks have the two cards in turns. What those of one card could do there,
/// sums but for, communicator `local` does.
class StagedBackend : public CommunicatorBackend {
public:
  StagedBackend(const char *name, const char *order)
      : name(name), order(order) {}
  const char *getName() const override { return name; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const Body &body) override {
    startSimgpu({{"CARDS", "2"}, {"ORDER", order}});
    std::vector<int32_t> cards;
    for (int32_t rank = 0; rank < numRanks; ++rank)
      cards.push_back(rank % 2);
    auto devices =
        llvm::cantFail(llvm::cantFail(allBackends().devices.find("cuda"))
                           .create(cards, DeviceOptions()));
    CommunicatorOptions options;
    options.timeout = timeout;
    runRanks(devices, options, [&](Communicator &communicator, size_t rank) {
      devices[rank]->attachThread();
      DeviceCommunicator staged(
          communicator, *devices[rank],
          [](const CollectiveSpecs &, size_t) {
            return std::shared_ptr<const Kernel>();
          },
          Rest::Staged);
      body(staged);
    });
    EXPECT_EQ(simgpuReported(), "");
  }

protected:
  using Devices = std::vector<std::unique_ptr<Device>>;
  virtual void
  runRanks(const Devices &devices, CommunicatorOptions &options,
           const std::function<void(Communicator &, size_t)> &run) = 0;

private:
  const char *name, *order;
};

class LocalBackend : public StagedBackend {
  using StagedBackend::StagedBackend;
  void
  runRanks(const Devices &devices, CommunicatorOptions &options,
           const std::function<void(Communicator &, size_t)> &run) override {
    for (const std::unique_ptr<Device> &device : devices)
      options.devices.push_back(device.get());
    auto communicators =
        createLocalCommunicators(static_cast<int32_t>(devices.size()), options);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < devices.size(); ++rank)
      threads.emplace_back([&, rank] { run(*communicators[rank], rank); });
    for (std::thread &thread : threads)
      thread.join();
  }
};

/// Each thread stands for a process, with connections of its own.
class TcpBackend : public StagedBackend {
  using StagedBackend::StagedBackend;
  void
  runRanks(const Devices &devices, CommunicatorOptions &options,
           const std::function<void(Communicator &, size_t)> &run) override {
    auto numRanks = static_cast<int32_t>(devices.size());
    auto results = runThreads(numRanks, [&](World &world) -> std::string {
      auto mesh = TcpMesh::connect(world, "127.0.0.1");
      if (!mesh)
        return textOf(mesh.takeError());
      auto made =
          llvm::cantFail((*mesh)->createCommunicator(numRanks, options));
      run(*made, static_cast<size_t>(made->getRank()));
      // Others may still want what is on its way.
      return textOf(world.barrier("end"));
    });
    EXPECT_THAT(results, testing::Each(""));
  }
};

LocalBackend lazyLocal("LazyLocal", "lazy"), local("Local", "random:1");
TcpBackend tcp("Tcp", "random:1");

INSTANTIATE_TEST_SUITE_P(
    Staged, CommunicatorSuite,
    ::testing::Values(static_cast<CommunicatorBackend *>(&lazyLocal), &local,
                      &tcp),
    [](const auto &info) { return info.param->getName(); });

// Nothing between two cards is done on their streams.
TEST(StagedCommunicatorTest, TheHostDoesAll) {
  for (StagedBackend *backend :
       std::initializer_list<StagedBackend *>{&local, &tcp})
    backend->run(2, std::chrono::seconds(60), [&](Communicator &communicator) {
      auto &staged = static_cast<DeviceCommunicator &>(communicator);
      auto group = makeGroup(communicator, allRanks(communicator));
      CollectiveSpec spec;
      spec.kind = CollectiveKind::AllGather;
      spec.shape = {4};
      spec.gatherDim = 0;
      spec.gatherSize = 8;
      prepare(communicator, group, spec);
      EXPECT_EQ(staged.getNumOnHost(), 1) << backend->getName();
      int32_t other = 1 - communicator.getRank();
      auto send = communicator.prepareSend(other, 0, 8, "m");
      auto receive = communicator.prepareReceive(other, 0, 8, "m");
      EXPECT_TRUE(bool(send) && bool(receive));
      EXPECT_EQ(staged.getNumOnHost(), 3) << backend->getName();
    });
}

} // namespace
