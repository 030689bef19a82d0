//===- LocalCommunicatorTest.cpp - Ranks that are threads -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommunicatorSuite.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

class LocalBackend : public CommunicatorBackend {
public:
  const char *getName() const override { return "Local"; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const std::function<void(Communicator &)> &body) override {
    CommunicatorOptions options;
    options.timeout = timeout;
    auto communicators = createLocalCommunicators(numRanks, options);
    std::vector<std::thread> threads;
    for (auto &communicator : communicators)
      threads.emplace_back([&] { body(*communicator); });
    for (std::thread &thread : threads)
      thread.join();
  }
};

LocalBackend localBackend;

INSTANTIATE_TEST_SUITE_P(
    Local, CommunicatorSuite,
    ::testing::Values(static_cast<CommunicatorBackend *>(&localBackend)),
    [](const auto &info) { return info.param->getName(); });

// Ranks that prepare different things are told, not left hanging.
TEST(LocalCommunicatorTest, RanksThatDisagreeAreToldApart) {
  auto communicators = createLocalCommunicators(2);
  CollectiveSpec spec;
  spec.shape = {4};
  std::shared_ptr<Group> groups[2];
  for (int i = 0; i < 2; ++i)
    groups[i] = llvm::cantFail(communicators[i]->createGroup({0, 1}));
  auto first = communicators[0]->prepare({spec}, groups[0], "sum of x");
  ASSERT_TRUE(bool(first));
  spec.shape = {5};
  auto second = communicators[1]->prepare({spec}, groups[1], "sum of y");
  ASSERT_FALSE(bool(second));
  std::string message = describeError(second.takeError()).message;
  for (const char *part : {"ranks disagree: '", "sum of x", "sum of y"})
    EXPECT_NE(message.find(part), std::string::npos) << message;

  auto send = communicators[0]->prepareSend(1, 0, 8, "m");
  ASSERT_TRUE(bool(send));
  auto receive = communicators[1]->prepareReceive(0, 0, 16, "m");
  ASSERT_FALSE(bool(receive));
  EXPECT_NE(
      describeError(receive.takeError())
          .message.find("ranks disagree: messages 0 from rank 0 to rank 1 "
                        "have 16 bytes here, 8 elsewhere"),
      std::string::npos);
}

// Ranks elsewhere are for another communicator.
TEST(LocalCommunicatorTest, AllRanksAreOfThisProcess) {
  CreateCommunicators create =
      llvm::cantFail(allBackends().communicators.find("local"));
  CommunicatorOptions options;
  options.ranks = {0, 1};
  EXPECT_EQ(llvm::cantFail(create(2, options)).size(), 2u);
  auto some = create(3, options);
  ASSERT_FALSE(bool(some));
  ErrorDescription error = describeError(some.takeError());
  EXPECT_EQ(error.code, ExitCode::Usage);
  EXPECT_NE(error.message.find("communicator 'local' is for ranks of one "
                               "process, which has 2 of 3"),
            std::string::npos)
      << error.message;
}

} // namespace
