//===- NcclLink.cpp - One rank's way to the others ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclWorld.h"

#include "ax/Runtime/CudaHandles.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <thread>
#include <utility>

namespace ax::rt::nccl {

NcclLink::~NcclLink() {
  // NCCL reclaims all communicators of a process when the last one is
  // destroyed; before, it only counts.
  if (!comms.empty())
    llvm::consumeError(cuda::enterCard(device));
  // Those that share another one's resources before that.
  for (const std::shared_ptr<NcclComm> &comm : llvm::reverse(comms))
    if (ncclComm_t handle = comm->handle)
      llvm::consumeError(
          world.getLibrary().call(&Nccl::ncclCommDestroy, handle));
}

llvm::Error NcclLink::create() {
  auto stream = device.createStream(StreamPriority::High);
  if (!stream)
    return stream.takeError();
  wire = std::move(*stream);
  for (CountingMark *mark : {&begun, &done})
    if (llvm::Error error = mark->create(device))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<NcclComm>>
NcclLink::join(const std::vector<int32_t> &ranks, ncclUniqueId id) {
  auto comm = std::make_shared<NcclComm>();
  comm->attendance = world.getAttendance(ranks);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  // What is split from it uses its connections and its memory. That one of them
  // is aborted with all others is as ranks are stopped in any case.
  config.splitShare = 1;
  auto index = static_cast<int>(llvm::find(ranks, getRank()) - ranks.begin());
  // In a group the handle comes at its end.
  static_assert(sizeof(comm->handle) == sizeof(ncclComm_t) &&
                std::atomic<ncclComm_t>::is_always_lock_free);
  llvm::Error error = cuda::enterCard(device);
  if (!error)
    error = world.getLibrary().call(
        &Nccl::ncclCommInitRankConfig,
        reinterpret_cast<ncclComm_t *>(&comm->handle),
        static_cast<int>(ranks.size()), id, index, &config);
  if (error)
    return addRank(std::move(error));
  {
    std::lock_guard<std::mutex> lock(calling);
    for (NcclBuffer *buffer : buffers)
      introduce(*buffer, comm);
  }
  std::lock_guard<std::mutex> lock(mutex);
  comms.push_back(comm);
  return comm;
}

llvm::Error NcclLink::addRank(llvm::Error error) const {
  return addContext(
      std::move(error),
      llvm::formatv("rank {0}, card {1}", getRank(), device.getCard()).str());
}

llvm::Expected<std::shared_ptr<NcclComm>>
NcclLink::split(const NcclComm &parent, const std::vector<int32_t> &ranks,
                int color) {
  std::lock_guard<std::mutex> lock(calling);
  if (isStopped)
    return stopError("a split of NCCL's communicator");
  auto comm = std::make_shared<NcclComm>();
  auto key = static_cast<int>(llvm::find(ranks, getRank()) - ranks.begin());
  ncclComm_t handle = nullptr;
  llvm::Error error = cuda::enterCard(device);
  if (!error)
    error = world.getLibrary().call(&Nccl::ncclCommSplit, parent.handle.load(),
                                    color, key, &handle,
                                    static_cast<ncclConfig_t *>(nullptr));
  if (error && world.isAborted()) {
    llvm::consumeError(std::move(error));
    return stopError("a split of NCCL's communicator");
  }
  if (error)
    return addRank(std::move(error));
  if (ranks.empty())
    return nullptr;
  comm->handle = handle;
  comm->attendance = world.getAttendance(ranks);
  for (NcclBuffer *buffer : buffers)
    introduce(*buffer, comm);
  {
    std::lock_guard<std::mutex> guard(mutex);
    comms.push_back(comm);
  }
  if (!world.isAborted())
    return comm;
  // Who aborted may have waited no longer for this call, and not know of it.
  if (ncclComm_t late = comm->handle.exchange(nullptr))
    llvm::consumeError(world.getLibrary().call(&Nccl::ncclCommAbort, late));
  return stopError("a split of NCCL's communicator");
}

std::vector<std::shared_ptr<NcclComm>> NcclLink::getComms() const {
  std::lock_guard<std::mutex> lock(mutex);
  return comms;
}

std::unique_ptr<NcclBuffer> NcclLink::allocate(int64_t bytes) {
  std::lock_guard<std::mutex> lock(calling);
  auto buffer = std::make_unique<NcclBuffer>();
  buffer->bytes = bytes;
  llvm::Error error = cuda::enterCard(device);
  if (!error)
    error =
        world.getLibrary().call(&Nccl::ncclMemAlloc, &buffer->address, bytes);
  // Who allocates other memory then finds out why there is none.
  if (error) {
    llvm::consumeError(std::move(error));
    return nullptr;
  }
  for (const std::shared_ptr<NcclComm> &comm : getComms())
    introduce(*buffer, comm);
  buffers.push_back(buffer.get());
  return buffer;
}

void NcclLink::introduce(NcclBuffer &buffer,
                         const std::shared_ptr<NcclComm> &comm) {
  ncclComm_t handle = comm->handle;
  void *known = nullptr;
  if (!handle)
    return;
  // What a communicator does not know, it copies.
  if (llvm::Error error =
          world.getLibrary().call(&Nccl::ncclCommRegister, handle,
                                  buffer.address, buffer.bytes, &known))
    llvm::consumeError(std::move(error));
  else
    buffer.handles.emplace_back(comm, known);
}

void NcclLink::free(NcclBuffer &buffer) {
  std::lock_guard<std::mutex> lock(calling);
  llvm::erase(buffers, &buffer);
  llvm::consumeError(cuda::enterCard(device));
  const Nccl &library = world.getLibrary();
  // One that was aborted has forgotten all.
  for (const auto &[comm, known] : buffer.handles)
    if (ncclComm_t handle = comm->handle)
      llvm::consumeError(
          library.call(&Nccl::ncclCommDeregister, handle, known));
  llvm::consumeError(library.call(&Nccl::ncclMemFree, buffer.address));
}

llvm::Expected<DeviceAddress> NcclLink::getScratch() {
  if (scratch && scratch->getSize() >= wantedScratch)
    return scratch->getAddress();
  // What is on the wire may use it: once, when the first operation begins.
  if (llvm::Error error = wire->synchronize())
    return error;
  scratch.reset();
  auto allocated = device.allocate(wantedScratch);
  if (!allocated)
    return allocated.takeError();
  scratch = std::move(*allocated);
  return scratch->getAddress();
}

llvm::Error NcclLink::begin(const std::shared_ptr<const Description> &what,
                            uint64_t &number) {
  if (isStopped)
    return stopError(what->text);
  if (isCapturing) {
    captured.push_back(what);
    number = numIssued + captured.size();
    return llvm::Error::success();
  }
  std::lock_guard<std::mutex> lock(mutex);
  add(what);
  number = numIssued;
  return llvm::Error::success();
}

void NcclLink::add(const std::shared_ptr<const Description> &what) {
  Issued &issued = ring[++numIssued % mostIssued];
  issued.what = what;
  if (what->attendance)
    issued.sequence = what->attendance->counts[what->index].fetch_add(
                          1, std::memory_order_relaxed) +
                      1;
}

void NcclLink::beginCapture() {
  isCapturing = true;
  captured.clear();
  for (CountingMark *mark : {&begun, &done})
    mark->beginCapture(numIssued);
}

std::vector<std::shared_ptr<const Description>> NcclLink::endCapture() {
  isCapturing = false;
  for (CountingMark *mark : {&begun, &done})
    mark->endCapture();
  return std::exchange(captured, {});
}

llvm::Error NcclLink::beginLaunch(
    const std::vector<std::shared_ptr<const Description>> &operations) {
  if (isStopped)
    return stopError("a step");
  std::lock_guard<std::mutex> lock(mutex);
  // All that was issued before is done.
  for (CountingMark *mark : {&done, &begun})
    mark->beginLaunch(numIssued, numIssued);
  for (const std::shared_ptr<const Description> &what : operations)
    add(what);
  return llvm::Error::success();
}

llvm::Error NcclLink::callTogether(
    llvm::function_ref<llvm::Error(const Nccl &, CUstream_st *)> calls) {
  std::lock_guard<std::mutex> lock(calling);
  if (isStopped)
    return stopError("a call of NCCL");
  const Nccl &library = world.getLibrary();
  if (llvm::Error error = cuda::enterCard(device))
    return error;
  if (llvm::Error error = library.call(&Nccl::ncclGroupStart))
    return error;
  llvm::Error error = calls(library, cuda::getHandle(*wire));
  llvm::Error end = library.call(&Nccl::ncclGroupEnd);
  if (!error)
    return end;
  // What the end says of it is the same once more.
  llvm::consumeError(std::move(end));
  return error;
}

llvm::Error NcclLink::issue(
    const std::shared_ptr<const Description> &what,
    llvm::function_ref<llvm::Error()> before,
    llvm::function_ref<llvm::Error(const Nccl &, CUstream_st *)> calls,
    llvm::function_ref<llvm::Error()> behind) {
  uint64_t number = 0;
  if (llvm::Error error = begin(what, number))
    return error;
  llvm::Error error = begun.set(*wire, number);
  if (!error)
    error = before();
  if (!error)
    error = callTogether(calls);
  if (!error)
    error = behind();
  if (!error)
    error = done.set(*wire, number);
  if (!error)
    return error;
  // Whose communicator another thread has aborted meanwhile is told why.
  if (world.isAborted()) {
    llvm::consumeError(std::move(error));
    return stopError(what->text);
  }
  return addContext(
      std::move(error),
      llvm::formatv("rank {0}: {1}", getRank(), what->text).str());
}

llvm::Error NcclLink::stopError(const std::string &operation) const {
  return makeErrorf(ExitCode::RunFailed, "rank {0}: stopped in {1}: {2}",
                    getRank(), operation, world.getAbortReason());
}

llvm::Error NcclLink::getLateError() const {
  if (!world.isAborted())
    return llvm::Error::success();
  std::lock_guard<std::mutex> lock(mutex);
  return stopError(stoppedIn.empty() ? "nothing" : stoppedIn);
}

NcclLink::Issued NcclLink::findUnderWay() const {
  uint64_t number = done.get() + 1;
  if (number > std::min(begun.get(), numIssued) ||
      numIssued - number >= mostIssued)
    return {};
  return ring[number % mostIssued];
}

std::vector<int32_t> NcclLink::findMissing(const Issued &issued) {
  std::vector<int32_t> missing;
  if (const Attendance *all = issued.what->attendance.get())
    for (size_t i = 0; i < all->ranks.size(); ++i)
      if (all->isHere[i] &&
          all->counts[i].load(std::memory_order_relaxed) < issued.sequence)
        missing.push_back(all->ranks[i]);
  return missing.empty() ? issued.what->others : missing;
}

std::string NcclLink::findFault(std::chrono::steady_clock::time_point now) {
  if (isStopped)
    return "";
  // A rank that is inside NCCL finds itself what fails there.
  if (std::unique_lock<std::mutex> lock(calling, std::try_to_lock); lock)
    for (const std::shared_ptr<NcclComm> &comm : getComms()) {
      ncclResult_t result = ncclSuccess;
      ncclComm_t handle = comm->handle;
      if (!handle)
        continue;
      llvm::Error error = world.getLibrary().call(&Nccl::ncclCommGetAsyncError,
                                                  handle, &result);
      if (!error && result != ncclSuccess && result != ncclInProgress)
        error = world.getLibrary().describe("what NCCL does", result);
      if (error)
        return llvm::formatv("rank {0}: {1}", getRank(),
                             llvm::toString(std::move(error)));
    }
  uint64_t numDone = done.get();
  if (begun.get() <= numDone || numDone != lastDone ||
      lastProgress == std::chrono::steady_clock::time_point()) {
    lastDone = numDone;
    lastProgress = now;
    return "";
  }
  if (world.getTimeout().count() == 0 ||
      now - lastProgress < world.getTimeout())
    return "";
  std::lock_guard<std::mutex> lock(mutex);
  Issued issued = findUnderWay();
  if (!issued.what)
    return "";
  std::vector<int32_t> missing = findMissing(issued);
  auto name = [](int32_t rank) { return std::to_string(rank); };
  return llvm::formatv("rank {0}: {1}: waited {2} ms for rank{3} {4}",
                       getRank(), issued.what->text, world.getTimeout().count(),
                       missing.size() == 1 ? "" : "s",
                       llvm::join(llvm::map_range(missing, name), ", "));
}

void NcclLink::stop() {
  std::lock_guard<std::mutex> lock(mutex);
  if (isStopped.exchange(true))
    return;
  if (std::shared_ptr<const Description> what = findUnderWay().what)
    stoppedIn = what->text;
}

void NcclLink::abort(std::chrono::steady_clock::time_point until) {
  // The rank's thread may be inside NCCL, and wait there for who will not come:
  // to end that, NCCL wants to be called beside it.
  std::unique_lock<std::mutex> lock(calling, std::defer_lock);
  while (!lock.try_lock() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  llvm::consumeError(cuda::enterCard(device));
  std::vector<std::shared_ptr<NcclComm>> all = getComms();
  for (const std::shared_ptr<NcclComm> &comm : llvm::reverse(all))
    if (ncclComm_t handle = comm->handle.exchange(nullptr))
      llvm::consumeError(world.getLibrary().call(&Nccl::ncclCommAbort, handle));
}

void NcclLink::settle(std::chrono::steady_clock::time_point until) {
  llvm::Expected<bool> isDone = wire->isDone();
  while (isDone && !*isDone && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    isDone = wire->isDone();
  }
  if (!isDone)
    llvm::consumeError(isDone.takeError());
}

} // namespace ax::rt::nccl
