//===- MpiRanks.cpp - The suite of communicators on processes -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Started by mpirun: each process runs all cases, as one rank of them. Ranks of
// a case are the first processes; others wait for its end. Cases for more ranks
// than there are processes are left out. With AXRUN_DEVICE=cuda all is on
// memory of a card, of which MPI knows nothing.
//
//===----------------------------------------------------------------------===//

#include "CommunicatorSuite.h"
#include "UploadedRanks.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/Backends.h"
#include "ax/Runtime/Launcher.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Support/Error.h"

#include <cstdlib>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace ax::rt {
void registerMpi(Backends &backends);
} // namespace ax::rt

namespace {

class MpiBackend : public CommunicatorBackend {
public:
  const char *getName() const override { return "Mpi"; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const std::function<void(Communicator &)> &body) override {
    const ProcessPlace &place = process->getPlace();
    if (numRanks > place.numProcesses)
      return;
    if (place.process < numRanks) {
      CommunicatorOptions options;
      options.timeout = timeout;
      auto made = process->createCommunicator(numRanks, options);
      if (!made)
        ADD_FAILURE() << llvm::toString(made.takeError());
      else if (device)
        runOnDevice(**made, body);
      else
        body(**made);
    }
    // A case that ends early here has lost the others: they are not waited for.
    if (llvm::Error error = everybody->barrier(*group)) {
      ADD_FAILURE() << llvm::toString(std::move(error));
      process->abort(1);
    }
  }

  void runOnDevice(Communicator &communicator,
                   const std::function<void(Communicator &)> &body) {
    DeviceCommunicator staged(
        communicator, *device,
        [](const CollectiveSpecs &, size_t) {
          return std::shared_ptr<const Kernel>();
        },
        Rest::Staged);
    body(staged);
  }

  MpiProcess *process = nullptr;
  /// Null where tensors are the host's.
  std::unique_ptr<Device> device;
  std::unique_ptr<Communicator> everybody;
  std::shared_ptr<Group> group;
};

MpiBackend mpiBackend;

INSTANTIATE_TEST_SUITE_P(
    Mpi, CommunicatorSuite,
    ::testing::Values(static_cast<CommunicatorBackend *>(&mpiBackend)),
    [](const auto &info) { return info.param->getName(); });

TEST(MpiProcessTest, KnowsItsPlace) {
  const ProcessPlace &place = mpiBackend.process->getPlace();
  EXPECT_GE(place.process, 0);
  EXPECT_LT(place.process, place.numProcesses);
  EXPECT_EQ(place.numOnHost, place.numProcesses);
  EXPECT_EQ(place.indexOnHost, place.process);
  EXPECT_FALSE(place.host.empty());
}

TEST(MpiProcessTest, TellsAllWhatTheFirstKnows) {
  std::string text(5000, 'x');
  if (mpiBackend.process->getPlace().process == 0)
    text.back() = text.front() = '0';
  llvm::cantFail(mpiBackend.process->broadcast(text));
  EXPECT_EQ(text.front(), '0');
  EXPECT_EQ(text[1], 'x');
  EXPECT_EQ(text.back(), '0');
}

TEST(MpiProcessTest, OneProcessIsOneRank) {
  int32_t more = mpiBackend.process->getPlace().numProcesses + 1;
  auto made = mpiBackend.process->createCommunicator(more, {});
  ASSERT_FALSE(bool(made));
  ErrorDescription text = describeError(made.takeError());
  EXPECT_EQ(text.code, ExitCode::Usage);
  EXPECT_NE(text.message.find(" ranks; start one process for each rank"),
            std::string::npos);
}

TEST(MpiProcessTest, IsFoundByItsName) {
  Backends backends;
  registerMpi(backends);
  CreateCommunicators create =
      llvm::cantFail(backends.communicators.find("mpi"));
  const ProcessPlace &place = mpiBackend.process->getPlace();
  CommunicatorOptions options;
  options.ranks = {place.process};
  auto made = llvm::cantFail(create(place.numProcesses, options));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made.front()->getRank(), place.process);
  EXPECT_EQ(made.front()->getSize(), place.numProcesses);

  options.ranks.push_back(place.process + 1);
  auto more = create(place.numProcesses + 1, options);
  ASSERT_FALSE(bool(more));
  EXPECT_NE(describeError(more.takeError())
                .message.find(" ranks: communicator 'mpi' needs one process "
                              "for each rank"),
            std::string::npos);
}

} // namespace

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto process = openMpi();
  if (!process && !isFirstOfLauncher()) {
    llvm::consumeError(process.takeError());
    // The first process that ends makes the launcher end all.
    std::this_thread::sleep_for(std::chrono::seconds(3));
    return static_cast<int>(ExitCode::Usage);
  }
  if (!process)
    return reportError("mpi-ranks", process.takeError());
  mpiBackend.process = *process;
  CommunicatorOptions options;
  options.timeout = std::chrono::seconds(120);
  mpiBackend.everybody = llvm::cantFail((*process)->createCommunicator(
      (*process)->getPlace().numProcesses, options));
  mpiBackend.group =
      makeGroup(*mpiBackend.everybody, allRanks(*mpiBackend.everybody));
  if (const char *name = std::getenv("AXRUN_DEVICE")) {
    DeviceKind kind = llvm::cantFail(allBackends().devices.find(name));
    auto devices = kind.create({0}, DeviceOptions());
    if (!devices)
      return reportError("mpi-ranks", devices.takeError());
    mpiBackend.device = std::move(devices->front());
    mpiBackend.device->attachThread();
  }
  int result = RUN_ALL_TESTS();
  mpiBackend.device.reset();
  mpiBackend.everybody.reset();
  if (llvm::Error error = (*process)->finalize())
    return reportError("mpi-ranks", std::move(error));
  return result;
}
