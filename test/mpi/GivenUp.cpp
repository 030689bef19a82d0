//===- GivenUp.cpp - Messages that nobody waits for any more --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommunicatorSuite.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ax::rt {
namespace {

// Of a message that has begun to come the rest would be written to memory that
// is somebody else's by then.
TEST_P(CommunicatorSuite, WhatIsGivenUpIsNotWritten) {
  run(2, [](Communicator &comm) {
    constexpr int64_t bytes = 8 << 20;
    std::vector<char> memory(bytes, 1);
    void *at = memory.data();
    char small = 0;
    void *toSmall = &small;
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    llvm::cantFail(comm.barrier(*group));
    if (comm.getRank() == 1) {
      auto large = llvm::cantFail(comm.prepareSend(0, 1, bytes, "large"));
      auto begun = llvm::cantFail(comm.prepareSend(0, 2, 1, "begun"));
      llvm::cantFail(large->start(at, {}));
      llvm::cantFail(begun->run(toSmall, {}));
      llvm::cantFail(large->wait());
    } else {
      auto large = llvm::cantFail(comm.prepareReceive(1, 1, bytes, "large"));
      auto begun = llvm::cantFail(comm.prepareReceive(1, 2, 1, "begun"));
      llvm::cantFail(begun->run({}, toSmall));
      llvm::cantFail(large->start({}, at));
      large.reset();
      std::fill(memory.begin(), memory.end(), 7);
    }
    llvm::cantFail(comm.barrier(*group));
    EXPECT_TRUE(comm.getRank() == 1 ||
                llvm::all_of(memory, [](char byte) { return byte == 7; }));
  });
}

} // namespace
} // namespace ax::rt
