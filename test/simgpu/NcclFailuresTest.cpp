//===- NcclFailuresTest.cpp - What goes wrong with NCCL -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../unit/NoThreads.h"
#include "NcclRanks.h"

#include <cstdlib>
#include <iostream>
#include <unistd.h>

using namespace ax;
using namespace ax::rt;

namespace {

/// The message of what making communicators ends with; empty: well.
std::string failToMake(const std::string &device,
                       const std::vector<int32_t> &cards,
                       const std::map<std::string, std::string> &settings,
                       const std::string &path = driverFolder(),
                       ExitCode code = ExitCode::Usage) {
  startSimgpu(settings);
  auto devices =
      llvm::cantFail(llvm::cantFail(allBackends().devices.find(device))
                         .create(cards, DeviceOptions()));
  CommunicatorOptions options;
  for (std::unique_ptr<Device> &made : devices)
    options.devices.push_back(made.get());
  // The driver is there by now.
  setenv("AXRUN_CUDA_PATH", path.c_str(), 1);
  auto made = llvm::cantFail(allBackends().communicators.find("nccl"))(
      static_cast<int32_t>(cards.size()), options);
  if (made)
    return "";
  ErrorDescription error = describeError(made.takeError());
  EXPECT_EQ(error.code, code) << error.message;
  return error.message;
}

TEST(NcclFailuresTest, OtherDevicesAreRefused) {
  EXPECT_EQ(failToMake("cpu", {0, 0}, {}),
            "--comm=nccl is for --device=cuda, not for 'cpu': leave it out");
}

TEST(NcclFailuresTest, EachRankNeedsACard) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  EXPECT_EQ(failToMake("cuda", {0, 1, 1}, {{"CARDS", "2"}}),
            "--comm=nccl: ranks 1 and 2 are both on card 1 of host '" +
                std::string(host) +
                "', and NCCL wants a card for each: give other --devices, or "
                "leave --comm out");
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  EXPECT_EQ(failToMake("cuda", {0, 1, 1}, {{"CARDS", "2"}}), "");
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
}

TEST(NcclFailuresTest, OldOnesAreRefused) {
  EXPECT_EQ(failToMake("cuda", {0}, {{"NCCL_VERSION", "21803"}}),
            "--comm=nccl: the NCCL that is there is 2.18.3, and this needs "
            "2.28.0: install a newer one, or name its folder in "
            "AXRUN_CUDA_PATH");
}

/// Tells what ranks are refused for where the folder has no NCCL.
[[noreturn]] void refuseWithoutNccl() {
  std::cerr << failToMake("cuda", {0}, {}, "/there/is/none");
  std::exit(0);
}

TEST(NcclFailuresTest, SaysWhereItLookedForNccl) {
  // In a process of its own: what another test has loaded is found by its name.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // On a machine that has one, nothing is refused.
  EXPECT_EXIT(refuseWithoutNccl(), testing::ExitedWithCode(0),
              "^--comm=nccl: there is no NCCL in the folders of "
              "AXRUN_CUDA_PATH, or where the system has libraries: "
              "/there/is/none/libnccl.so.2: |^$");
}

TEST(NcclFailuresTest, SettingsThatDoNotGoAreRefused) {
  for (auto [variable, value] : {std::pair("NCCL_COMM_BLOCKING", "0"),
                                 std::pair("NCCL_LAUNCH_MODE", "GROUP")}) {
    setenv(variable, value, 1);
    EXPECT_EQ(failToMake("cuda", {0}, {}),
              "--comm=nccl does not work with " + std::string(variable) + "=" +
                  value + " in the environment: unset it");
    unsetenv(variable);
  }
}

TEST(NcclFailuresTest, PoorOnesAreRefused) {
  std::string message =
      failToMake("cuda", {0}, {}, driverFolder("poor-simgpu"));
  EXPECT_EQ(message, "--comm=nccl: the NCCL that is there has no function "
                     "ncclAllGather");
}

TEST(NcclFailuresTest, WhatWatchesNeedsAThread) {
  NoThreads here;
  EXPECT_EQ(
      failToMake("cuda", {0}, {}, driverFolder(), ExitCode::RunFailed),
      "no thread for what watches over NCCL: Resource temporarily unavailable: "
      "allow more threads (ulimit -u, pids.max of the container) or memory "
      "(ulimit -v)");
}

