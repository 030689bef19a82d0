//===- GraphEntries.cpp - The simulated driver's graphs -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Simulator.h"

using namespace simgpu;

static Simulator &sim() { return Simulator::get(); }

SIMGPU_ENTRY CUresult cuStreamBeginCapture(CUstream handle,
                                           CUstreamCaptureMode mode) {
  return sim().enterStream(
      "cuStreamBeginCapture", handle, [&](Context &context, Stream &stream) {
        if (stream.capture)
          return sim().spoil(*stream.capture, CUDA_ERROR_ILLEGAL_STATE,
                             "the stream is captured");
        if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such mode");
        auto capture = std::make_shared<Capture>(context, mode);
        capture->join(stream);
        sim().captures.push_back(capture);
        return CUDA_SUCCESS;
      });
}

SIMGPU_ENTRY CUresult cuStreamEndCapture(CUstream handle, CUgraph *made) {
  return sim().enterAnyStream(
      "cuStreamEndCapture", handle, [&](Context &, Stream &stream) {
        *made = nullptr;
        std::shared_ptr<Capture> capture = stream.capture;
        if (!capture)
          return sim().refuse(CUDA_ERROR_ILLEGAL_STATE,
                              "the stream is not captured");
        if (!capture->isOrigin(stream))
          return sim().spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                             "the capture began in another stream");
        if (!capture->mayEndHere())
          return sim().spoil(*capture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                             "the capture began in another thread");
        bool isJoined = capture->isJoined();
        Graph graph = capture->end();
        if (capture->isInvalid)
          return sim().refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                              "the capture is invalid");
        if (!isJoined)
          return sim().refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                              "what a stream has is not waited for in the end");
        uint64_t number = sim().nextNumber();
        sim().graphs[number] = std::make_shared<const Graph>(std::move(graph));
        *made = Simulator::handle<CUgraph>(number);
        return CUDA_SUCCESS;
      });
}

SIMGPU_ENTRY CUresult cuGraphDestroy(CUgraph handle) {
  return sim().enterContext("cuGraphDestroy", [&](Context &) {
    if (!sim().graphs.erase(Simulator::number(handle)))
      return sim().refuse(CUDA_ERROR_INVALID_VALUE, "there is no such graph");
    return CUDA_SUCCESS;
  });
}

SIMGPU_ENTRY CUresult cuGraphInstantiateWithFlags(CUgraphExec *made,
                                                  CUgraph handle,
                                                  unsigned long long flags) {
  // It takes memory, which no capture sees.
  return sim().enterUnsafe(
      "cuGraphInstantiateWithFlags", [&](Context &context) {
        auto graph = sim().graphs.find(Simulator::number(handle));
        if (graph == sim().graphs.end() || graph->second->context != &context)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                              "the graph is none of the context");
        if (flags)
          return sim().refuse(CUDA_ERROR_INVALID_VALUE, "no such flags here");
        constexpr size_t bytesEach = 256;
        uintptr_t memory = context.memory.allocate(
            bytesEach * (1 + graph->second->countItems()));
        if (!memory)
          return CUDA_ERROR_OUT_OF_MEMORY;
        uint64_t number = sim().nextNumber();
        sim().executables[number] = {graph->second, memory, nullptr};
        *made = Simulator::handle<CUgraphExec>(number);
        return CUDA_SUCCESS;
      });
}

/// Calls `body` with an executable graph of the context.
template <typename Body>
static CUresult withExecutable(Context &context, CUgraphExec handle,
                               Body &&body) {
  auto found = sim().executables.find(Simulator::number(handle));
  if (found == sim().executables.end() ||
      found->second.graph->context != &context)
    return sim().refuse(CUDA_ERROR_INVALID_VALUE,
                        "the executable graph is none of the context");
  return body(found->second);
}

SIMGPU_ENTRY CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return sim().enterUnsafe("cuGraphExecDestroy", [&](Context &context) {
    return withExecutable(context, handle, [&](GraphExec &executable) {
      context.memory.free(executable.memory);
      sim().executables.erase(Simulator::number(handle));
      return CUDA_SUCCESS;
    });
  });
}

