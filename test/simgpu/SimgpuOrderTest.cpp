//===- SimgpuOrderTest.cpp - In which order the simulated driver works ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DriverCalls.h"

#include <fstream>
#include <set>
#include <thread>

using namespace ax::rt;

namespace {

using Driver = cuda::Driver;

/// Copies the first byte of the host's memory to the card's.
void upload(DriverCalls &sim) {
  sim.ok(&Driver::cuMemcpyHtoDAsync, sim.memory,
         static_cast<const void *>(sim.pinned), size_t(1), sim.stream);
}

TEST(SimgpuOrderTest, EagerWorksAtOnce) {
  DriverCalls sim("eager");
  sim.pinned[0] = 1;
  upload(sim);
  EXPECT_EQ(simgpuCounted("work"), 1U);
  sim.pinned[0] = 2;
  EXPECT_EQ(sim.readByte(), 1);
}

TEST(SimgpuOrderTest, LazyWorksWhenSomebodyWaits) {
  DriverCalls sim("lazy");
  sim.pinned[0] = 1;
  upload(sim);
  sim.pinned[0] = 2;
  CUstream other = sim.makeStream();
  sim.ok(&Driver::cuStreamSynchronize, other);
  EXPECT_EQ(simgpuCounted("work"), 0U);
  EXPECT_EQ(sim.readByte(), 2);
}

// And then does no more than is waited for.
TEST(SimgpuOrderTest, LazyDoesWhatIsNeeded) {
  DriverCalls sim("lazy");
  CUevent event = sim.makeEvent();
  CUstream other = sim.makeStream();
  upload(sim);
  sim.ok(&Driver::cuEventRecord, event, sim.stream);
  upload(sim);
  sim.ok(&Driver::cuStreamWaitEvent, other, event, 0U);
  EXPECT_EQ(sim.call(&Driver::cuEventQuery, event), CUDA_ERROR_NOT_READY);
  sim.ok(&Driver::cuStreamSynchronize, other);
  sim.ok(&Driver::cuEventQuery, event);
  EXPECT_EQ(simgpuCounted("work"), 3U);
  EXPECT_EQ(sim.call(&Driver::cuStreamQuery, sim.stream), CUDA_ERROR_NOT_READY);
  sim.ok(&Driver::cuStreamQuery, sim.stream);
}

/// What streams that all write to one byte leave there; with `waits`, each
/// waits for the one before. The first stream of the thread reads it, those
/// from the second on write.
int lastWriter(const std::string &order, bool waits,
               const std::string &droppedWait = "0") {
  DriverCalls sim(order, {{"DROP_WAIT", droppedWait}});
  const int count = 4;
  CUevent event = sim.makeEvent();
  for (int i = 0; i < count; ++i) {
    CUstream stream = sim.makeStream();
    if (waits)
      sim.ok(&Driver::cuStreamWaitEvent, stream, event, 0U);
    sim.ok(&Driver::cuMemsetD8Async, sim.memory, static_cast<unsigned char>(i),
           size_t(1), stream);
    sim.ok(&Driver::cuEventRecord, event, stream);
    sim.ok(&Driver::cuStreamWaitEvent, sim.stream, event, 0U);
  }
  return sim.readByte();
}

int lastWriter(int seed, bool waits, const std::string &droppedWait = "0") {
  return lastWriter("random:" + std::to_string(seed), waits, droppedWait);
}

TEST(SimgpuOrderTest, RandomFindsAllOrders) {
  std::set<int> found;
  for (int seed = 0; seed < 50; ++seed) {
    int last = lastWriter(seed, false);
    EXPECT_EQ(lastWriter(seed, false), last);
    EXPECT_EQ(lastWriter(seed, true), 3);
    found.insert(last);
  }
  EXPECT_EQ(found, (std::set<int>{0, 1, 2, 3}));
}

// Seven are for what was recorded. Without one of the reader's, but for the
// last, nothing changes: the next writer waits, too.
TEST(SimgpuOrderTest, ADroppedWaitIsFound) {
  std::set<int> found;
  for (int dropped = 1; dropped <= 7; ++dropped)
    for (int seed = 0; seed < 50; ++seed)
      if (lastWriter(seed, true, std::to_string(dropped)) != 3)
        found.insert(dropped);
  EXPECT_EQ(found, (std::set<int>{2, 4, 6, 7}));
}

TEST(SimgpuOrderTest, UnfairFindsADroppedWaitAtOnce) {
  std::set<int> found;
  for (int dropped = 0; dropped <= 7; ++dropped)
    if (lastWriter("unfair", true, std::to_string(dropped)) != 3)
      found.insert(dropped);
  EXPECT_EQ(found, (std::set<int>{2, 4, 6, 7}));
}

// Where nothing is dropped, or it is done already, it is lazy.
TEST(SimgpuOrderTest, UnfairIsLazyElsewhere) {
  DriverCalls sim("unfair", {{"DROP_WAIT", "1"}});
  CUevent event = sim.makeEvent();
  CUstream other = sim.makeStream();
  sim.ok(&Driver::cuEventRecord, event, sim.stream);
  sim.synchronize();
  sim.ok(&Driver::cuStreamWaitEvent, other, event, 0U);
  sim.pinned[0] = 1;
  upload(sim);
  sim.pinned[0] = 2;
  EXPECT_EQ(simgpuCounted("work"), 1U);
  EXPECT_EQ(sim.readByte(), 2);
}

// What another stream need not wait for any more, is nothing to the first.
TEST(SimgpuOrderTest, UnfairStarvesTheStreamsOfAllDroppedWaits) {
  DriverCalls sim("unfair", {{"DROP_WAIT", "1<2"}});
  CUstream two = sim.makeStream(), three = sim.makeStream();
  CUevent late = sim.makeEvent(), done = sim.makeEvent();
  sim.ok(&Driver::cuEventRecord, done, two);
  sim.ok(&Driver::cuStreamSynchronize, two);
  sim.ok(&Driver::cuEventRecord, late, two);
  sim.ok(&Driver::cuStreamWaitEvent, sim.stream, late, 0U);
  sim.ok(&Driver::cuStreamWaitEvent, sim.stream, done, 0U);
  EXPECT_EQ(simgpuCounted("work"), 1U);
  sim.ok(&Driver::cuMemsetD8Async, sim.memory, static_cast<unsigned char>(1),
         size_t(1), three);
  EXPECT_EQ(simgpuCounted("work"), 2U);
  EXPECT_EQ(sim.readByte(), 1);
}

TEST(SimgpuOrderTest, WaitsAreDroppedByTheirStreams) {
  std::set<std::string> found;
  for (const char *dropped : {"1<2", "3<2", "1<3", "4<3", "1<4", "5<4", "1<5",
                              "2<1", "5<3", "5<4:0/2", "5<4:1/2"})
    for (int seed = 0; seed < 50; ++seed)
      if (lastWriter(seed, true, dropped) != 3)
        found.insert(dropped);
  EXPECT_EQ(found,
            (std::set<std::string>{"3<2", "4<3", "5<4", "1<5", "5<4:0/2"}));
}

TEST(SimgpuOrderTest, WaitsThatAreNoneAreRefused) {
  for (const char *dropped :
       {"", "1<", "<2", "1<2:", "1<2:1", "1<2:1/0", "1<2 ", "1<2:1/2/3"}) {
    startSimgpu({{"DROP_WAIT", dropped}});
    auto init =
        reinterpret_cast<CUresult (*)(unsigned)>(findInSimgpu("cuInit"));
    EXPECT_EQ(init(0), CUDA_ERROR_INVALID_VALUE) << dropped;
    EXPECT_EQ(simgpuReported(),
              "cuInit: SIMGPU_DROP_WAIT is not what it may be");
  }
}

TEST(SimgpuOrderTest, WritesWhatWasCounted) {
  std::string path = ::testing::TempDir() + "counts";
  {
    DriverCalls sim("eager", {{"COUNTS", path}});
    CUevent event = sim.makeEvent();
    CUstream other = sim.makeStream();
    for (int i = 0; i < 3; ++i) {
      sim.ok(&Driver::cuEventRecord, event, sim.stream);
      sim.ok(&Driver::cuStreamWaitEvent, other, event, 0U);
    }
  }
  startSimgpu({});
  std::ifstream file(path);
  std::map<std::string, int> counts;
  std::string name;
  for (int count; file >> name >> count;)
    counts[name] = count;
  EXPECT_EQ(counts["cuEventRecord"], 3);
  EXPECT_EQ(counts["cuStreamCreateWithPriority"], 2);
  EXPECT_EQ(counts["2<1"], 3);
  EXPECT_EQ(counts.count("1<2"), 0U);
}

class ValueWait {
public:
  explicit ValueWait(DriverCalls &sim) : sim(sim) {
    std::memset(sim.pinned, 0, 8);
  }
  CUresult put(CUstream stream, cuuint64_t value,
               unsigned flags = CU_STREAM_WAIT_VALUE_GEQ) {
    auto wait = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint64_t,
                                              unsigned)>(
        findInSimgpu("cuStreamWaitValue64_v2"));
    return wait(stream, reinterpret_cast<CUdeviceptr>(sim.pinned), value,
                flags);
  }

private:
  DriverCalls &sim;
};