/// What every rank's all-reduce ends with, when one call of NCCL's fails, or
/// what it does.
std::vector<std::string>
runFailing(const std::map<std::string, std::string> &settings) {
  std::vector<std::string> messages(2);
  NcclRanks ranks(2, settings, std::chrono::seconds(5));
  ranks.run([&](Communicator &communicator, Device &device) {
    auto fail = [&](llvm::Error error) {
      std::string &message =
          messages[static_cast<size_t>(communicator.getRank())];
      message = llvm::toString(std::move(error));
      if (!message.empty())
        communicator.abort(message);
    };
    auto group = communicator.createGroup({0, 1});
    if (!group)
      return fail(group.takeError());
    auto reduce = communicator.prepareOnStream({allReduce(DType::F32, {4})},
                                               *group, "x", nullptr);
    if (!reduce)
      return fail(reduce.takeError());
    auto memory = llvm::cantFail(device.allocate(64));
    auto stream = llvm::cantFail(device.createStream());
    auto run = [&]() -> llvm::Error {
      if (llvm::Error error = (*reduce)->start(
              *stream, {memory->getAddress(), memory->getAddress() + 32}))
        return error;
      if (llvm::Error error = (*reduce)->finish(*stream))
        return error;
      if (llvm::Error error = stream->synchronize())
        return error;
      return communicator.getLateError();
    };
    fail(run());
    llvm::consumeError(stream->synchronize());
  });
  return messages;
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(NcclFailuresTest, CallsThatFailAreNamed) {
  for (std::string call : {"ncclAllReduce", "ncclGroupStart", "ncclGroupEnd"}) {
    // The communicator of all ranks was made in a group.
    bool isLater = call != "ncclAllReduce";
    auto messages = runFailing({{"FAIL", call + (isLater ? ":2:3" : ":1:3")}});
    EXPECT_TRUE(
        contains(messages[0] + messages[1],
                 ": all_reduce 4 f32 'x': " + call + ": internal error (3)"))
        << messages[0] << "\n"
        << messages[1];
    // The other one does not wait for ever.
    for (const std::string &message : messages)
      EXPECT_NE(message, "");
  }
}

// What NCCL gives up is found by who looks after it, and told to all.
TEST(NcclFailuresTest, LateErrorsAreTold) {
  auto messages = runFailing({{"NCCL_FAULT", "1:6"}});
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(contains(messages[rank],
                         "rank " + std::to_string(rank) +
                             ": stopped in all_reduce 4 f32 'x': rank "))
        << messages[rank];
    EXPECT_TRUE(contains(messages[rank],
                         "what NCCL does: remote process exited or there was a "
                         "network error (6)"))
        << messages[rank];
  }
}

/// Two ranks of which the first sends and then receives, and the other one
/// likewise, or the other way round; what they end with.
std::vector<std::string> exchange(bool fits) {
  std::vector<std::string> messages(2);
  NcclRanks ranks(2, {}, std::chrono::milliseconds(300));
  ranks.run([&](Communicator &communicator, Device &device) {
    int32_t me = communicator.getRank(), peer = 1 - me;
    auto memory = llvm::cantFail(device.allocate(16));
    auto stream = llvm::cantFail(device.createStream());
    auto send =
        llvm::cantFail(communicator.prepareSendOnStream(peer, 0, 8, "to"));
    auto receive =
        llvm::cantFail(communicator.prepareReceiveOnStream(peer, 1, 8, "from"));
    EXPECT_TRUE(communicator.isOrdered());
    bool sendsFirst = !fits || me == 0;
    for (bool isSend : {sendsFirst, !sendsFirst})
      llvm::cantFail(
          isSend ? send->start(*stream, {memory->getAddress(), DeviceAddress()})
                 : receive->start(*stream,
                                  {DeviceAddress(), memory->getAddress() + 8}));
    llvm::cantFail(send->finish(*stream));
    llvm::cantFail(receive->finish(*stream));
    llvm::cantFail(stream->synchronize());
    messages[static_cast<size_t>(me)] =
        llvm::toString(communicator.getLateError());
  });
  return messages;
}

TEST(NcclFailuresTest, OrdersThatDoNotFitEndWithATimeout) {
  for (const std::string &message : exchange(/*fits=*/false))
    EXPECT_TRUE(contains(message, ": stopped in send 'to': rank ") &&
                contains(message, ": send 'to': waited 300 ms for rank "))
        << message;
  for (const std::string &message : exchange(/*fits=*/true))
    EXPECT_EQ(message, "");
}

} // namespace
