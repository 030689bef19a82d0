//===- SimgpuGraphTest.cpp - Captures and graphs of the simulated driver --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DriverCalls.h"

#include <set>
#include <thread>

using namespace ax::rt;

namespace {

using Driver = cuda::Driver;

/// Calls that captures are made of.
class GraphCalls : public DriverCalls {
public:
  using DriverCalls::DriverCalls;

  void begin(CUstream on,
             CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    ok(&Driver::cuStreamBeginCapture, on, mode);
  }
  CUgraphExec end(CUstream on) {
    CUgraph graph = nullptr;
    CUgraphExec made = nullptr;
    ok(&Driver::cuStreamEndCapture, on, &graph);
    ok(&Driver::cuGraphInstantiateWithFlags, &made, graph, 0ULL);
    ok(&Driver::cuGraphDestroy, graph);
    return made;
  }
  /// The capture ends without a graph.
  void endsWith(CUresult result, const std::string &why) {
    auto *graph = reinterpret_cast<CUgraph>(1);
    refused(result, why, &Driver::cuStreamEndCapture, stream, &graph);
    EXPECT_EQ(graph, nullptr);
    // The stream goes on.
    EXPECT_EQ(readByte(), readByte());
  }
  void isInvalid() {
    refused(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "invalid",
            &Driver::cuMemsetD8Async, memory, static_cast<unsigned char>(1),
            size_t(1), stream);
    endsWith(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "invalid");
  }
  void launch(CUgraphExec graph, CUstream on) {
    ok(&Driver::cuGraphLaunch, graph, on);
  }
  void write(unsigned char value, CUstream on) {
    ok(&Driver::cuMemsetD8Async, memory, value, size_t(1), on);
  }
  void record(CUevent event, CUstream on) {
    ok(&Driver::cuEventRecord, event, on);
  }
  void wait(CUstream on, CUevent event) {
    ok(&Driver::cuStreamWaitEvent, on, event, 0U);
  }
};

TEST(SimgpuGraphTest, OnlyLaunchesWork) {
  for (const char *order : {"eager", "lazy", "random:1"}) {
    GraphCalls sim(order);
    sim.write(1, sim.stream);
    sim.synchronize();
    uint64_t before = simgpuCounted("work");
    sim.begin(sim.stream);
    sim.pinned[1] = 7;
    sim.ok(&Driver::cuMemcpyHtoDAsync, sim.memory,
           static_cast<const void *>(sim.pinned + 1), size_t(1), sim.stream);
    CUgraphExec graph = sim.end(sim.stream);
    EXPECT_EQ(simgpuCounted("work"), before);
    EXPECT_EQ(sim.readByte(), 1);
    for (unsigned char value : {8, 9}) {
      sim.pinned[1] = value;
      sim.launch(graph, sim.stream);
      EXPECT_EQ(sim.readByte(), value);
    }
    sim.ok(&Driver::cuGraphExecDestroy, graph);
    sim.refused(CUDA_ERROR_INVALID_VALUE, "none of the context",
                &Driver::cuGraphLaunch, graph, sim.stream);
  }
}

// What others wait for is not there.
TEST(SimgpuGraphTest, NobodyWaitsForWhatIsCaptured) {
  GraphCalls sim;
  CUevent event = sim.makeEvent();
  for (auto call : {&Driver::cuStreamSynchronize, &Driver::cuStreamQuery}) {
    sim.begin(sim.stream);
    sim.refused(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "is captured", call,
                sim.stream);
    sim.isInvalid();
  }
  sim.begin(sim.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  sim.record(event, sim.stream);
  sim.refused(CUDA_ERROR_CAPTURED_EVENT, "recorded in a capture",
              &Driver::cuEventQuery, event);
  sim.isInvalid();
  sim.begin(sim.stream);
  sim.record(event, sim.stream);
  sim.refused(CUDA_ERROR_CAPTURED_EVENT, "recorded in a capture",
              &Driver::cuEventSynchronize, event);
  sim.isInvalid();
  // Nor after its end.
  sim.refused(CUDA_ERROR_CAPTURED_EVENT, "has ended",
              &Driver::cuStreamWaitEvent, sim.stream, event, 0U);
  sim.refused(CUDA_ERROR_CAPTURED_EVENT, "recorded in a capture",
              &Driver::cuEventSynchronize, event);
  sim.record(event, sim.stream);
  sim.ok(&Driver::cuEventSynchronize, event);
}

TEST(SimgpuGraphTest, TimesOfCapturedEventsAreUnknown) {
  GraphCalls sim;
  CUevent from = sim.makeEvent(0), to = sim.makeEvent(0);
  sim.record(from, sim.stream);
  sim.begin(sim.stream);
  sim.record(to, sim.stream);
  sim.end(sim.stream);
  float time = 0;
  sim.refused(CUDA_ERROR_CAPTURED_EVENT, "recorded in a capture",
              &Driver::cuEventElapsedTime, &time, from, to);
}

TEST(SimgpuGraphTest, UnsafeCalls) {
  GraphCalls sim;
  CUevent event = sim.makeEvent();
  CUdeviceptr made = 0;
  void *host = nullptr;
  auto refuses = [&](auto member, auto... args) {
    sim.begin(sim.stream);
    sim.refused(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "would not see it",
                member, args...);
    sim.isInvalid();
  };
  refuses(&Driver::cuMemAlloc, &made, size_t(8));
  refuses(&Driver::cuMemFree, sim.memory);
  refuses(&Driver::cuMemHostAlloc, &host, size_t(8), 0U);
  refuses(&Driver::cuMemFreeHost, static_cast<void *>(sim.pinned));
  refuses(&Driver::cuEventQuery, event);
  // Other threads are free, but for a capture that is all threads'.
  auto elsewhere = [&](CUresult result) {
    std::thread([&] {
      sim.ok(&Driver::cuCtxSetCurrent, sim.context);
      EXPECT_EQ(sim.call(&Driver::cuMemAlloc, &made, size_t(8)), result);
    }).join();
  };
  sim.begin(sim.stream);
  elsewhere(CUDA_SUCCESS);
  sim.end(sim.stream);
  sim.begin(sim.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  elsewhere(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  sim.isInvalid();
  sim.begin(sim.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  sim.ok(&Driver::cuMemAlloc, &made, size_t(8));
  sim.end(sim.stream);
}

TEST(SimgpuGraphTest, WaitsStayInside) {
  GraphCalls sim;
  CUstream other = sim.makeStream();
  CUevent before = sim.makeEvent(), never = sim.makeEvent();
  sim.record(before, sim.stream);
  for (CUevent event : {before, never}) {
    sim.begin(sim.stream);
    sim.refused(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "not recorded in",
                &Driver::cuStreamWaitEvent, sim.stream, event, 0U);
    sim.isInvalid();
  }
  CUevent first = sim.makeEvent();
  sim.begin(sim.stream);
  sim.begin(other);
  sim.record(first, sim.stream);
  sim.refused(CUDA_ERROR_STREAM_CAPTURE_MERGE, "another capture",
              &Driver::cuStreamWaitEvent, other, first, 0U);
  sim.isInvalid();
  sim.refused(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "invalid",
              &Driver::cuEventRecord, first, other);
}

TEST(SimgpuGraphTest, ForksAreJoined) {
  GraphCalls sim;
  CUstream other = sim.makeStream();
  CUevent fork = sim.makeEvent(), join = sim.makeEvent();
  auto begin = [&] {
    sim.begin(sim.stream);
    sim.record(fork, sim.stream);
    sim.wait(other, fork);
  };
  begin();
  sim.write(1, other);
  sim.record(join, other);
  sim.wait(sim.stream, join);
  sim.end(sim.stream);
  begin();
  // Nothing is left behind.
  sim.end(sim.stream);
  begin();
  sim.record(join, other);
  sim.write(1, other);
  sim.wait(sim.stream, join);
  sim.endsWith(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "not waited for");
  begin();
  CUgraph graph = nullptr;
  sim.refused(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "another stream",
              &Driver::cuStreamEndCapture, other, &graph);
  sim.isInvalid();
  // With a stream its capture is gone.
  begin();
  sim.ok(&Driver::cuStreamDestroy, other);
  sim.isInvalid();
}

TEST(SimgpuGraphTest, BeginningsAndEnds) {
  GraphCalls sim;
  CUgraph graph = nullptr;
  CUevent event = sim.makeEvent();
  sim.refused(CUDA_ERROR_ILLEGAL_STATE, "not captured",
              &Driver::cuStreamEndCapture, sim.stream, &graph);
  sim.begin(sim.stream);
  sim.refused(CUDA_ERROR_ILLEGAL_STATE, "is captured",
              &Driver::cuStreamBeginCapture, sim.stream,
              CU_STREAM_CAPTURE_MODE_RELAXED);
  sim.isInvalid();
  sim.begin(sim.stream);
  std::thread([&] {
    sim.ok(&Driver::cuCtxSetCurrent, sim.context);
    sim.refused(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "another thread",
                &Driver::cuStreamEndCapture, sim.stream, &graph);
  }).join();
  sim.isInvalid();
  sim.refused(CUDA_ERROR_INVALID_VALUE, "not captured",
              &Driver::cuEventRecordWithFlags, event, sim.stream,
              static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL));
  sim.refused(CUDA_ERROR_INVALID_VALUE, "no such graph",
              &Driver::cuGraphDestroy, graph);
  sim.begin(sim.stream);
  CUgraphExec made = sim.end(sim.stream);
  sim.begin(sim.stream);
  sim.refused(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "graphs in graphs",
              &Driver::cuGraphLaunch, made, sim.stream);
  sim.isInvalid();
}

TEST(SimgpuGraphTest, MemoryIsThereAtLaunch) {
  GraphCalls sim;
  CUdeviceptr gone = 0;
  sim.ok(&Driver::cuMemAlloc, &gone, size_t(8));
  sim.begin(sim.stream);
  sim.ok(&Driver::cuMemsetD8Async, gone, static_cast<unsigned char>(0),
         size_t(8), sim.stream);
  CUgraphExec graph = sim.end(sim.stream);
  sim.ok(&Driver::cuMemFree, gone);
  sim.refused(CUDA_ERROR_INVALID_VALUE, "what it uses is gone",
              &Driver::cuGraphLaunch, graph, sim.stream);
}

TEST(SimgpuGraphTest, TakesMemory) {
  GraphCalls sim("eager", {{"MEMORY", "1024"}});
  sim.begin(sim.stream);
  for (int i = 0; i < 4; ++i)
    sim.write(1, sim.stream);
  CUgraph graph = nullptr;
  CUgraphExec made = nullptr;
  sim.ok(&Driver::cuStreamEndCapture, sim.stream, &graph);
  EXPECT_EQ(sim.call(&Driver::cuGraphInstantiateWithFlags, &made, graph, 0ULL),
            CUDA_ERROR_OUT_OF_MEMORY);
}

/// What two streams leave in a byte that both write, where the second waits for
/// the first one or does not.
unsigned char lastOfTwo(const std::string &order, bool waits) {
  GraphCalls sim(order);
  CUstream other = sim.makeStream();
  CUevent fork = sim.makeEvent(), join = sim.makeEvent();
  sim.begin(sim.stream);
  sim.record(fork, sim.stream);
  sim.wait(other, fork);
  sim.write(1, sim.stream);
  if (waits) {
    sim.record(fork, sim.stream);
    sim.wait(other, fork);
  }
  sim.write(2, other);
  sim.record(join, other);
  sim.wait(sim.stream, join);
  sim.launch(sim.end(sim.stream), sim.stream);
  return sim.readByte();
}

TEST(SimgpuGraphTest, AnyOrderThatWaitsAllow) {
  std::set<unsigned char> free, ordered;
  for (int seed = 0; seed < 40; ++seed) {
    std::string order = "random:" + std::to_string(seed);
    free.insert(lastOfTwo(order, false));
    ordered.insert(lastOfTwo(order, true));
  }
  EXPECT_EQ(free, (std::set<unsigned char>{1, 2}));
  EXPECT_EQ(ordered, (std::set<unsigned char>{2}));
  for (const char *order : {"eager", "lazy"})
    EXPECT_EQ(lastOfTwo(order, true), 2);
}

// Each copies a byte to the next place: together they would mix.
TEST(SimgpuGraphTest, OneLaunchAfterAnother) {
  for (int seed = 0; seed < 20; ++seed) {
    GraphCalls sim("random:" + std::to_string(seed));
    CUstream other = sim.makeStream();
    sim.begin(sim.stream);
    sim.write(1, sim.stream);
    for (size_t i = 0; i < 8; ++i)
      sim.ok(&Driver::cuMemcpyDtoDAsync, sim.memory + i + 1, sim.memory + i,
             size_t(1), sim.stream);
    sim.ok(&Driver::cuMemsetD8Async, sim.memory, static_cast<unsigned char>(2),
           size_t(8), sim.stream);
    CUgraphExec graph = sim.end(sim.stream);
    sim.launch(graph, other);
    sim.launch(graph, sim.stream);
    sim.ok(&Driver::cuMemcpyDtoHAsync, static_cast<void *>(sim.pinned),
           sim.memory + 8, size_t(1), sim.stream);
    sim.synchronize();
    EXPECT_EQ(sim.pinned[0], 1);
  }
}

TEST(SimgpuGraphTest, EventsBesideTheGraph) {
  for (const char *order : {"eager", "lazy", "random:3", "random:4"}) {
    GraphCalls sim(order);
    CUstream other = sim.makeStream();
    CUevent event = sim.makeEvent();
    sim.begin(sim.stream);
    sim.write(3, sim.stream);
    sim.ok(&Driver::cuEventRecordWithFlags, event, sim.stream,
           static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL));
    CUgraphExec graph = sim.end(sim.stream);
    sim.ok(&Driver::cuEventQuery, event);
    for (int i = 0; i < 3; ++i) {
      sim.write(1, sim.stream);
      sim.launch(graph, sim.stream);
      sim.wait(other, event);
      sim.write(4, other);
      sim.ok(&Driver::cuStreamSynchronize, other);
      EXPECT_EQ(sim.readByte(), 4);
    }
    sim.ok(&Driver::cuEventDestroy, event);
    sim.refused(CUDA_ERROR_INVALID_VALUE, "is gone", &Driver::cuGraphLaunch,
                graph, sim.stream);
  }
}

} // namespace