TEST(SimgpuOrderTest, ADeadlockIsReported) {
  for (const char *order : {"eager", "lazy", "random:1"}) {
    DriverCalls sim(order, {{"PATIENCE", "20"}});
    CUstream second = sim.makeStream();
    CUevent event = sim.makeEvent();
    ValueWait values(sim);
    EXPECT_EQ(values.put(sim.stream, 7), CUDA_SUCCESS);
    sim.ok(&Driver::cuEventRecord, event, sim.stream);
    sim.ok(&Driver::cuStreamWaitEvent, second, event, 0U);
    EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, second),
              CUDA_ERROR_LAUNCH_TIMEOUT);
    EXPECT_EQ(simgpuReported(),
              "cuStreamSynchronize: deadlock; stream 1 is at: a wait for 7 or "
              "more; stream 2 is at: a wait for an event");
    EXPECT_EQ(sim.call(&Driver::cuStreamQuery, second),
              CUDA_ERROR_LAUNCH_TIMEOUT);
  }
}

// It is none where another stream, or the host, has what is waited for.
TEST(SimgpuOrderTest, AValueEndsAWait) {
  for (const char *order : {"eager", "lazy", "random:1"}) {
    DriverCalls sim(order, {{"PATIENCE", "60000"}});
    CUstream second = sim.makeStream();
    ValueWait values(sim);
    EXPECT_EQ(values.put(sim.stream, 7), CUDA_SUCCESS);
    EXPECT_EQ(values.put(sim.stream, 7, CU_STREAM_WAIT_VALUE_EQ),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(simgpuReported(), "cuStreamWaitValue64: here it waits for >=");
    sim.ok(&Driver::cuStreamWriteValue64, second,
           reinterpret_cast<CUdeviceptr>(sim.pinned), cuuint64_t(7), 0U);
    sim.synchronize();
    EXPECT_EQ(values.put(sim.stream, 8), CUDA_SUCCESS);
    std::thread host([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      __atomic_store_n(reinterpret_cast<uint64_t *>(sim.pinned), 8,
                       __ATOMIC_RELEASE);
    });
    sim.synchronize();
    host.join();
  }
}

TEST(SimgpuOrderTest, CountsCalls) {
  DriverCalls sim;
  EXPECT_EQ(simgpuCounted("cuMemAlloc"), 1U);
  uint64_t all = simgpuCounted("*");
  upload(sim);
  EXPECT_EQ(simgpuCounted("cuMemcpyHtoDAsync"), 1U);
  EXPECT_EQ(simgpuCounted("*"), all + 1);
  startSimgpu({});
  EXPECT_EQ(simgpuCounted("*"), 0U);
}

} // namespace
