//===- Carrier.cpp - The table of messages over TCP -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Carrier.h"

#include "llvm/ADT/STLExtras.h"

#include <climits>
#include <cstdio>
#include <cstring>

using namespace ax::rt::tcp;

namespace {

/// A message, and where its bytes lie.
struct Part {
  Message message;
  size_t buffer = 0;
  int64_t offset = 0, runBytes = 0;
  /// Around the runs, outermost first. None: the message lies in one piece.
  std::vector<AxMessageDim> dims;
  /// Where there are some.
  std::vector<char> packed;
  char *address = nullptr;

  /// Calls fn(address, bytes) for each run, in order.
  template <typename Fn>
  void forEachRun(char *at, size_t dim, Fn &fn) const {
    if (dim == dims.size())
      return fn(at, static_cast<size_t>(runBytes));
    for (int64_t i = 0; i < dims[dim].size; ++i)
      forEachRun(at + i * dims[dim].stride, dim + 1, fn);
  }
  void pack() {
    char *to = packed.data();
    auto copy = [&](const char *run, size_t bytes) {
      std::memcpy(to, run, bytes);
      to += bytes;
    };
    forEachRun(address, 0, copy);
  }
  void unpack() const {
    const char *from = packed.data();
    auto copy = [&](char *run, size_t bytes) {
      std::memcpy(run, from, bytes);
      from += bytes;
    };
    forEachRun(address, 0, copy);
  }
};

} // namespace

struct AxMessageBatch {
  Messenger &messenger;
  std::vector<int32_t> peers;
  std::vector<Part> parts;
  std::vector<Message *> messages;
  std::atomic<int64_t> pending{0};
  bool isUnpacked = true;
};

namespace {

int createGroup(void *context, const int32_t *processes, int32_t count,
                AxMessageGroup **group) {
  *group = &static_cast<Carrier *>(context)->addGroup(
      {processes, static_cast<size_t>(count)});
  return NoFault;
}

void describe(void *context, int error, char *text, int32_t capacity) {
  std::snprintf(
      text, static_cast<size_t>(capacity), "%s",
      static_cast<Carrier *>(context)->getMessenger().describe(error).c_str());
}

int getMostTag(int32_t *tag) {
  *tag = INT_MAX;
  return NoFault;
}

int createBatch(AxMessageGroup *group, const AxMessageTransfer *transfers,
                int32_t count, AxMessageBatch **batch) {
  auto made = std::unique_ptr<AxMessageBatch>(
      new AxMessageBatch{group->messenger, {}, {}, {}});
  made->parts.resize(static_cast<size_t>(count));
  for (auto [part, from] :
       llvm::zip_equal(made->parts,
                       llvm::ArrayRef(transfers, static_cast<size_t>(count)))) {
    auto peer = static_cast<size_t>(from.peer);
    const AxMessageBox &box = from.box;
    part.buffer = static_cast<size_t>(from.buffer);
    part.offset = box.offset;
    part.runBytes = box.runBytes;
    part.dims.assign(box.dims, box.dims + box.numDims);
    Message &message = part.message;
    message.isSend = from.isSend;
    message.process = group->processes[peer];
    message.label = {group->numbers[peer], from.tag};
    message.bytes = box.runBytes;
    for (const AxMessageDim &dim : part.dims)
      message.bytes *= dim.size;
    message.pending = &made->pending;
    if (!part.dims.empty())
      part.packed.resize(static_cast<size_t>(message.bytes));
    made->peers.push_back(from.peer);
    made->messages.push_back(&message);
  }
  *batch = made.release();
  return NoFault;
}

int startBatch(AxMessageBatch *batch, void *const *buffers) {
  for (Part &part : batch->parts) {
    part.address = static_cast<char *>(buffers[part.buffer]);
    if (part.address)
      part.address += part.offset;
    bool isPacked = !part.dims.empty();
    part.message.data = isPacked ? part.packed.data() : part.address;
    if (isPacked && part.message.isSend)
      part.pack();
  }
  batch->isUnpacked = false;
  batch->pending.store(static_cast<int64_t>(batch->parts.size()),
                       std::memory_order_relaxed);
  batch->messenger.start(batch->messages);
  return NoFault;
}

int testBatch(AxMessageBatch *batch, int32_t *done) {
  *done = 0;
  if (batch->pending.load(std::memory_order_acquire) > 0)
    batch->messenger.progress();
  if (batch->pending.load(std::memory_order_acquire) > 0)
    return batch->messenger.hasLost()
               ? batch->messenger.findFault(batch->messages)
               : NoFault;
  for (const Part &part : batch->parts) {
    if (part.message.fault != NoFault)
      return part.message.fault;
    if (!batch->isUnpacked && !part.dims.empty() && !part.message.isSend)
      part.unpack();
  }
  batch->isUnpacked = true;
  *done = 1;
  return NoFault;
}

int32_t listPending(AxMessageBatch *batch, int32_t *peers, int32_t capacity) {
  int32_t found = 0;
  for (bool isSend : {false, true}) {
    for (auto [part, peer] : llvm::zip_equal(batch->parts, batch->peers))
      if (part.message.isSend == isSend && found < capacity &&
          batch->messenger.isPending(part.message) &&
          (found == 0 || peers[found - 1] != peer))
        peers[found++] = peer;
    if (found)
      break;
  }
  return found;
}

int32_t destroyBatch(AxMessageBatch *batch) {
  if (batch->pending.load(std::memory_order_acquire) > 0)
    batch->messenger.giveUp(batch->messages);
  delete batch;
  return 0;
}

int shout(AxMessageGroup *group, const char *text) {
  for (auto [process, number] :
       llvm::zip_equal(group->processes, group->numbers))
    if (process != group->messenger.getSelf())
      group->messenger.say(process, number, text);
  return NoFault;
}

int listen(AxMessageGroup *group, char *text, int32_t capacity,
           int32_t *heard) {
  group->messenger.progress();
  std::optional<std::string> found =
      group->messenger.hear(group->processes, group->numbers);
  *heard = found.has_value();
  if (found)
    std::snprintf(text, static_cast<size_t>(capacity), "%s", found->c_str());
  return NoFault;
}

} // namespace

Carrier::Carrier(int32_t self, std::vector<Peer> peers)
    : messenger(self, std::move(peers)),
      table{"TCP",       this,         describe,   getMostTag,
            createGroup, createBatch,  startBatch, testBatch,
            listPending, destroyBatch, shout,      listen} {}

AxMessageGroup &Carrier::addGroup(llvm::ArrayRef<int32_t> processes) {
  AxMessageGroup &group =
      groups.emplace_back(AxMessageGroup{messenger, processes.vec(), {}});
  for (int32_t process : processes)
    group.numbers.push_back(messenger.shareGroup(process));
  return group;
}
