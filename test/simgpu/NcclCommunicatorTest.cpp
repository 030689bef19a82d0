//===- NcclCommunicatorTest.cpp - Ranks with a card each ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicator `nccl` on the simulated driver and NCCL, which do their work in
// any order that they may, and of each card one exchange at a time.
//
//===----------------------------------------------------------------------===//

#include "NcclPlan.h"
#include "NcclRanks.h"

using namespace ax;
using namespace ax::rt;

namespace {

NcclBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    random1("Random1", "random:1"), random2("Random2", "random:2"),
    random3("Random3", "random:3");

INSTANTIATE_TEST_SUITE_P(
    Nccl, CommunicatorSuite,
    ::testing::Values(static_cast<CommunicatorBackend *>(&eager), &lazy,
                      &random1, &random2, &random3),
    [](const auto &info) { return info.param->getName(); });

// NCCL has no 16-bit integers: they go by the host.
TEST(NcclCommunicatorTest, OnlyWhatNcclLacksIsOnTheHost) {
  for (DType type : {DType::F16, DType::I8, DType::Bool, DType::U64, DType::I16,
                     DType::U16}) {
    bool isLacking = type == DType::I16 || type == DType::U16;
    eager.run(2, std::chrono::seconds(60), [&](Communicator &communicator) {
      auto group = makeGroup(communicator, allRanks(communicator));
      prepare(communicator, group,
              allReduce(type, {4}, sharding::ReduceKind::Max));
      EXPECT_EQ(static_cast<DeviceCommunicator &>(communicator).getNumOnHost(),
                isLacking ? 1 : 0)
          << toString(type);
    });
  }
}

// A group that was made before has the same communicator of NCCL's.
TEST(NcclCommunicatorTest, EqualGroupsShare) {
  eager.run(2, std::chrono::seconds(60), [&](Communicator &communicator) {
    auto first = makeGroup(communicator, {1, 0});
    llvm::cantFail(communicator.barrier(*first));
    uint64_t before = simgpuCounted("ncclCommInitRankConfig");
    llvm::cantFail(communicator.barrier(*first));
    auto second = makeGroup(communicator, {1, 0});
    EXPECT_EQ(simgpuCounted("ncclCommInitRankConfig"), before);
    EXPECT_EQ(second->getIndex(), 1 - communicator.getRank());
  });
}

// From stage to stage, and back.
TEST(NcclCommunicatorTest, MessagesArriveInTheOrderOfSends) {
  for (NcclBackend *backend : {&eager, &lazy, &random1})
    backend->run(3, std::chrono::seconds(60), [&](Communicator &communicator) {
      int32_t me = communicator.getRank();
      int64_t values[2] = {10 * me, 10 * me + 1}, got[2] = {-1, -1};
      for (int32_t step : {1, -1}) {
        int32_t from = me - step, to = me + step;
        if (from >= 0 && from < 3)
          for (int64_t tag : {0, 1}) {
            auto receive =
                llvm::cantFail(communicator.prepareReceive(from, tag, 8, "in"));
            llvm::cantFail(receive->run(nullptr, &got[tag]));
            EXPECT_EQ(got[tag], 10 * from + tag);
          }
        if (to >= 0 && to < 3)
          for (int64_t tag : {0, 1})
            llvm::cantFail(
                llvm::cantFail(communicator.prepareSend(to, tag, 8, "out"))
                    ->run(&values[tag], nullptr));
      }
    });
}

// Parts of an inner dimension that are calls of their own (NcclPlan.h) are
// where copies would have brought them.
TEST(NcclCommunicatorTest, LargeSlicesArriveInTheirPlaces) {
  constexpr int64_t slices = 2, part = nccl::largeSlice / 4 / 2;
  eager.run(2, std::chrono::seconds(60), [](Communicator &communicator) {
    int32_t me = communicator.getRank();
    auto group = makeGroup(communicator, {0, 1});
    auto value = [](int64_t slice, int64_t at) {
      return static_cast<float>((slice * 2 * part + at) % 65521);
    };
    std::vector<float> whole, mine;
    for (int64_t slice = 0; slice < slices; ++slice)
      for (int64_t at = 0; at < 2 * part; ++at) {
        whole.push_back(value(slice, at));
        if (at / part == me)
          mine.push_back(whole.back());
      }
    CollectiveSpec spec;
    spec.kind = CollectiveKind::AllGather;
    spec.shape = {slices, part};
    spec.gatherDim = 1;
    spec.gatherSize = 2 * part;
    std::vector<float> got(whole.size());
    llvm::cantFail(
        prepare(communicator, group, spec)->run(mine.data(), got.data()));
    EXPECT_TRUE(got == whole);
    spec = CollectiveSpec();
    spec.kind = CollectiveKind::ReduceScatter;
    spec.shape = {slices, 2 * part};
    spec.scatterDim = 1;
    spec.scatterPart = part;
    got.resize(mine.size());
    llvm::cantFail(
        prepare(communicator, group, spec)->run(whole.data(), got.data()));
    for (float &each : mine)
      each *= 2;
    EXPECT_TRUE(got == mine);
  });
}

// In the steady state nothing is made, or allocated.
TEST(NcclCommunicatorTest, RunsMakeNothing) {
  NcclRanks ranks(2, {});
  ranks.run([](Communicator &communicator, Device &device) {
    auto group = llvm::cantFail(communicator.createGroup({0, 1}));
    CollectiveSpec spec;
    spec.kind = CollectiveKind::AllGather;
    spec.shape = {4, 3};
    spec.gatherDim = 1;
    spec.gatherSize = 5;
    auto gather = llvm::cantFail(
        communicator.prepareOnStream({spec}, group, "gather", nullptr));
    auto memory = llvm::cantFail(device.allocate(256));
    auto stream = llvm::cantFail(device.createStream());
    auto run = [&] {
      llvm::cantFail(gather->start(
          *stream, {memory->getAddress(), memory->getAddress() + 64}));
      llvm::cantFail(gather->finish(*stream));
      llvm::cantFail(stream->synchronize());
    };
    run();
    llvm::cantFail(communicator.barrier(*group));
    auto count = [] {
      return simgpuCounted("cuMemAlloc") + simgpuCounted("cuEventCreate") +
             simgpuCounted("cuMemHostAlloc") +
             simgpuCounted("cuStreamCreateWithPriority");
    };
    uint64_t before = count();
    llvm::cantFail(communicator.barrier(*group));
    for (int i = 0; i < 10; ++i)
      run();
    llvm::cantFail(communicator.barrier(*group));
    EXPECT_EQ(count(), before);
  });
}

} // namespace
