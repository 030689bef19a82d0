//===- Overlap.cpp - What goes on while nobody waits ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CommunicatorSuite.h"

#include <cstdlib>
#include <ctime>
#include <sys/mman.h>
#include <thread>

namespace ax::rt {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::chrono::nanoseconds processorTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::nanoseconds(time.tv_nsec);
}

// Once the program has come back late, somebody drives what it starts, and does
// not need a core for that.
TEST_P(CommunicatorSuite, GoesOnWhileTheProgramComputes) {
  run(2, [](Communicator &comm) {
    std::shared_ptr<Group> group = makeGroup(comm, allRanks(comm));
    const int64_t part = 4 << 20;
    CollectiveSpec spec;
    spec.kind = CollectiveKind::AllGather;
    spec.dtype = DType::I32;
    spec.shape = {part};
    spec.gatherDim = 0;
    spec.gatherSize = 2 * part;
    std::unique_ptr<Operation> operation = prepare(comm, group, spec);
    std::vector<int32_t> source(static_cast<size_t>(part), comm.getRank() + 1);
    std::vector<int32_t> result(source.size() * 2);
    llvm::cantFail(operation->start(source.data(), result.data()));
    std::this_thread::sleep_for(10ms);
    llvm::cantFail(operation->wait());

    std::fill(result.begin(), result.end(), 0);
    llvm::cantFail(operation->start(source.data(), result.data()));
    const volatile int32_t &last =
        comm.getRank() == 0 ? result.back() : result[source.size() - 1];
    Clock::time_point begin = Clock::now();
    while (last == 0 && Clock::now() - begin < 20s)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(last, 2 - comm.getRank());
    llvm::cantFail(operation->wait());
    EXPECT_EQ(result.front(), 1);
    EXPECT_EQ(result.back(), 2);

    llvm::cantFail(comm.barrier(*group));
    std::unique_ptr<Operation> receive =
        llvm::cantFail(comm.prepareReceive(1 - comm.getRank(), 0, 4, "late"));
    std::unique_ptr<Operation> send =
        llvm::cantFail(comm.prepareSend(1 - comm.getRank(), 0, 4, "late"));
    int32_t got = 0;
    llvm::cantFail(operation->start(source.data(), result.data()));
    llvm::cantFail(receive->start({}, &got));
    std::chrono::nanoseconds before = processorTime();
    std::this_thread::sleep_for(1s);
    EXPECT_LT(processorTime() - before, 500ms);
    llvm::cantFail(send->run(source.data(), {}));
    llvm::cantFail(receive->wait());
    llvm::cantFail(operation->wait());
    EXPECT_EQ(got, 2 - comm.getRank());
  });
}

// MPI counts in int.
TEST_P(CommunicatorSuite, MessagesOfMoreThan2GiB) {
  if (!std::getenv("AX_TEST_ALL"))
    GTEST_SKIP() << "takes 2 GiB";
  run(2, [](Communicator &comm) {
    const size_t bytes = (size_t(2) << 30) + 12345;
    // What is never written takes no memory.
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto *values = static_cast<uint8_t *>(memory);
    const size_t places[] = {0, 5, size_t(1) << 30, size_t(2) << 30, bytes - 1};
    auto size = static_cast<int64_t>(bytes);
    if (comm.getRank() == 0) {
      for (size_t place : places)
        values[place] = static_cast<uint8_t>(place % 251 + 1);
      llvm::cantFail(llvm::cantFail(comm.prepareSend(1, 0, size, "large"))
                         ->run(values, {}));
    } else {
      llvm::cantFail(llvm::cantFail(comm.prepareReceive(0, 0, size, "large"))
                         ->run({}, values));
      for (size_t place : places)
        EXPECT_EQ(values[place], static_cast<uint8_t>(place % 251 + 1));
    }
    munmap(memory, bytes);
  });
}

} // namespace
} // namespace ax::rt
