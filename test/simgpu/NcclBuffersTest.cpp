//===- NcclBuffersTest.cpp - Memory that communicators know ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclRanks.h"

using namespace ax;
using namespace ax::rt;

namespace {

constexpr int64_t largeBytes = int64_t(16) << 20;

std::vector<uint64_t> counted() {
  std::vector<uint64_t> counts;
  for (const char *call : {"ncclMemAlloc", "ncclCommRegister",
                           "ncclCommDeregister", "ncclMemFree"})
    counts.push_back(simgpuCounted(call));
  return counts;
}

using Counts = std::vector<uint64_t>;

// Those that were there before, one that is split, and one that is joined
// behind it: three, four and three of three ranks.
TEST(NcclBuffersTest, AllCommunicatorsKnowMemory) {
  NcclRanks ranks(3, {});
  ranks.run([&](Communicator &communicator, Device &device) {
    int32_t me = communicator.getRank();
    auto world = makeGroup(communicator, allRanks(communicator));
    llvm::cantFail(communicator.announceGroups({{0, 1}}));
    auto memory = llvm::cantFail(communicator.allocate(device, largeBytes));
    llvm::cantFail(communicator.barrier(*world));
    EXPECT_EQ(counted(), (Counts{3, 2 + 2 + 1, 0, 0}));
    llvm::cantFail(communicator.barrier(*world));
    std::shared_ptr<Group> joined;
    if (me > 0)
      joined = makeGroup(communicator, {1, 2});
    llvm::cantFail(communicator.barrier(*world));
    EXPECT_EQ(counted(), (Counts{3, 7, 0, 0}));

    // It is memory as any other.
    auto stream = llvm::cantFail(device.createStream());
    CollectiveSpec spec = allReduce(DType::F32, {1}, sharding::ReduceKind::Sum);
    auto operation = llvm::cantFail(
        communicator.prepareOnStream({spec}, world, "sum", nullptr));
    HostTransfer transfer(device, *stream, 1 << 16);
    float value = static_cast<float>(1 << me), sum = 0;
    DeviceAddress from = memory->getAddress(), to = from + 64;
    llvm::cantFail(transfer.upload(&value, from, sizeof(value)));
    llvm::cantFail(operation->start(*stream, {from, to}));
    llvm::cantFail(operation->finish(*stream));
    llvm::cantFail(transfer.download(to, &sum, sizeof(sum)));
    EXPECT_EQ(sum, 7);
    llvm::cantFail(stream->synchronize());
    memory.reset();
    llvm::cantFail(communicator.barrier(*world));
    EXPECT_EQ(counted(), (Counts{3, 7, 7, 3}));
  });
  EXPECT_EQ(simgpuReported(), "");
}

TEST(NcclBuffersTest, LittleMemoryIsTheDevices) {
  NcclRanks ranks(2, {});
  ranks.run([&](Communicator &communicator, Device &device) {
    EXPECT_EQ(llvm::cantFail(communicator.allocate(device, 1 << 20))->getSize(),
              1 << 20);
  });
  EXPECT_EQ(counted(), Counts(4));
}

TEST(NcclBuffersTest, OneRankHasTheDevices) {
  NcclRanks ranks(1, {});
  ranks.run([&](Communicator &communicator, Device &device) {
    llvm::cantFail(communicator.allocate(device, largeBytes));
  });
  EXPECT_EQ(counted(), Counts(4));
}

TEST(NcclBuffersTest, WhereNcclGivesNoneTheDeviceDoes) {
  NcclRanks ranks(2, {{"FAIL", "ncclMemAlloc:1:1"}});
  ranks.run([&](Communicator &communicator, Device &device) {
    EXPECT_EQ(
        llvm::cantFail(communicator.allocate(device, largeBytes))->getSize(),
        largeBytes);
  });
  EXPECT_EQ(counted(), (Counts{2, 1, 1, 1}));
}

// What is not known is copied.
TEST(NcclBuffersTest, MemoryThatIsNotKnownIsOfUse) {
  NcclRanks ranks(2, {{"FAIL", "ncclCommRegister:1:1"}});
  ranks.run([&](Communicator &communicator, Device &device) {
    llvm::cantFail(communicator.allocate(device, largeBytes));
  });
  EXPECT_EQ(counted(), (Counts{2, 2, 1, 2}));
}

// Communicators that were aborted have forgotten what they knew.
TEST(NcclBuffersTest, MemoryOutlivesAnAbort) {
  {
    NcclRanks ranks(2, {});
    ranks.run([&](Communicator &communicator, Device &device) {
      auto world = makeGroup(communicator, allRanks(communicator));
      auto memory = llvm::cantFail(communicator.allocate(device, largeBytes));
      llvm::cantFail(communicator.barrier(*world));
      communicator.abort("enough");
      memory.reset();
    });
  }
  EXPECT_EQ(simgpuCounted("ncclMemFree"), 2u);
  EXPECT_EQ(simgpuReported(), "");
}

} // namespace
