//===- NcclSplitsTest.cpp - Groups that are split from all ranks ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclSplits.h"
#include "NcclRanks.h"

#include "ax/Support/Error.h"

using namespace ax;
using namespace ax::rt;
using namespace ax::rt::nccl;

namespace {

using Groups = std::vector<std::vector<int32_t>>;

NcclBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    shuffled("Random", "random:1");

TEST(NcclSplitsTest, GroupsWithoutCommonRanksAreOneSplit) {
  EXPECT_EQ(findSplits(Groups{{0, 1}, {2, 3}, {0, 2}, {1, 3}}, 4),
            (std::vector<Groups>{{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}}));
  // Those of another stage fill up the first.
  EXPECT_EQ(findSplits(Groups{{0, 1}, {0, 2}, {2, 3}}, 4),
            (std::vector<Groups>{{{0, 1}, {2, 3}}, {{0, 2}}}));
}

TEST(NcclSplitsTest, WhatIsThereNeedsNone) {
  EXPECT_TRUE(findSplits(Groups{{0}, {1}, {0, 1, 2}}, 3).empty());
  EXPECT_EQ(findSplits(Groups{{1, 0}, {1, 0}}, 2),
            (std::vector<Groups>{{{1, 0}}}));
}

/// What an all-gather of their numbers gives the ranks of a group.
std::vector<int32_t> gathered(Communicator &communicator,
                              const std::vector<int32_t> &ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllGather;
  spec.dtype = DType::I32;
  spec.shape = {1};
  spec.gatherDim = 0;
  spec.gatherSize = static_cast<int64_t>(ranks.size());
  auto operation = prepare(communicator, makeGroup(communicator, ranks), spec);
  int32_t mine = communicator.getRank();
  std::vector<int32_t> all(ranks.size());
  llvm::cantFail(operation->run(&mine, all.data()));
  return all;
}

// Rows and columns of a mesh, all ranks backwards, and some that others are not
// in: each in its own order, and none made in another way.
TEST(NcclSplitsTest, AnnouncedGroupsAreSplit) {
  const Groups groups = {{0, 1},       {3, 2}, {0, 2},       {1, 3},
                         {3, 2, 1, 0}, {0, 3}, {0, 1, 2, 3}, {1}};
  for (NcclBackend *backend : {&eager, &lazy, &shuffled})
    backend->run(4, std::chrono::seconds(60), [&](Communicator &communicator) {
      llvm::cantFail(communicator.announceGroups(groups));
      auto world = makeGroup(communicator, allRanks(communicator));
      llvm::cantFail(communicator.barrier(*world));
      uint64_t made = simgpuCounted("ncclCommInitRankConfig");
      // Rows, columns, backwards, and the one pair.
      EXPECT_EQ(simgpuCounted("ncclCommSplit"), 4u * 4u);
      llvm::cantFail(communicator.barrier(*world));
      for (const std::vector<int32_t> &ranks : groups)
        if (ranks.size() > 1 &&
            llvm::is_contained(ranks, communicator.getRank()))
          EXPECT_EQ(gathered(communicator, ranks), ranks);
      llvm::cantFail(communicator.barrier(*world));
      EXPECT_EQ(simgpuCounted("ncclCommInitRankConfig"), made);
    });
}

/// What ranks end with that announce a group, of which the last one may not
/// come, and then stop all.
std::vector<std::string>
announce(const std::map<std::string, std::string> &settings, bool comes) {
  std::vector<std::string> messages(3);
  NcclRanks ranks(3, settings, std::chrono::milliseconds(500));
  ranks.run([&](Communicator &communicator, Device &) {
    if (!comes && communicator.getRank() == 2)
      return;
    llvm::Error error = communicator.announceGroups(Groups{{0, 1}});
    std::string &message =
        messages[static_cast<size_t>(communicator.getRank())];
    message = llvm::toString(std::move(error));
    if (!message.empty())
      communicator.abort(message);
  });
  return messages;
}

TEST(NcclSplitsTest, WhoDoesNotComeIsWaitedForBefore) {
  auto messages = announce({}, /*comes=*/false);
  EXPECT_NE(messages[0].find(": barrier: waited 500 ms for rank 2"),
            std::string::npos)
      << messages[0];
  EXPECT_EQ(simgpuCounted("ncclCommSplit"), 0u);
}

TEST(NcclSplitsTest, SplitsThatFailNameTheRank) {
  auto messages = announce({{"FAIL", "ncclCommSplit:1:2"}}, /*comes=*/true);
  std::string all = messages[0] + messages[1] + messages[2];
  EXPECT_NE(all.find("ncclCommSplit: unhandled system error (2)"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find(", card "), std::string::npos) << all;
  // The others are ended inside, and told why.
  EXPECT_NE(all.find(": stopped in a split of NCCL's communicator: rank "),
            std::string::npos)
      << all;
}

} // namespace
