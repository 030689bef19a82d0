//===- Module.cpp - libax-mpi.so: calls of MPI ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only source that includes mpi.h. It is a library of its own, without
// LLVM; see ModuleTable.h.
//
// Messages are started anew each time, with datatypes that were committed when
// the batch was made: persistent requests are bound to addresses, which change
// from start to start.
//
//===----------------------------------------------------------------------===//

#include "ModuleTable.h"

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <mpi.h>
#include <string>
#include <thread>
#include <vector>

namespace {

/// What people are told, cut to this; such messages need no partner to leave.
constexpr int shoutBytes = 1024;

using Clock = std::chrono::steady_clock;
/// How long receives are waited for that have been given up.
constexpr std::chrono::milliseconds receivePatience(500);

/// One datatype that is freed with it; predefined ones are not.
class Type {
public:
  Type() = default;
  explicit Type(MPI_Datatype type) : type(type) {}
  Type(Type &&other) noexcept : type(other.type) { other.type = MPI_BYTE; }
  Type &operator=(Type &&other) noexcept {
    std::swap(type, other.type);
    return *this;
  }
  ~Type() {
    if (type != MPI_BYTE)
      MPI_Type_free(&type);
  }
  MPI_Datatype get() const { return type; }
  int commit() { return type == MPI_BYTE ? 0 : MPI_Type_commit(&type); }

private:
  MPI_Datatype type = MPI_BYTE;
};

/// `count` times `inner`, `stride` bytes apart. MPI counts in int: what is more
/// is made of large blocks and a rest.
int repeat(const Type &inner, int64_t count, int64_t stride, Type &result) {
  constexpr int64_t blockCount = int64_t(1) << 30;
  MPI_Datatype made;
  if (count <= blockCount) {
    if (int error = MPI_Type_create_hvector(static_cast<int>(count), 1, stride,
                                            inner.get(), &made))
      return error;
    result = Type(made);
    return 0;
  }
  Type block, blocks, rest;
  if (int error = repeat(inner, blockCount, stride, block))
    return error;
  int64_t numBlocks = count / blockCount;
  if (int error = repeat(block, numBlocks, blockCount * stride, blocks))
    return error;
  if (int error = repeat(inner, count % blockCount, stride, rest))
    return error;
  int lengths[] = {1, 1};
  MPI_Aint offsets[] = {0, numBlocks * blockCount * stride};
  MPI_Datatype types[] = {blocks.get(), rest.get()};
  if (int error = MPI_Type_create_struct(2, lengths, offsets, types, &made))
    return error;
  result = Type(made);
  return 0;
}

struct Message {
  bool isSend;
  int peer, tag;
  int32_t buffer;
  int64_t offset, bytes;
  Type type;
  int count;
};

int describeBox(const AxMessageBox &box, Message &message) {
  message.offset = box.offset;
  message.bytes = box.runBytes;
  message.count = 1;
  if (box.numDims == 0 && box.runBytes <= INT_MAX) {
    message.count = static_cast<int>(box.runBytes);
    return 0;
  }
  if (int error = repeat(Type(), box.runBytes, 1, message.type))
    return error;
  for (int32_t d = box.numDims; d-- > 0;) {
    Type around;
    if (int error =
            repeat(message.type, box.dims[d].size, box.dims[d].stride, around))
      return error;
    message.type = std::move(around);
    message.bytes *= box.dims[d].size;
  }
  return message.type.commit();
}

} // namespace

struct AxMessageGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 0, index = 0;
  /// What is shouted here.
  MPI_Request ear = MPI_REQUEST_NULL;
  char heard[shoutBytes];
  /// What was; MPI may still read it.
  std::list<std::string> said;
};

struct AxMessageBatch {
  MPI_Comm comm;
  std::vector<Message> messages;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
};

