//===- TcpCommunicatorTest.cpp - Ranks that exchange by connections -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../NoThreads.h"
#include "CommunicatorSuite.h"
#include "Jobs.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/TcpMesh.h"
#include "ax/Support/Error.h"

#include "gmock/gmock.h"

#include <optional>
#include <thread>

namespace ax::rt {
namespace {

using testing::Each;

/// Each thread stands for a process, with connections of its own.
class TcpBackend : public CommunicatorBackend {
public:
  const char *getName() const override { return "Tcp"; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const std::function<void(Communicator &)> &body) override {
    auto results = runThreads(numRanks, [&](World &world) -> std::string {
      auto mesh = TcpMesh::connect(world, "127.0.0.1");
      if (!mesh)
        return textOf(mesh.takeError());
      CommunicatorOptions options;
      options.timeout = timeout;
      body(*llvm::cantFail((*mesh)->createCommunicator(numRanks, options)));
      // Others may still want what is on its way.
      return textOf(world.barrier("end"));
    });
    EXPECT_THAT(results, Each(""));
  }
};

TcpBackend tcpBackend;

INSTANTIATE_TEST_SUITE_P(
    Tcp, CommunicatorSuite,
    ::testing::Values(static_cast<CommunicatorBackend *>(&tcpBackend)),
    [](const auto &info) { return info.param->getName(); });

TEST(TcpMeshTest, RanksAreAmongTheProcesses) {
  auto results = runThreads(2, [](World &world) -> std::string {
    auto mesh = llvm::cantFail(TcpMesh::connect(world, "127.0.0.1"));
    return textOf(mesh->createCommunicator(3, {}).takeError());
  });
  EXPECT_EQ(results[1], "process 1 of 2 cannot be one of 3 ranks; start one "
                        "process for each rank");
}

TEST(TcpMeshTest, SomeProcessesMayHaveACommunicator) {
  auto results = runThreads(3, [](World &world) -> std::string {
    auto mesh = llvm::cantFail(TcpMesh::connect(world, "127.0.0.1"));
    for (int32_t numRanks : {2, 3, 1, 3}) {
      if (world.getPlace().process >= numRanks)
        continue;
      auto comm = llvm::cantFail(mesh->createCommunicator(numRanks, {}));
      llvm::cantFail(comm->barrier(*makeGroup(*comm, allRanks(*comm))));
    }
    return textOf(world.barrier("end"));
  });
  EXPECT_THAT(results, Each(""));
}

// Why a process is gone the World says; where it does not, this does.
TEST(TcpMeshTest, WhoIsGoneIsToldAWhileLater) {
  auto results = runThreads(2, [](World &world) -> std::string {
    auto mesh = llvm::cantFail(TcpMesh::connect(world, "127.0.0.1"));
    auto comm = llvm::cantFail(mesh->createCommunicator(2, {}));
    if (world.getPlace().process == 1) {
      comm.reset();
      mesh.reset();
      return textOf(world.barrier("end"));
    }
    auto begin = std::chrono::steady_clock::now();
    auto receive = llvm::cantFail(comm->prepareReceive(1, 7, 4, "m"));
    float value;
    std::string text = textOf(receive->run(nullptr, &value));
    EXPECT_GT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(1));
    llvm::cantFail(world.barrier("end"));
    return text;
  });
  EXPECT_EQ(results[0], "rank 0: receive 'm': TCP: the connection to process 1 "
                        "on host 'host1' is lost");
}

TEST(TcpMeshTest, WhoIsStoppedTellsNobody) {
  auto results = runThreads(2, [](World &world) -> std::string {
    auto mesh = llvm::cantFail(TcpMesh::connect(world, "127.0.0.1"));
    CommunicatorOptions options;
    options.timeout = std::chrono::milliseconds(500);
    auto comm = llvm::cantFail(mesh->createCommunicator(2, options));
    if (world.getPlace().process == 1)
      comm->stop("enough");
    auto receive =
        llvm::cantFail(comm->prepareReceive(1 - comm->getRank(), 7, 4, "m"));
    float value;
    std::string text = textOf(receive->run(nullptr, &value));
    llvm::cantFail(world.barrier("end"));
    return text + "; " + comm->getAbortReason();
  });
  EXPECT_EQ(results[0], "rank 0: receive 'm': waited 500 ms for rank 1; ");
  EXPECT_EQ(results[1], "rank 1: stopped in receive 'm': enough; enough");
}

// What goes on while the program computes needs a thread from the second time.
TEST(TcpMeshTest, WhoHasNoThreadIsToldOfIt) {
  std::optional<NoThreads> here;
  auto results = runThreads(2, [&](World &world) -> std::string {
    auto mesh = llvm::cantFail(TcpMesh::connect(world, "127.0.0.1"));
    auto comm = llvm::cantFail(mesh->createCommunicator(2, {}));
    std::vector<float> source(16 << 10), result(16 << 10);
    void *to = result.data();
    const void *from = source.data();
    auto sum = prepare(*comm, makeGroup(*comm, allRanks(*comm)),
                       allReduce(DType::F32, {16 << 10}));
    llvm::cantFail(sum->start(from, to));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    llvm::cantFail(sum->wait());
    llvm::cantFail(world.barrier("first"));
    if (world.isFirst())
      here.emplace();
    llvm::cantFail(world.barrier("no threads"));
    std::string text = textOf(sum->start(from, to));
    llvm::cantFail(world.barrier("second"));
    if (world.isFirst())
      here.reset();
    llvm::cantFail(world.barrier("end"));
    return text;
  });
  for (int rank : {0, 1})
    EXPECT_THAT(results[static_cast<size_t>(rank)],
                testing::StartsWith("no thread for what rank " +
                                    std::to_string(rank) +
                                    " exchanges while it computes: "));
}

TEST(TcpMeshTest, MessagesOfOtherSizesAreErrors) {
  for (bool early : {false, true}) {
    auto results = runThreads(2, [&](World &world) -> std::string {
      auto mesh = llvm::cantFail(TcpMesh::connect(world, "127.0.0.1"));
      auto comm = llvm::cantFail(mesh->createCommunicator(2, {}));
      std::vector<char> bytes(10);
      std::string text;
      if (world.getPlace().process == 0) {
        llvm::cantFail(world.barrier("posted"));
        auto send = llvm::cantFail(comm->prepareSend(1, 7, 10, "m"));
        llvm::cantFail(send->run(bytes.data(), nullptr));
        llvm::cantFail(world.barrier("sent"));
      } else {
        auto receive = llvm::cantFail(comm->prepareReceive(0, 7, 9, "m"));
        void *to = bytes.data();
        if (!early)
          llvm::cantFail(receive->start({}, to));
        llvm::cantFail(world.barrier("posted"));
        llvm::cantFail(world.barrier("sent"));
        if (early)
          llvm::cantFail(receive->start({}, to));
        text = textOf(receive->wait());
      }
      llvm::cantFail(world.barrier("end"));
      return text;
    });
    EXPECT_EQ(results[1],
              "rank 1: receive 'm': TCP: a message has another size "
              "than its receiver expects");
  }
}

TEST(TcpMeshTest, IsForProcessesThatTheEnvironmentBringsTogether) {
  CreateCommunicators create =
      llvm::cantFail(allBackends().communicators.find("tcp"));
  auto made = create(2, {});
  ASSERT_FALSE(bool(made));
  ErrorDescription text = describeError(made.takeError());
  EXPECT_EQ(text.code, ExitCode::Usage);
  EXPECT_EQ(text.message,
            "communicator 'tcp' is for processes that find each other by their "
            "environment: torchrun --nproc-per-node=RANKS --no-python -- axrun "
            "..., or srun axrun ...");
}

} // namespace
} // namespace ax::rt
