//===- Simulator.h - The simulated driver's state ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_SIMULATOR_H
#define AX_TEST_SIMGPU_SIMULATOR_H

#include "Capture.h"
#include "Memory.h"
#include "Module.h"
#include "Scheduler.h"
#include "Settings.h"

#include <cuda.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>

/// Marks an entry point: nothing else is seen from outside.
#define SIMGPU_ENTRY extern "C" __attribute__((visibility("default")))

namespace simgpu {

constexpr int maxPitch = 0x7fffffff;
constexpr unsigned mostThreads = 1024;
constexpr int leastPriority = 0, greatestPriority = -5;

/// The primary context of a card, while somebody holds it.
struct Context {
  Context(CUdevice card, const Settings &settings)
      : card(card), memory(settings.memory), pinned(settings.memory) {}
  CUdevice card;
  uint64_t numHolders = 0;
  /// The error of work, which every later call returns.
  CUresult fault = CUDA_SUCCESS;
  CardMemory memory;
  PinnedMemory pinned;
};

struct Event {
  Context *context = nullptr;
  bool isTimed = false;
  /// Where it was recorded last; null: never.
  std::shared_ptr<Point> point;
  /// Stream::numberInThread of the stream that it was recorded on.
  uint64_t recordedOn = 0;
};

class Simulator {
public:
  static Simulator &get();
  Simulator() { reset(); }
  void reset();

  /// Every entry point is one of these: `body` is called under the lock unless
  /// the call is to fail, or a context is missing or has a fault.
  template <typename Body>
  CUresult enter(const char *call, Body &&body) {
    std::unique_lock<std::mutex> held(mutex);
    if (CUresult result = begin(call))
      return result;
    return body();
  }
  template <typename Body>
  CUresult enterContext(const char *call, Body &&body) {
    return enter(call, [&]() -> CUresult {
      auto found = contexts.find(currentContext());
      if (found == contexts.end())
        return refuse(CUDA_ERROR_INVALID_CONTEXT,
                      "no context is the calling thread's");
      if (found->second->fault != CUDA_SUCCESS)
        return found->second->fault;
      CUresult result = body(*found->second);
      return result == CUDA_SUCCESS ? found->second->fault : result;
    });
  }
  /// Likewise, of a call that may be unsafe while streams are captured, which
  /// do not see it.
  template <typename Body>
  CUresult enterUnsafe(const char *call, Body &&body) {
    return enterContext(call, [&](Context &context) -> CUresult {
      if (CUresult result = refuseUnsafe())
        return result;
      return body(context);
    });
  }
  /// As enterContext, with a stream of the context whose capture is not
  /// invalid.
  template <typename Body>
  CUresult enterStream(const char *call, CUstream handle, Body &&body) {
    return enterAnyStream(
        call, handle, [&](Context &context, Stream &stream) -> CUresult {
          if (stream.capture && stream.capture->isInvalid)
            return refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                          "the capture is invalid");
          return body(context, stream);
        });
  }
  template <typename Body>
  CUresult enterAnyStream(const char *call, CUstream handle, Body &&body) {
    return enterContext(call, [&](Context &context) -> CUresult {
      auto found = streams.find(number(handle));
      if (number(handle) <= number(CU_STREAM_PER_THREAD))
        return refuse(CUDA_ERROR_INVALID_HANDLE, "a default stream");
      if (found == streams.end() || found->second->context != &context)
        return refuse(CUDA_ERROR_INVALID_HANDLE,
                      "the stream is none of the context");
      return body(context, *found->second);
    });
  }
  /// Likewise, with an event of any context.
  template <typename Body>
  CUresult withEvent(CUevent handle, Body &&body) {
    auto found = events.find(number(handle));
    if (found == events.end())
      return refuse(CUDA_ERROR_INVALID_HANDLE, "there is no such event");
    return body(found->second);
  }

  /// Says what is wrong with the call that is under way.
  CUresult refuse(CUresult result, const std::string &why);
  /// Likewise, of a call that makes a capture invalid.
  CUresult spoil(Capture &capture, CUresult result, const std::string &why) {
    capture.isInvalid = true;
    return refuse(result, why);
  }
  /// Waits as the host does, in a call.
  template <typename IsDone>
  CUresult wait(Context &context, Stream &stream, IsDone &&isDone) {
    std::unique_lock<std::mutex> lock(mutex, std::adopt_lock);
    std::string call = underWay;
    std::string stuck = scheduler->wait(
        stream, [&] { return context.fault != CUDA_SUCCESS || isDone(); },
        lock);
    lock.release();
    underWay = call;
    if (stuck.empty())
      return CUDA_SUCCESS;
    context.fault = CUDA_ERROR_LAUNCH_TIMEOUT;
    scheduler->dropWork(context);
    return refuse(CUDA_ERROR_LAUNCH_TIMEOUT, stuck);
  }
  /// Where bytes are that the card reaches: its own, or pinned; null: nowhere.
  unsigned char *find(Context &context, CUdeviceptr address, size_t bytes);
  unsigned char *findPinned(const void *host, size_t bytes);
  /// Whether what an item uses is still there: memory, or a kernel's code.
  bool isThere(Context &context, Range used);

