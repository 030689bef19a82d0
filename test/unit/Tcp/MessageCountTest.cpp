//===- MessageCountTest.cpp - How much an all-reduce sends ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who carries the messages counts them, and no more.
//
//===----------------------------------------------------------------------===//

#include "CommunicatorSuite.h"

#include "ax/Runtime/MessageCommunicator.h"

namespace ax::rt {
namespace {

struct Count {
  int64_t messages = 0, bytes = 0;
};
Count sent;

AxMessageTable makeTable() {
  AxMessageTable table = {};
  table.name = "none";
  table.getMostTag = [](int32_t *tag) {
    *tag = INT32_MAX;
    return 0;
  };
  table.createGroup = [](void *, const int32_t *, int32_t, AxMessageGroup **) {
    return 0;
  };
  table.createBatch = [](AxMessageGroup *, const AxMessageTransfer *transfers,
                         int32_t count, AxMessageBatch **) {
    for (int32_t i = 0; i < count; ++i)
      if (transfers[i].isSend) {
        ++sent.messages;
        sent.bytes += transfers[i].box.runBytes;
      }
    return 0;
  };
  table.destroyBatch = [](AxMessageBatch *) { return 0; };
  table.listen = [](AxMessageGroup *, char *, int32_t, int32_t *heard) {
    *heard = 0;
    return 0;
  };
  return table;
}

/// What all members send together.
Count countOf(int32_t numRanks, int64_t numElements) {
  AxMessageTable table = makeTable();
  Count all;
  for (int32_t rank = 0; rank < numRanks; ++rank) {
    ProcessPlace place;
    place.process = rank;
    place.numProcesses = numRanks;
    auto comm =
        llvm::cantFail(createMessageCommunicator(table, place, numRanks, {}));
    std::shared_ptr<Group> group = makeGroup(*comm, allRanks(*comm));
    sent = {};
    prepare(*comm, group, allReduce(DType::F32, {numElements}));
    all.messages += sent.messages;
    all.bytes += sent.bytes;
  }
  return all;
}

// One step, in which everybody sends to everybody.
TEST(MessageCountTest, FewMembersExchangeWhatIsSmall) {
  EXPECT_EQ(countOf(4, 4096).messages, 4 * 3);
  EXPECT_EQ(countOf(4, 4096).bytes, 4 * 3 * 16384);
  EXPECT_EQ(countOf(16, 1).messages, 16 * 15);
}

TEST(MessageCountTest, ManyMembersDoNot) {
  // To the one who reduces it, and back.
  EXPECT_EQ(countOf(17, 1).messages, 2 * 16);
  EXPECT_EQ(countOf(100, 1).messages, 2 * 99);
  // Four slices of 1 KiB.
  EXPECT_EQ(countOf(100, 1024).messages, 2 * 4 * 99);
  EXPECT_EQ(countOf(100, 1024).bytes, 2 * 99 * 4096);
  // Of each of 16 it would be 240 KiB.
  EXPECT_EQ(countOf(16, 4096).bytes, 2 * 15 * 16384);
}

TEST(MessageCountTest, LargeOnesAreOfAll) {
  EXPECT_EQ(countOf(8, 100000).messages, 2 * 8 * 7);
}

} // namespace
} // namespace ax::rt
