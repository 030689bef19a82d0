//===- CommunicatorFailures.cpp - What every communicator must refuse -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommunicatorSuite.h"

#include "ax/Support/Error.h"

namespace ax::rt {
namespace {

TEST_P(CommunicatorSuite, AMissingRankIsATimeout) {
  GetParam()->run(3, std::chrono::milliseconds(100), [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    std::unique_ptr<Operation> operation =
        prepare(comm, group, allReduce(DType::F32, {4}));
    if (comm.getRank() == 1)
      return;
    float source[4] = {}, result[4];
    ErrorDescription text = describeError(operation->run(source, result));
    EXPECT_EQ(text.code, ExitCode::RunFailed);
    for (const char *part :
         {"all_reduce 4 f32", "'op'", "waited 100 ms for rank 1"})
      EXPECT_NE(text.message.find(part), std::string::npos) << text.message;
  });
}

// Who joins waits for nobody, or no longer than for an operation.
TEST_P(CommunicatorSuite, AMemberThatDoesNotComeIsATimeout) {
  GetParam()->run(3, std::chrono::milliseconds(100), [](Communicator &comm) {
    if (comm.getRank() == 1)
      return;
    auto group = comm.createGroup(allRanks(comm));
    llvm::Error error =
        group ? comm.barrier(**group) : llvm::Error(group.takeError());
    ErrorDescription text = describeError(std::move(error));
    EXPECT_EQ(text.code, ExitCode::RunFailed);
    // Another one may be late as well.
    EXPECT_NE(text.message.find("waited 100 ms for rank"), std::string::npos)
        << text.message;
  });
}

TEST_P(CommunicatorSuite, AbortEndsEveryWait) {
  run(3, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    std::unique_ptr<Operation> operation =
        prepare(comm, group, allReduce(DType::F32, {4}));
    EXPECT_EQ(comm.getAbortReason(), "");
    llvm::cantFail(comm.barrier(*group));
    // Others may be in the barrier when this one has left it.
    char left = 0;
    void *to = &left;
    if (comm.getRank() == 1) {
      for (int32_t peer : {0, 2})
        llvm::cantFail(llvm::cantFail(comm.prepareReceive(peer, 1, 1, "left"))
                           ->run({}, to));
      comm.abort("rank 1 found NaN in 'x'");
      return;
    }
    llvm::cantFail(
        llvm::cantFail(comm.prepareSend(1, 1, 1, "left"))->run(to, {}));
    float source[4] = {}, result[4];
    ErrorDescription text = describeError(
        comm.getRank() == 0 ? operation->run(source, result)
                            : llvm::cantFail(comm.prepareReceive(1, 0, 4, "r"))
                                  ->run(nullptr, result));
    EXPECT_EQ(text.code, ExitCode::RunFailed);
    for (const char *part : {": stopped in ", "rank 1 found NaN"})
      EXPECT_NE(text.message.find(part), std::string::npos) << text.message;
    EXPECT_EQ(comm.getAbortReason(), "rank 1 found NaN in 'x'");
  });
}

TEST_P(CommunicatorSuite, ImpossibleRequestsAreErrors) {
  run(2, [](Communicator &comm) {
    auto fails = [](auto result, const char *text = "'op'") {
      if (result)
        return false;
      ErrorDescription error = describeError(result.takeError());
      return error.code == ExitCode::RunFailed &&
             error.message.find(text) != std::string::npos;
    };
    const char *impossible = ": impossible group";
    EXPECT_TRUE(fails(comm.createGroup({0, 1, 2}), impossible));
    EXPECT_TRUE(fails(comm.createGroup({0, 0, 1}), impossible));
    EXPECT_TRUE(fails(comm.createGroup({1 - comm.getRank()}), impossible));
    EXPECT_TRUE(
        fails(comm.prepareSend(2, 0, 8, "m"), "'m': no messages with rank 2"));
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    CollectiveSpec spec = allReduce(DType::Bool, {2});
    EXPECT_TRUE(fails(comm.prepare({spec}, group, "op")));
    EXPECT_TRUE(fails(comm.prepare({}, group, "op")));
    EXPECT_TRUE(fails(
        comm.prepare({allReduce(DType::F32, {2}), allReduce(DType::F64, {2})},
                     group, "op"),
        "its tensors are not of one kind"));
    spec = allReduce(DType::F32, {2, -1});
    EXPECT_TRUE(fails(comm.prepare({spec}, group, "op")));
    spec.kind = CollectiveKind::AllGather;
    spec.shape = {2};
    EXPECT_TRUE(fails(comm.prepare({spec}, group, "op")));
    spec.gatherDim = 0;
    spec.gatherSize = 5;
    EXPECT_TRUE(fails(comm.prepare({spec}, group, "op")));
  });
}

} // namespace
} // namespace ax::rt