  template <typename Handle>
  static uint64_t number(Handle handle) {
    return reinterpret_cast<uintptr_t>(handle);
  }
  /// Numbers of what is made: never again another's.
  uint64_t nextNumber() { return lastNumber += 16; }
  template <typename Handle>
  static Handle handle(uint64_t number) {
    return reinterpret_cast<Handle>(static_cast<uintptr_t>(number));
  }
  /// The number of the context that is the calling thread's.
  static uint64_t &currentContext();

  Settings settings;
  bool isStarted = false;
  std::map<uint64_t, std::unique_ptr<Context>> contexts;
  std::map<uint64_t, Stream *> streams;
  std::map<uint64_t, Event> events;
  /// The context of each module, and what all of them have.
  std::map<uint64_t, Context *> modules;
  std::map<uint64_t, std::shared_ptr<const Function>> functions;
  std::map<uint64_t, std::shared_ptr<const Graph>> graphs;
  std::map<uint64_t, GraphExec> executables;
  /// Those that have not ended, and others.
  std::vector<std::weak_ptr<Capture>> captures;
  std::unique_ptr<Scheduler> scheduler;

  /// In which order threads of kernels run.
  std::mt19937_64 gridRandom;

  /// Ends what the context has: streams with their work, events and modules.
  void forget(Context &context);
  void forgetModule(uint64_t module);
  /// Counts a wait for an event that was recorded, of a stream by its number in
  /// its thread or of the host, which is 0; says whether it is to be dropped.
  bool isDroppedWait(uint64_t waiting, const Event &event);
  /// Counts a stream of the calling thread.
  uint64_t nextStreamOfThread() { return ++ofThread().numStreams; }
  /// The calling thread has launched a kernel, or has waited for a stream.
  void setComputing(bool is) { ofThread().isComputing = is; }
  /// Around what makes code of a module, on any thread; returns how long that
  /// takes.
  std::chrono::milliseconds beginLoad();
  void endLoad();
  std::chrono::microseconds getLateness();
  /// Counts a copy up for which the calling thread does not wait with what it
  /// computes: it has launched a kernel, and has waited for no stream since.
  void countUpload() { counts["uploadsAhead"] += ofThread().isComputing; }
  /// The most of a card's memory that was in use.
  void countMemory(const Context &context) {
    uint64_t &most = counts["memoryOfCard" + std::to_string(context.card)];
    most = std::max<uint64_t>(most, context.memory.getUsed());
  }
  /// Writes to SIMGPU_COUNTS, a line each, how often functions were called, how
  /// often something went up ahead, and how often streams waited for others;
  /// and the most that was used of each card's memory.
  void writeCounts();

  /// For calls of libraries, as simgpuEnter, simgpuRefuse and simgpuCapability.
  int enterLibrary(const char *call, uint64_t &context);
  void refuseLibrary(const char *call, const char *why);
  int capabilityOfThread();

  std::string takeReport();
  uint64_t count(const std::string &call);

private:
  CUresult begin(const char *call);
  CUresult refuseUnsafe();
  void note(const std::string &why);
  /// Counts it, and returns the error with which it is to fail.
  CUresult countCall(const std::string &call);

  std::mutex mutex;
  uint64_t numLoading = 0;
  std::map<std::string, uint64_t> counts;
  /// How often streams waited for others, by their numbers in threads.
  using Waits = std::map<std::pair<uint64_t, uint64_t>, uint64_t>;
  struct OfThread {
    uint64_t numResets = 0, numStreams = 0;
    Waits waits;
    bool isComputing = false;
  };
  /// What the calling thread has done since the last reset.
  OfThread &ofThread();
  Waits waits;
  uint64_t numResets = 0;
  std::string underWay, report;
  uint64_t lastNumber = 256, numWaits = 0;
};

} // namespace simgpu

#endif // AX_TEST_SIMGPU_SIMULATOR_H