namespace {

int initialize(int32_t *threadsAllowed) {
  int provided = MPI_THREAD_SINGLE;
  if (int error =
          MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided))
    return error;
  *threadsAllowed = provided >= MPI_THREAD_MULTIPLE;
  return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

/// All that have been made.
std::list<AxMessageGroup *> &allGroups() {
  static std::list<AxMessageGroup *> groups;
  return groups;
}

int finalize() {
  for (AxMessageGroup *group : allGroups()) {
    if (group->ear == MPI_REQUEST_NULL)
      continue;
    MPI_Cancel(&group->ear);
    MPI_Request_free(&group->ear);
  }
  return MPI_Finalize();
}

void abortJob(int32_t code) { MPI_Abort(MPI_COMM_WORLD, code); }

void describe(void *, int error, char *text, int32_t capacity) {
  char found[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(error, found, &length))
    std::snprintf(found, sizeof(found), "error %d", error);
  std::snprintf(text, static_cast<size_t>(capacity), "%s", found);
}

int getPlace(AxMpiPlace *place) {
  MPI_Comm host;
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &place->process);
  MPI_Comm_size(MPI_COMM_WORLD, &place->numProcesses);
  MPI_Get_processor_name(name, &length);
  std::snprintf(place->host, sizeof(place->host), "%s", name);
  if (int error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                                      MPI_INFO_NULL, &host))
    return error;
  MPI_Comm_rank(host, &place->indexOnHost);
  MPI_Comm_size(host, &place->numOnHost);
  return MPI_Comm_free(&host);
}

int getMostTag(int32_t *tag) {
  int *most = nullptr, isThere = 0;
  if (int error =
          MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &isThere))
    return error;
  // Any MPI has these.
  constexpr int32_t least = 32767;
  *tag = isThere ? *most : least;
  return 0;
}

int broadcast(void *bytes, int64_t count) {
  if (count > INT_MAX)
    return MPI_ERR_COUNT;
  return MPI_Bcast(bytes, static_cast<int>(count), MPI_BYTE, 0, MPI_COMM_WORLD);
}

int hearAgain(AxMessageGroup &group) {
  return MPI_Irecv(group.heard, shoutBytes, MPI_CHAR, MPI_ANY_SOURCE, 0,
                   group.comm, &group.ear);
}

int createGroup(void *, const int32_t *processes, int32_t count,
                AxMessageGroup **group) {
  MPI_Group all, some;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  int error = MPI_Group_incl(all, count, processes, &some);
  MPI_Group_free(&all);
  if (error)
    return error;
  auto made = std::make_unique<AxMessageGroup>();
  error = MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &made->comm);
  MPI_Group_free(&some);
  if (error)
    return error;
  MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
  MPI_Comm_size(made->comm, &made->size);
  MPI_Comm_rank(made->comm, &made->index);
  allGroups().push_back(made.get());
  *group = made.release();
  return 0;
}

int createBatch(AxMessageGroup *group, const AxMessageTransfer *transfers,
                int32_t count, AxMessageBatch **batch) {
  auto made = std::make_unique<AxMessageBatch>();
  made->comm = group->comm;
  made->requests.assign(static_cast<size_t>(count), MPI_REQUEST_NULL);
  made->statuses.resize(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    const AxMessageTransfer &from = transfers[i];
    Message &message = made->messages.emplace_back();
    message.isSend = from.isSend;
    message.peer = from.peer;
    message.tag = from.tag;
    message.buffer = from.buffer;
    if (int error = describeBox(from.box, message))
      return error;
  }
  *batch = made.release();
  return 0;
}

int startBatch(AxMessageBatch *batch, void *const *buffers) {
  for (size_t i = 0; i < batch->messages.size(); ++i) {
    const Message &message = batch->messages[i];
    char *address = static_cast<char *>(buffers[message.buffer]);
    if (address)
      address += message.offset;
    MPI_Request *request = &batch->requests[i];
    int error =
        message.isSend
            ? MPI_Isend(address, message.count, message.type.get(),
                        message.peer, message.tag, batch->comm, request)
            : MPI_Irecv(address, message.count, message.type.get(),
                        message.peer, message.tag, batch->comm, request);
    if (error)
      return error;
  }
  return 0;
}

