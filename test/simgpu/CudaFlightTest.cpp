//===- CudaFlightTest.cpp - Exchanges that a device has not come to -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramBuilder.h"
#include "RankExecutor.h"
#include "TestSimgpu.h"

#include "ax/Runtime/LocalCommunicator.h"

#include "gtest/gtest.h"

using namespace ax::rt;

namespace {

class NoPorts : public RankPorts {
public:
  std::unique_ptr<BoundInput> bindInput(int32_t) override { return nullptr; }
  std::unique_ptr<BoundOutput> bindOutput(int32_t) override { return nullptr; }
};

/// Two exchanges of a group in each of two micro-batches.
std::shared_ptr<const Program> exchangingTwice() {
  ProgramBuilder b({{"col", 1, false}, {"micro", 2, true}});
  b.stages(1);
  int32_t from = b.buffer(0, Space::Arena, 0, 64);
  int32_t to = b.buffer(0, Space::Arena, 0, 64);
  int32_t group = b.group(0, "col");
  for (const char *name : {"gather0", "gather1"}) {
    CollectiveCommand command;
    command.groupSet = group;
    CollectivePart &part = command.parts.emplace_back();
    part.kind = CollectiveKind::AllGather;
    part.shape = {16};
    part.gatherDim = 0;
    part.gatherSize = 16;
    part.source = {from, 0};
    part.destination = {to, 0};
    b.add(0, std::move(command), name);
    std::swap(from, to);
  }
  return b.program;
}

// What a device was given is begun, and finished only when it has done that.
TEST(CudaFlightTest, WhatIsQueuedIsNotFinished) {
  // It does only what somebody waits for.
  startSimgpu({{"ORDER", "lazy"}});
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  auto devices = llvm::cantFail(cuda.create({0}, DeviceOptions()));
  CommunicatorOptions options;
  options.devices = {devices.front().get()};
  auto communicators = createLocalCommunicators(1, options);
  std::shared_ptr<const Program> program = exchangingTwice();
  StateStore states(*program, llvm::cantFail(openHostStates(*program, "")));
  NoPorts ports;
  FlightLog log(0, /*keepsTimes=*/false);
  RankOptions rankOptions;
  rankOptions.log = &log;
  RankExecutor executor(
      RankContext(*program, 0, *devices.front(), *communicators.front()), ports,
      states, nullptr, rankOptions);
  llvm::cantFail(executor.prepare());
  EXPECT_EQ(executor.describeLast(), "");

  llvm::cantFail(executor.start());
  EXPECT_EQ(executor.describeLast(), "its last exchange begun: number 3 of "
                                     "group {col}, 'gather1'; finished: none");
  FlightRecord record = log.read();
  EXPECT_EQ(record.groups.front().started, 4U);
  EXPECT_EQ(record.groups.front().finished, 0U);
  for (const FlightEvent &event : record.events)
    EXPECT_EQ(event.finished, 0);

  llvm::cantFail(executor.finish());
  EXPECT_EQ(executor.describeLast(), "its last exchange begun: number 3 of "
                                     "group {col}, 'gather1', and finished");
  EXPECT_EQ(log.read().groups.front().finished, 4U);

  // Of an earlier step all is.
  llvm::cantFail(executor.start());
  EXPECT_EQ(
      executor.describeLast(),
      "its last exchange begun: number 7 of group {col}, 'gather1'; finished: "
      "number 3 of group {col}, 'gather1'");
  llvm::cantFail(executor.finish());
}

} // namespace
