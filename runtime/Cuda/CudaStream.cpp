//===- CudaStream.cpp - Streams, events and marks of a card ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaStream.h"

#include "BoxCopies.h"
#include "CudaKernel.h"
#include "CudaMemory.h"
#include "CudaProducts.h"

#include "ax/Runtime/Program.h"

#include "llvm/Support/ErrorHandling.h"

#include <new>

namespace ax::rt::cuda {

namespace {

class CudaEvent : public Event {
public:
  CudaEvent(SharedCard card, CUevent event)
      : card(std::move(card)), event(event) {}
  ~CudaEvent() override {
    llvm::consumeError(card->call(&Driver::cuEventDestroy, event));
  }
  CUevent get() const { return event; }
  llvm::Expected<bool> isDone() const override {
    return card->ask(&Driver::cuEventQuery, event);
  }
  llvm::Error synchronize() const override {
    return card->call(&Driver::cuEventSynchronize, event);
  }
  llvm::Expected<std::chrono::nanoseconds>
  since(const Event &earlier) const override {
    float milliseconds = 0;
    if (llvm::Error error =
            card->call(&Driver::cuEventElapsedTime, &milliseconds,
                       static_cast<const CudaEvent &>(earlier).event, event))
      return error;
    return std::chrono::nanoseconds(
        static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6));
  }

private:
  SharedCard card;
  CUevent event;
};

class CudaMark : public Mark {
public:
  CudaMark(std::unique_ptr<PinnedMemory> memoryIn, CUdeviceptr address)
      : Mark(new (memoryIn->getData()) std::atomic<uint64_t>(0)),
        memory(std::move(memoryIn)), address(address) {}
  CUdeviceptr getAddress() const { return address; }

private:
  std::unique_ptr<PinnedMemory> memory;
  CUdeviceptr address;
};

// The card writes to it as to a plain number.
static_assert(sizeof(std::atomic<uint64_t>) == sizeof(cuuint64_t) &&
              std::atomic<uint64_t>::is_always_lock_free);

class CudaGraph : public StreamGraph {
public:
  CudaGraph(SharedCard card, CUgraphExec graph)
      : card(std::move(card)), graph(graph) {}
  ~CudaGraph() override {
    llvm::consumeError(card->call(&Driver::cuGraphExecDestroy, graph));
  }
  llvm::Error launch(Stream &stream) override;

private:
  SharedCard card;
  CUgraphExec graph;
};

class CudaStream : public Stream {
public:
  CudaStream(SharedCard card, CUstream stream)
      : card(std::move(card)), stream(stream) {}
  ~CudaStream() override {
    llvm::consumeError(card->call(&Driver::cuStreamDestroy, stream));
  }