int testBatch(AxMessageBatch *batch, int32_t *done) {
  int flag = 0;
  auto count = static_cast<int>(batch->requests.size());
  int error =
      MPI_Testall(count, batch->requests.data(), &flag, batch->statuses.data());
  *done = flag;
  if (error == MPI_ERR_IN_STATUS)
    for (const MPI_Status &status : batch->statuses)
      if (status.MPI_ERROR != MPI_SUCCESS &&
          status.MPI_ERROR != MPI_ERR_PENDING)
        return status.MPI_ERROR;
  if (error || !flag)
    return error;
  for (size_t i = 0; i < batch->messages.size(); ++i) {
    if (batch->messages[i].isSend)
      continue;
    MPI_Count bytes = 0;
    MPI_Get_elements_x(&batch->statuses[i], MPI_BYTE, &bytes);
    if (bytes != batch->messages[i].bytes)
      return MPI_ERR_TRUNCATE;
  }
  return 0;
}

int32_t listPending(AxMessageBatch *batch, int32_t *peers, int32_t capacity) {
  int32_t found = 0;
  for (bool isSend : {false, true}) {
    for (size_t i = 0; i < batch->messages.size() && found < capacity; ++i) {
      int done = 1;
      if (batch->messages[i].isSend != isSend)
        continue;
      MPI_Request_get_status(batch->requests[i], &done, MPI_STATUS_IGNORE);
      int32_t peer = batch->messages[i].peer;
      if (!done && (found == 0 || peers[found - 1] != peer))
        peers[found++] = peer;
    }
    if (found)
      break;
  }
  return found;
}

/// Whether a receive ends that was cancelled. One that has found its message
/// before does when all of that has come.
bool endReceive(MPI_Request &request) {
  // For all of a process together: it is about to end.
  static const Clock::time_point last = Clock::now() + receivePatience;
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done &&
         Clock::now() < last)
    std::this_thread::yield();
  return done;
}

int32_t destroyBatch(AxMessageBatch *batch) {
  bool isWritten = false;
  for (size_t i = 0; i < batch->requests.size(); ++i) {
    MPI_Request &request = batch->requests[i];
    if (request == MPI_REQUEST_NULL)
      continue;
    if (!batch->messages[i].isSend) {
      MPI_Cancel(&request);
      if (endReceive(request))
        continue;
      isWritten = true;
    }
    MPI_Request_free(&request);
  }
  delete batch;
  return isWritten;
}

int shout(AxMessageGroup *group, const char *text) {
  const std::string &kept = group->said.emplace_back(text, 0, shoutBytes - 1);
  for (int peer = 0; peer < group->size; ++peer) {
    MPI_Request request;
    if (peer == group->index)
      continue;
    if (int error = MPI_Isend(kept.c_str(), static_cast<int>(kept.size()) + 1,
                              MPI_CHAR, peer, 0, group->comm, &request))
      return error;
    if (int error = MPI_Request_free(&request))
      return error;
  }
  return 0;
}

int listen(AxMessageGroup *group, char *text, int32_t capacity,
           int32_t *heard) {
  int flag = 0;
  *heard = 0;
  if (group->ear == MPI_REQUEST_NULL)
    if (int error = hearAgain(*group))
      return error;
  if (int error = MPI_Test(&group->ear, &flag, MPI_STATUS_IGNORE))
    return error;
  if (!flag)
    return 0;
  std::snprintf(text, static_cast<size_t>(capacity), "%s", group->heard);
  *heard = 1;
  return hearAgain(*group);
}

const AxMpiModuleTable table = {
    axMpiModuleVersion,
    initialize,
    finalize,
    abortJob,
    getPlace,
    broadcast,
    {"MPI", nullptr, describe, getMostTag, createGroup, createBatch, startBatch,
     testBatch, listPending, destroyBatch, shout, listen}};

} // namespace

const AxMpiModuleTable *axMpiModuleTable(void) { return &table; }
