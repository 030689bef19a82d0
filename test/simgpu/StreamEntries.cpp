//===- StreamEntries.cpp - The simulated driver's streams and events ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

using namespace simgpu;

static Simulator &sim() { return Simulator::get(); }

SIMGPU_ENTRY CUresult cuStreamCreateWithPriority(CUstream *handle,
                                                 unsigned flags, int priority) {
  return sim().enterContext(
      "cuStreamCreateWithPriority", [&](Context &context) {
        if (flags != CU_STREAM_NON_BLOCKING)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                              "the stream would wait for the default one");
        if (priority < greatestPriority || priority > leastPriority)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such priority");
        uint64_t number = sim().nextNumber();
        Stream &made = sim().scheduler->create(context);
        made.numberInThread = sim().nextStreamOfThread();
        sim().streams[number] = &made;
        *handle = Simulator::handle<CUstream>(number);
        return CUDA_SUCCESS;
      });
}

SIMGPU_ENTRY CUresult cuStreamDestroy(CUstream handle) {
  return sim().enterAnyStream(
      "cuStreamDestroy", handle, [&](Context &, Stream &stream) {
        if (std::shared_ptr<Capture> capture = stream.capture)
          capture->leave(stream);
        stream.isDestroyed = true;
        sim().streams.erase(Simulator::number(handle));
        return CUDA_SUCCESS;
      });
}

/// Of a captured stream nothing is done that somebody could wait for.
static CUresult refuseCaptured(const Stream &stream) {
  if (!stream.capture)
    return CUDA_SUCCESS;
  return sim().spoil(*stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                     "the stream is captured");
}

SIMGPU_ENTRY CUresult cuStreamQuery(CUstream handle) {
  return sim().enterStream("cuStreamQuery", handle,
                           [&](Context &, Stream &stream) {
                             if (CUresult result = refuseCaptured(stream))
                               return result;
                             if (stream.items.empty())
                               return CUDA_SUCCESS;
                             sim().scheduler->poll(stream);
                             return CUDA_ERROR_NOT_READY;
                           });
}

SIMGPU_ENTRY CUresult cuStreamSynchronize(CUstream handle) {
  return sim().enterStream(
      "cuStreamSynchronize", handle, [&](Context &context, Stream &stream) {
        if (CUresult result = refuseCaptured(stream))
          return result;
        sim().setComputing(false);
        return sim().wait(context, stream,
                          [&] { return stream.items.empty(); });
      });
}

/// What a capture must not wait for, and what can only be waited for in one.
static CUresult checkWait(const Stream &stream, const Event &event) {
  Capture *own = stream.capture.get();
  Capture *other = event.point ? event.point->capture.get() : nullptr;
  if (own == other || (!own && !other->hasEnded()))
    return CUDA_SUCCESS;
  if (!other)
    return sim().spoil(*own, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                       "the event was not recorded in the stream's capture");
  if (own && !other->hasEnded()) {
    other->isInvalid = true;
    return sim().spoil(*own, CUDA_ERROR_STREAM_CAPTURE_MERGE,
                       "the event was recorded in another capture");
  }
  if (own)
    own->isInvalid = true;
  return sim().refuse(CUDA_ERROR_CAPTURED_EVENT,
                      "the event was recorded in a capture that has ended");
}

SIMGPU_ENTRY CUresult cuStreamWaitEvent(CUstream handle, CUevent event,
                                        unsigned flags) {
  return sim().enterStream(
      "cuStreamWaitEvent", handle, [&](Context &, Stream &stream) {
        return sim().withEvent(event, [&](Event &found) {
          if (flags != CU_EVENT_WAIT_DEFAULT)
            return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such flags here");
          if (CUresult result = checkWait(stream, found))
            return result;
          if (!found.point)
            return CUDA_SUCCESS;
          if (sim().isDroppedWait(stream.numberInThread, found)) {
            sim().scheduler->starve(found.point);
            return CUDA_SUCCESS;
          }
          if (found.point->capture) {
            found.point->capture->wait(stream, found.point);
            return CUDA_SUCCESS;
          }
          Item item;
          item.what = "a wait for an event";
          item.awaited = found.point;
          sim().scheduler->push(stream, std::move(item));
          return CUDA_SUCCESS;
        });
      });
}

/// A number in memory that the host may see, too.
static CUresult findNumber(Context &context, CUdeviceptr address,
                           uint64_t *&number) {
  unsigned char *bytes = sim().find(context, address, sizeof(uint64_t));
  if (!bytes || address % sizeof(uint64_t))
    return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                        "there is no memory for a number");
  number = reinterpret_cast<uint64_t *>(bytes);
  return CUDA_SUCCESS;
}

static CUresult pushNumber(Context &context, Stream &stream,
                           CUdeviceptr address, Item item) {
  item.uses = {{address, address + sizeof(uint64_t)}};
  sim().scheduler->push(stream, std::move(item));
  return CUDA_SUCCESS;
}

SIMGPU_ENTRY CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr address,
                                           cuuint64_t value, unsigned) {
  return sim().enterStream(
      "cuStreamWriteValue64", handle, [&](Context &context, Stream &stream) {
        uint64_t *number = nullptr;
        if (CUresult result = findNumber(context, address, number))
          return result;
        Item item;
        item.what = "writing " + std::to_string(value);
        item.run = [=] {
          __atomic_store_n(number, value, __ATOMIC_RELEASE);
          return CUDA_SUCCESS;
        };
        return pushNumber(context, stream, address, std::move(item));
      });
}