namespace {

/// Puts a graph on streams of its own, a chain on each.
class GraphLaunch {
public:
  GraphLaunch(Context &context, const Graph &graph)
      : context(context), graph(graph) {}

  /// Why it is not to be launched; empty: nothing speaks against it.
  std::string findFault() const;
  /// Returns the end of all. It begins at `begin`.
  std::shared_ptr<Point> put(const std::shared_ptr<Point> &begin);

private:
  /// What the launch has in place of a point of the capture.
  std::shared_ptr<Point> find(const std::shared_ptr<Point> &captured) {
    std::shared_ptr<Point> &own = points[captured.get()];
    if (captured && !own)
      own = std::make_shared<Point>();
    return own;
  }
  void put(const Item &captured, Stream &stream);

  Context &context;
  const Graph &graph;
  std::map<const Point *, std::shared_ptr<Point>> points;
};

} // namespace

std::string GraphLaunch::findFault() const {
  for (const Chain &chain : graph.chains)
    for (const Item &item : chain.items) {
      for (Range used : item.uses)
        if (!sim().isThere(context, used))
          return "what it uses is gone: " + item.what;
      if (item.recorded && !sim().events.count(item.recorded))
        return "an event that it records is gone";
    }
  return "";
}

void GraphLaunch::put(const Item &captured, Stream &stream) {
  Item item = captured;
  item.awaited = find(captured.awaited);
  item.reached = find(captured.reached);
  if (item.recorded) {
    item.reached = std::make_shared<Point>();
    Event &event = sim().events.at(item.recorded);
    event.point = item.reached;
    event.recordedOn = stream.numberInThread;
  }
  if (item.reached)
    item.reached->stream = &stream;
  sim().scheduler->push(stream, std::move(item));
}

std::shared_ptr<Point> GraphLaunch::put(const std::shared_ptr<Point> &begin) {
  std::vector<Stream *> streams;
  for (const Chain &chain : graph.chains) {
    Stream &stream = sim().scheduler->create(context);
    stream.numberInThread = chain.numberInThread;
    streams.push_back(&stream);
    // Who waits for a point looks for what its stream has to do.
    for (const Item &item : chain.items)
      if (item.reached)
        find(item.reached)->stream = &stream;
  }
  std::shared_ptr<Point> end;
  for (size_t i = 0; i < streams.size(); ++i) {
    Item first, last;
    first.what = "the beginning of a graph's chain";
    first.awaited = begin;
    sim().scheduler->push(*streams[i], std::move(first));
    for (const Item &item : graph.chains[i].items)
      put(item, *streams[i]);
    last.what = "the end of a graph's chain";
    if (i == 0) {
      end = last.reached = std::make_shared<Point>();
      end->stream = streams[i];
    }
    // It is gone when that is done.
    streams[i]->isDestroyed = true;
    sim().scheduler->push(*streams[i], std::move(last));
  }
  return end;
}

SIMGPU_ENTRY CUresult cuGraphLaunch(CUgraphExec handle, CUstream on) {
  return sim().enterStream(
      "cuGraphLaunch", on, [&](Context &context, Stream &stream) {
        return withExecutable(
            context, handle, [&](GraphExec &executable) -> CUresult {
              if (stream.capture)
                return sim().spoil(*stream.capture,
                                   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                   "here are no graphs in graphs");
              GraphLaunch launch(context, *executable.graph);
              if (std::string why = launch.findFault(); !why.empty())
                return sim().refuse(CUDA_ERROR_INVALID_VALUE, why);
              Item first, last;
              first.what = "launching a graph";
              // One launch after another, whatever streams they are on.
              first.awaited = executable.end;
              auto begin = first.reached = std::make_shared<Point>();
              begin->stream = &stream;
              sim().scheduler->push(stream, std::move(first));
              last.what = "a graph";
              last.awaited = executable.end = launch.put(begin);
              sim().scheduler->push(stream, std::move(last));
              sim().setComputing(true);
              return CUDA_SUCCESS;
            });
      });
}
