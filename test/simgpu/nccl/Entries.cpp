//===- Entries.cpp - The simulated NCCL's functions -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Calls.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sys/random.h>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace simnccl;

namespace {

/// A call that is not on a stream yet.
struct Pending {
  std::shared_ptr<Comm> comm;
  cudaStream_t stream;
  Shape shape;
  const void *from;
  void *to;
  size_t fromBytes, toBytes;
  /// Of a message.
  int peer;
};

/// A group that the thread is in.
struct Group {
  int depth = 0;
  std::vector<Pending> calls;
  std::vector<std::shared_ptr<Comm>> joining;
  ncclResult_t error = ncclSuccess;
};
thread_local Group group;

uint64_t numberOf(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

/// How long a rank waits for others that make communicators with it.
constexpr std::chrono::seconds joinPatience(20);

bool isAborted(const Comm &comm) {
  std::lock_guard<std::mutex> lock(globalMutex());
  return *comm.isAborted;
}

template <typename Condition>
ncclResult_t await(const Comm &comm, Condition areThere, const char *why) {
  auto begin = std::chrono::steady_clock::now();
  while (!areThere()) {
    if (isAborted(comm))
      return refuse(ncclInternalError, "the communicator was aborted");
    if (std::chrono::steady_clock::now() - begin > joinPatience)
      return refuse(ncclSystemError, why);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return ncclSuccess;
}

ncclResult_t awaitJoined(const std::shared_ptr<Comm> &comm) {
  return await(
      *comm, [&] { return comm->table->areAllThere(); },
      "not all ranks have joined");
}

/// Makes the communicator of an identity, with what it has already, and waits
/// for its other ranks.
ncclResult_t join(const std::shared_ptr<Comm> &comm, const ncclUniqueId &id,
                  int size, int rank, ncclComm_t *handle) {
  comm->id = id;
  comm->table = Table::open(id, size);
  if (!comm->table)
    return refuse(ncclSystemError, "there is no shared memory");
  if (comm->table->getSize() != size)
    return refuse(ncclInvalidUsage, "others are of another number");
  std::string why = comm->table->join(rank, comm->card);
  if (!why.empty())
    return refuse(ncclInvalidUsage, why);
  comm->rank = rank;
  {
    std::lock_guard<std::mutex> lock(globalMutex());
    *handle = reinterpret_cast<ncclComm_t>(comm.get());
    comms()[*handle] = comm;
  }
  if (group.depth == 0)
    return awaitJoined(comm);
  group.joining.push_back(comm);
  return ncclSuccess;
}

/// The call's number among those that it is to meet in order.
uint64_t numberCall(const Pending &call) {
  std::lock_guard<std::mutex> lock(globalMutex());
  Comm &comm = *call.comm;
  if (call.shape.kind != Kind::Message)
    return ++comm.numCollectives;
  return ++(call.from ? comm.numSent : comm.numReceived)[call.peer];
}

/// Puts calls of one communicator on its stream.
ncclResult_t enqueue(const std::vector<const Pending *> &calls) {
  const Pending &first = *calls.front();
  std::vector<SimgpuRange> ranges;
  // Each call, and where its tensors are among the ranges.
  std::vector<std::tuple<Pending, int, int>> parts;
  std::string what;
  for (const Pending *call : calls) {
    auto add = [&](const void *address, size_t bytes) {
      if (bytes == 0)
        return -1;
      ranges.push_back({numberOf(address), bytes});
      return static_cast<int>(ranges.size()) - 1;
    };
    if (std::max(call->fromBytes, call->toBytes) > placeBytes)
      return refuse(ncclSystemError, "a tensor is larger than can be here");
    int from = add(call->from, call->fromBytes);
    int to = add(call->to, call->toBytes);
    parts.emplace_back(*call, from, to);
    what += (what.empty() ? "" : ", ") + call->shape.describe();
  }
  static auto *push =
      simgpu::findDriverFunction<decltype(simgpuEnqueue)>("simgpuEnqueue");
  using Places = std::vector<unsigned char *>;
  // A graph's calls get their numbers when it is launched.
  auto make = [comm = first.comm, parts = std::move(parts)] {
    auto batch = std::make_shared<Batch>(comm);
    for (const auto &[call, from, to] : parts)
      batch->add(
          Step(call.shape, call.peer, call.from, numberCall(call), from, to));
    std::lock_guard<std::mutex> lock(globalMutex());
    ++comm->numWaiting;
    return SimgpuPiece{
        [batch](const Places &) { batch->end(); },
        [batch](const Places &places) { return batch->isReady(places); }};
  };
  if (push(first.stream, what, ranges, std::move(make)))
    return ncclUnhandledCudaError;
  return ncclSuccess;
}

ncclResult_t endGroup() {
  Group ended = std::move(group);
  group = Group();
  if (ended.error)
    return ended.error;
  for (const std::shared_ptr<Comm> &comm : ended.joining)
    if (ncclResult_t result = awaitJoined(comm))
      return result;
  // Each communicator's calls are one piece of work on each stream.
  std::vector<
      std::pair<std::pair<Comm *, cudaStream_t>, std::vector<const Pending *>>>
      batches;
  for (const Pending &call : ended.calls) {
    std::pair key(call.comm.get(), call.stream);
    auto found = batches.begin();
    while (found != batches.end() && found->first != key)
      ++found;
    if (found == batches.end())
      found = batches.insert(found, {key, {}});
    found->second.push_back(&call);
  }
  for (const auto &batch : batches)
    if (ncclResult_t result = enqueue(batch.second))
      return result;
  return ncclSuccess;
}

ncclResult_t checkCall(const Pending &call, uint64_t context) {
  if (*call.comm->isAborted)
    return refuse(ncclInvalidUsage, "the communicator was aborted");
  if (call.comm->context != context)
    return refuse(ncclInvalidUsage,
                  "the communicator is of another context than the thread's");
  size_t size = bytesOf(static_cast<ncclDataType_t>(call.shape.type));
  if (size == 0)
    return refuse(ncclInvalidArgument, "there is no such type");
  if (numberOf(call.from) % size || numberOf(call.to) % size)
    return refuse(ncclInvalidArgument, "a tensor is not aligned");
  uint64_t from = numberOf(call.from), to = numberOf(call.to);
  bool meet = call.from && call.to && from < to + call.toBytes &&
              to < from + call.fromBytes;
  if (meet && !(call.shape.kind == Kind::AllReduce && from == to))
    return refuse(ncclInvalidArgument, "tensors overlap");
  return ncclSuccess;
}

/// A call of communication. Counts are of elements, on each side.
ncclResult_t call(const char *name, Kind kind, const void *from,
                  size_t fromCount, void *to, size_t toCount, size_t count,
                  ncclDataType_t type, ncclRedOp_t reduction, int peer,
                  ncclComm_t handle, cudaStream_t stream) {
  uint64_t context = 0;
  ncclResult_t result = enter(name, &context);
  std::shared_ptr<Comm> comm = findComm(handle);
  if (!result && !comm)
    result = refuse(ncclInvalidArgument, "there is no such communicator");
  Pending pending{comm,
                  stream,
                  {kind, type, reduction, count},
                  from,
                  to,
                  fromCount * bytesOf(type),
                  toCount * bytesOf(type),
                  peer};
  if (!result)
    result = checkCall(pending, context);
  if (!result && kind == Kind::Message &&
      (peer < 0 || peer >= comm->table->getSize() || peer == comm->rank))
    result = refuse(ncclInvalidArgument, "there is no such rank");
  bool isGrouped = group.depth > 0;
  if (result) {
    if (isGrouped && !group.error)
      group.error = result;
    return result;
  }
  group.calls.push_back(std::move(pending));
  return isGrouped ? ncclSuccess : endGroup();
}

size_t sizeOf(ncclComm_t handle) {
  std::shared_ptr<Comm> comm = findComm(handle);
  return comm ? static_cast<size_t>(comm->table->getSize()) : 0;
}

} // namespace

SIMNCCL_ENTRY ncclResult_t ncclGetVersion(int *version) {
  const char *text = std::getenv("SIMGPU_NCCL_VERSION");
  *version = text ? std::atoi(text) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (ncclResult_t result = enter("ncclGetUniqueId"))
    return result;
  std::memset(id, 0, sizeof(*id));
  if (getrandom(id->internal, 16, 0) != 16)
    return refuse(ncclSystemError, "there are no random numbers");
  return ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclCommInitRankConfig(ncclComm_t *handle, int size,
                                                  ncclUniqueId id, int rank,
                                                  ncclConfig_t *config) {
  uint64_t context = 0;
  if (ncclResult_t result = enter("ncclCommInitRankConfig", &context))
    return result;
  if (!context)
    return refuse(ncclInvalidUsage, "no context is the calling thread's");
  if (config && config->magic != 0xcafebeef)
    return refuse(ncclInvalidArgument, "the configuration has no beginning");
  if (size < 1 || size > mostRanks || rank < 0 || rank >= size)
    return refuse(ncclInvalidArgument, "there is no such rank");
  auto comm = std::make_shared<Comm>();
  // Cards of processes are not told apart by their contexts alone; those that
  // may share one are as if each had its own.
  static std::atomic<uint64_t> numShared{0};
  uint64_t card =
      std::getenv("NCCL_MULTI_RANK_GPU_ENABLE") ? ++numShared << 56 : context;
  comm->card = static_cast<uint64_t>(getpid()) << 24 ^ card;
  comm->context = context;
  comm->splitShares = config && config->splitShare == 1;
  return join(comm, id, size, rank, handle);
}

/// The identity of those with this color in a parent's split.
static ncclUniqueId idOfSplit(const Comm &parent, int color) {
  ncclUniqueId id = {};
  for (uint64_t half = 0; half < 2; ++half) {
    uint64_t hash = 14695981039346656037ULL + half;
    auto add = [&](const void *data, size_t size) {
      for (size_t i = 0; i < size; ++i)
        hash = (hash ^ static_cast<const unsigned char *>(data)[i]) *
               1099511628211ULL;
    };
    add(parent.id.internal, 16);
    add(&parent.numSplits, sizeof(parent.numSplits));
    add(&color, sizeof(color));
    std::memcpy(id.internal + 8 * half, &hash, sizeof(hash));
  }
  return id;
}

SIMNCCL_ENTRY ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key,
                                         ncclComm_t *made,
                                         ncclConfig_t *config) {
  uint64_t context = 0;
  if (ncclResult_t result = enter("ncclCommSplit", &context))
    return result;
  *made = nullptr;
  std::shared_ptr<Comm> parent = findComm(handle);
  if (!parent)
    return refuse(ncclInvalidArgument, "there is no such communicator");
  if (parent->context != context)
    return refuse(ncclInvalidUsage,
                  "the communicator is of another context than the thread's");
  if (config || group.depth > 0 || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
    return refuse(ncclInvalidArgument, "that is not known here of splits");
  // All ranks of the parent come to each of its splits.
  Table &table = *parent->table;
  uint64_t number = ++parent->numSplits;
  auto await = [&](std::atomic<uint64_t> Split::*count, uint64_t least) {
    return ::await(
        *parent,
        [&] {
          for (int rank = 0; rank < table.getSize(); ++rank)
            if (table.getSplit(rank).*count < least)
              return false;
          return true;
        },
        "not all ranks have come to the split");
  };
  if (ncclResult_t result = await(&Split::numTaken, number - 1))
    return result;
  Split &mine = table.getSplit(parent->rank);
  mine.color = color;
  mine.key = key;
  mine.numGiven = number;
  if (ncclResult_t result = await(&Split::numGiven, number))
    return result;
  std::vector<std::pair<int, int>> members;
  for (int rank = 0; rank < table.getSize(); ++rank)
    if (table.getSplit(rank).color == color)
      members.emplace_back(table.getSplit(rank).key, rank);
  mine.numTaken = number;
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  std::sort(members.begin(), members.end());
  auto place =
      std::find(members.begin(), members.end(), std::pair(key, parent->rank));
  auto comm = std::make_shared<Comm>();
  comm->card = parent->card;
  comm->context = context;
  comm->splitShares = parent->splitShares;
  if (parent->splitShares)
    comm->isAborted = parent->isAborted;
  return join(comm, idOfSplit(*parent, color), static_cast<int>(members.size()),
              static_cast<int>(place - members.begin()), made);
}

/// Takes the handle away; null where there is none.
static std::shared_ptr<Comm> takeComm(ncclComm_t handle) {
  std::lock_guard<std::mutex> lock(globalMutex());
  auto found = comms().find(handle);
  if (found == comms().end())
    return nullptr;
  std::shared_ptr<Comm> comm = std::move(found->second);
  comms().erase(found);
  return comm;
}

SIMNCCL_ENTRY ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  if (ncclResult_t result = enter("ncclCommDestroy"))
    return result;
  std::shared_ptr<Comm> comm = takeComm(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "there is no such communicator");
  if (comm->numWaiting)
    return refuse(ncclInvalidUsage, "streams have still to do something of it");
  return ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclCommAbort(ncclComm_t handle) {
  if (ncclResult_t result = enter("ncclCommAbort"))
    return result;
  std::shared_ptr<Comm> comm = takeComm(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "there is no such communicator");
  std::lock_guard<std::mutex> lock(globalMutex());
  *comm->isAborted = true;
  return ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclCommGetAsyncError(ncclComm_t handle,
                                                 ncclResult_t *error) {
  std::shared_ptr<Comm> comm = findComm(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "there is no such communicator");
  std::lock_guard<std::mutex> lock(globalMutex());
  *error = comm->fault;
  return ncclSuccess;
}

SIMNCCL_ENTRY const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error"};
  return result >= 0 && result < 7 ? texts[result] : "unknown result code";
}

SIMNCCL_ENTRY const char *ncclGetLastError(ncclComm_t) { return ""; }

SIMNCCL_ENTRY ncclResult_t ncclGroupStart() {
  ncclResult_t result = enter("ncclGroupStart");
  if (!result)
    ++group.depth;
  return result;
}

SIMNCCL_ENTRY ncclResult_t ncclGroupEnd() {
  ncclResult_t result = enter("ncclGroupEnd");
  if (group.depth == 0)
    return refuse(ncclInvalidUsage, "there is no group");
  if (result && !group.error)
    group.error = result;
  return --group.depth == 0 ? endGroup() : ncclSuccess;
}

SIMNCCL_ENTRY ncclResult_t ncclAllReduce(const void *from, void *to,
                                         size_t count, ncclDataType_t type,
                                         ncclRedOp_t reduction, ncclComm_t comm,
                                         cudaStream_t stream) {
  return call("ncclAllReduce", Kind::AllReduce, from, count, to, count, count,
              type, reduction, -1, comm, stream);
}

SIMNCCL_ENTRY ncclResult_t ncclAllGather(const void *from, void *to,
                                         size_t count, ncclDataType_t type,
                                         ncclComm_t comm, cudaStream_t stream) {
  return call("ncclAllGather", Kind::AllGather, from, count, to,
              count * sizeOf(comm), count, type, ncclSum, -1, comm, stream);
}

SIMNCCL_ENTRY ncclResult_t ncclReduceScatter(const void *from, void *to,
                                             size_t count, ncclDataType_t type,
                                             ncclRedOp_t reduction,
                                             ncclComm_t comm,
                                             cudaStream_t stream) {
  return call("ncclReduceScatter", Kind::ReduceScatter, from,
              count * sizeOf(comm), to, count, count, type, reduction, -1, comm,
              stream);
}

SIMNCCL_ENTRY ncclResult_t ncclSend(const void *from, size_t count,
                                    ncclDataType_t type, int peer,
                                    ncclComm_t comm, cudaStream_t stream) {
  return call("ncclSend", Kind::Message, from, count, nullptr, 0, count, type,
              ncclSum, peer, comm, stream);
}

SIMNCCL_ENTRY ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type,
                                    int peer, ncclComm_t comm,
                                    cudaStream_t stream) {
  return call("ncclRecv", Kind::Message, nullptr, 0, to, count, count, type,
              ncclSum, peer, comm, stream);
}