  llvm::Error launch(const DeviceKernel &kernel, const DeviceAddress *buffers,
                     const int64_t *scalars, DeviceAddress workspace) override {
    return static_cast<const CudaKernel &>(kernel).launch(
        *card, stream, buffers, scalars, workspace);
  }
  llvm::Error execute(LibraryOp &op, const DeviceAddress *arguments,
                      DeviceAddress workspace) override {
    return static_cast<CudaOp &>(op).execute(stream, arguments, workspace);
  }
  llvm::Error copyStrided(const CopyCommand &command, DeviceAddress source,
                          DeviceAddress destination) override {
    StridedBox box = boxOf(command);
    if (box.isSingleRun())
      return card->call(&Driver::cuMemcpyDtoDAsync, toCuda(destination),
                        toCuda(source), static_cast<size_t>(box.getRunBytes()),
                        stream);
    return forEachCopy(box, toCuda(source), toCuda(destination),
                       card->getMaxPitch(), [&](const CUDA_MEMCPY3D &copy) {
                         return card->call(&Driver::cuMemcpy3DAsync, &copy,
                                           stream);
                       });
  }
  llvm::Error clear(DeviceAddress memory, int64_t bytes) override {
    if (bytes == 0)
      return llvm::Error::success();
    return card->call(&Driver::cuMemsetD8Async, toCuda(memory),
                      static_cast<unsigned char>(0), static_cast<size_t>(bytes),
                      stream);
  }
  llvm::Error upload(const PinnedMemory &host, int64_t offset,
                     DeviceAddress device, int64_t bytes) override {
    if (bytes == 0)
      return llvm::Error::success();
    return card->call(&Driver::cuMemcpyHtoDAsync, toCuda(device),
                      static_cast<const char *>(host.getData()) + offset,
                      static_cast<size_t>(bytes), stream);
  }
  llvm::Error download(DeviceAddress device, PinnedMemory &host, int64_t offset,
                       int64_t bytes) override {
    if (bytes == 0)
      return llvm::Error::success();
    return card->call(&Driver::cuMemcpyDtoHAsync,
                      static_cast<char *>(host.getData()) + offset,
                      toCuda(device), static_cast<size_t>(bytes), stream);
  }
  llvm::Error record(Event &event) override {
    return card->call(&Driver::cuEventRecord,
                      static_cast<CudaEvent &>(event).get(), stream);
  }
  llvm::Error wait(const Event &event) override {
    return card->call(&Driver::cuStreamWaitEvent, stream,
                      static_cast<const CudaEvent &>(event).get(), 0U);
  }
  llvm::Error set(Mark &mark, uint64_t number) override {
    return card->call(&Driver::cuStreamWriteValue64, stream,
                      static_cast<CudaMark &>(mark).getAddress(), number,
                      static_cast<unsigned>(CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  // Other ranks' threads go on allocating while this one's streams are
  // captured.
  llvm::Error beginCapture() override {
    return card->call(&Driver::cuStreamBeginCapture, stream,
                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  }
  llvm::Expected<std::unique_ptr<StreamGraph>> endCapture() override {
    CUgraph graph = nullptr;
    if (llvm::Error error =
            card->call(&Driver::cuStreamEndCapture, stream, &graph))
      return error;
    CUgraphExec made = nullptr;
    llvm::Error error =
        card->call(&Driver::cuGraphInstantiateWithFlags, &made, graph, 0ULL);
    llvm::consumeError(card->call(&Driver::cuGraphDestroy, graph));
    if (error)
      return error;
    return std::make_unique<CudaGraph>(card, made);
  }
  llvm::Error recordAtLaunch(Event &event) override {
    return card->call(&Driver::cuEventRecordWithFlags,
                      static_cast<CudaEvent &>(event).get(), stream,
                      static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL));
  }
  llvm::Expected<bool> isDone() override {
    return card->ask(&Driver::cuStreamQuery, stream);
  }
  llvm::Error synchronize() override {
    return card->call(&Driver::cuStreamSynchronize, stream);
  }
  CUstream get() const { return stream; }

private:
  SharedCard card;
  CUstream stream;
};

llvm::Error CudaGraph::launch(Stream &stream) {
  return card->call(&Driver::cuGraphLaunch, graph,
                    static_cast<CudaStream &>(stream).get());
}

} // namespace

CUstream getHandle(const Stream &stream) {
  return static_cast<const CudaStream &>(stream).get();
}

llvm::Expected<std::unique_ptr<Stream>> makeStream(const SharedCard &card,
                                                   StreamPriority priority) {
  CUstream stream = nullptr;
  if (llvm::Error error =
          card->call(&Driver::cuStreamCreateWithPriority, &stream,
                     static_cast<unsigned>(CU_STREAM_NON_BLOCKING),
                     card->getPriority(priority)))
    return error;
  return std::make_unique<CudaStream>(card, stream);
}

llvm::Expected<std::unique_ptr<Event>> makeEvent(const SharedCard &card,
                                                 bool isTimed) {
  CUevent event = nullptr;
  if (llvm::Error error =
          card->call(&Driver::cuEventCreate, &event,
                     static_cast<unsigned>(isTimed ? CU_EVENT_DEFAULT
                                                   : CU_EVENT_DISABLE_TIMING)))
    return error;
  return std::make_unique<CudaEvent>(card, event);
}

llvm::Expected<std::unique_ptr<Mark>> makeMark(const SharedCard &card) {
  auto memory = allocatePinned(card, sizeof(uint64_t));
  if (!memory)
    return memory.takeError();
  CUdeviceptr address = 0;
  if (llvm::Error error = card->call(&Driver::cuMemHostGetDevicePointer,
                                     &address, (*memory)->getData(), 0U))
    return error;
  return std::make_unique<CudaMark>(std::move(*memory), address);
}

} // namespace ax::rt::cuda