// What no event can do: wait for what is only put on a stream later.
SIMGPU_ENTRY CUresult cuStreamWaitValue64(CUstream handle, CUdeviceptr address,
                                          cuuint64_t value, unsigned flags) {
  return sim().enterStream(
      "cuStreamWaitValue64", handle, [&](Context &context, Stream &stream) {
        uint64_t *number = nullptr;
        if (CUresult result = findNumber(context, address, number))
          return result;
        if (flags != CU_STREAM_WAIT_VALUE_GEQ)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE, "here it waits for >=");
        Item item;
        item.what = "a wait for " + std::to_string(value) + " or more";
        item.isReady = [=] {
          uint64_t found = __atomic_load_n(number, __ATOMIC_ACQUIRE);
          return static_cast<int64_t>(found - value) >= 0;
        };
        return pushNumber(context, stream, address, std::move(item));
      });
}

SIMGPU_ENTRY CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  return sim().enterContext("cuEventCreate", [&](Context &context) {
    if (flags & ~(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC))
      return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such flags here");
    uint64_t number = sim().nextNumber();
    Event &event = sim().events[number];
    event.context = &context;
    event.isTimed = !(flags & CU_EVENT_DISABLE_TIMING);
    *handle = Simulator::handle<CUevent>(number);
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuEventDestroy(CUevent handle) {
  return sim().enterContext("cuEventDestroy", [&](Context &) {
    return sim().withEvent(handle, [&](Event &) {
      sim().events.erase(Simulator::number(handle));
      return CUDA_SUCCESS;
    });
  });
}

/// `isExternal`: not now, but in each launch of what is captured.
static CUresult record(const char *call, CUevent event, CUstream handle,
                       bool isExternal) {
  return sim().enterStream(call, handle, [&](Context &context, Stream &stream) {
    return sim().withEvent(event, [&](Event &found) {
      if (found.context != &context)
        return sim().refuse(CUDA_ERROR_INVALID_HANDLE,
                            "the event is of another context");
      if (isExternal) {
        if (!stream.capture)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                              "the stream is not captured");
        Item item;
        item.what = "recording an event beside the graph";
        item.recorded = Simulator::number(event);
        sim().scheduler->push(stream, std::move(item));
        return CUDA_SUCCESS;
      }
      found.recordedOn = stream.numberInThread;
      if (stream.capture) {
        found.point = stream.capture->record(stream);
        return CUDA_SUCCESS;
      }
      found.point = std::make_shared<Point>();
      found.point->stream = &stream;
      Item item;
      item.what = "recording an event";
      item.reached = found.point;
      sim().scheduler->push(stream, std::move(item));
      return CUDA_SUCCESS;
    });
  });
}

SIMGPU_ENTRY CUresult cuEventRecord(CUevent event, CUstream handle) {
  return record("cuEventRecord", event, handle, false);
}

SIMGPU_ENTRY CUresult cuEventRecordWithFlags(CUevent event, CUstream handle,
                                             unsigned flags) {
  return record("cuEventRecordWithFlags", event, handle,
                flags & CU_EVENT_RECORD_EXTERNAL);
}

/// What was recorded in a capture nobody ever gets to.
static CUresult refuseCaptured(const Event &event) {
  if (!event.point || !event.point->capture)
    return CUDA_SUCCESS;
  return sim().spoil(*event.point->capture, CUDA_ERROR_CAPTURED_EVENT,
                     "the event was recorded in a capture");
}

SIMGPU_ENTRY CUresult cuEventQuery(CUevent handle) {
  return sim().enterUnsafe("cuEventQuery", [&](Context &) {
    return sim().withEvent(handle, [&](Event &event) {
      if (CUresult result = refuseCaptured(event))
        return result;
      if (!event.point || event.point->isDone)
        return CUDA_SUCCESS;
      sim().scheduler->poll(*event.point->stream);
      return CUDA_ERROR_NOT_READY;
    });
  });
}

SIMGPU_ENTRY CUresult cuEventSynchronize(CUevent handle) {
  auto wait = [&](Context &context) {
    return sim().withEvent(handle, [&](Event &event) {
      if (CUresult result = refuseCaptured(event))
        return result;
      std::shared_ptr<Point> point = event.point;
      if (!point || point->isDone || sim().isDroppedWait(0, event))
        return CUDA_SUCCESS;
      return sim().wait(context, *point->stream, [&] { return point->isDone; });
    });
  };
  CUresult result = sim().enterContext("cuEventSynchronize", wait);
  // The host has something else to do.
  thread_local uint64_t numWaits = 0;
  if (numWaits++ % 2 == 0)
    std::this_thread::sleep_for(sim().getLateness());
  return result;
}

// The header's name may be that of a later function of the same type.
#undef cuEventElapsedTime
SIMGPU_ENTRY CUresult cuEventElapsedTime(float *milliseconds, CUevent start,
                                         CUevent end) {
  return sim().enterContext("cuEventElapsedTime", [&](Context &) {
    return sim().withEvent(start, [&](Event &from) {
      return sim().withEvent(end, [&](Event &to) {
        if (!from.isTimed || !to.isTimed || !from.point || !to.point)
          return sim().refuse(CUDA_ERROR_INVALID_HANDLE,
                              "an event is not timed, or was never recorded");
        for (const Event *each : {&from, &to})
          if (CUresult result = refuseCaptured(*each))
            return result;
        if (!from.point->isDone || !to.point->isDone)
          return CUDA_ERROR_NOT_READY;
        *milliseconds = std::chrono::duration<float, std::milli>(
                            to.point->time - from.point->time)
                            .count();
        return CUDA_SUCCESS;
      });
    });
  });
}
