//===- MessageLink.h - What all operations of a rank share ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whoever waits drives them: it looks again and again whether its messages have
// ended, at first at once, giving up its core where ranks share cores, then
// sleeping for a part of the time that it has waited. A thread that looks for
// others exists only where large operations go on while the program computes.
//
// Groups are not those of MPI, whose making waits in MPI for every member,
// where no abort nor timeout ends it, and takes time and memory of all: their
// messages are among those of all ranks, with tags by which two members tell
// the groups that they share apart. So joining one waits for nobody.
//
// Aborts go to the other ranks by messages, as far as these are carried: a
// process that is gone or stopped is not noticed here but by the World.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_MESSAGES_MESSAGELINK_H
#define AX_RUNTIME_MESSAGES_MESSAGELINK_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/MessageTable.h"
#include "ax/Runtime/StridedCopy.h"
#include "ax/Runtime/World.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace ax::rt::messages {

/// Collects messages, and makes the batch of them.
class BatchBuilder {
public:
  /// One end of a box, from or to the address that has number `buffer`. An
  /// empty box is no message.
  void addSend(int32_t peer, int32_t tag, size_t buffer, const StridedBox &box);
  void addReceive(int32_t peer, int32_t tag, size_t buffer,
                  const StridedBox &box);
  /// Bytes one after another; a message even where there are none.
  void addSend(int32_t peer, int32_t tag, size_t buffer, int64_t offset,
               int64_t bytes);
  void addReceive(int32_t peer, int32_t tag, size_t buffer, int64_t offset,
                  int64_t bytes);

private:
  friend class Batch;
  void add(bool isSend, int32_t peer, int32_t tag, size_t buffer,
           const StridedBox &box);

  std::vector<AxMessageTransfer> transfers;
  std::vector<std::vector<AxMessageDim>> dims;
};

/// Messages of a group that are started together.
class Batch {
public:
  Batch() = default;
  static llvm::Expected<Batch> create(const AxMessageTable &carrier,
                                      AxMessageGroup *group,
                                      BatchBuilder builder);
  AxMessageBatch *get() const { return batch.get(); }
  /// Ends it, as its destructor does. Returns whether a message may still be
  /// written to its memory.
  bool giveUp() { return batch && batch.get_deleter()(batch.release()) != 0; }

private:
  std::unique_ptr<AxMessageBatch, int32_t (*)(AxMessageBatch *)> batch{nullptr,
                                                                       nullptr};
};

/// What the operations of a group share. It is there once for each order of
/// ranks.
struct GroupState {
  /// Of each member: which of the groups that this rank and the member share it
  /// is, by their order, which both have alike.
  std::vector<int32_t> shared;
  Batch barrier;
  /// Of its steps, which have tags of their own: two for each operation, from 1
  /// on; 0 is for barriers.
  int32_t nextStep = 1;

  /// Groups that two ranks can share.
  static constexpr int32_t mostShared = 64;
  /// The tag of a step's messages with a member.
  int32_t tagOf(int32_t step, int32_t member) const {
    return step * mostShared + shared[static_cast<size_t>(member)];
  }
};

class MessageLink {
public:
  /// Every process below `numRanks` makes the call.
  static llvm::Expected<std::shared_ptr<MessageLink>>
  create(const AxMessageTable &carrier, const ProcessPlace &place,
         int32_t numRanks, const CommunicatorOptions &options);
  ~MessageLink();

  int32_t getRank() const { return rank; }
  int32_t getSize() const { return static_cast<int32_t>(numShared.size()); }
  AxMessageGroup *getMessages() const { return messages; }
  const AxMessageTable &getCarrier() const { return carrier; }

  /// Waits for nobody.
  llvm::Expected<std::shared_ptr<GroupState>>
  joinGroup(const std::vector<int32_t> &ranks);
  /// Where their messages are, in which peers are ranks.
  AxMessageGroup *getGroupMessages() const { return groupMessages; }

  /// `buffers`: the addresses that the batch's builder has numbered.
  llvm::Error start(const Batch &batch, llvm::ArrayRef<void *> buffers,
                    llvm::function_ref<std::string()> describe);
  /// Returns when all its messages have ended. `describe`: the operation, as
  /// messages have it.
  llvm::Error wait(const Batch &batch,
                   llvm::function_ref<std::string()> describe);

  /// Something goes on that nobody waits for, until `endOverlap`.
  llvm::Error beginOverlap();
  void endOverlap();

  void abort(const std::string &reason);
  /// Tells nobody else.
  void stop(const std::string &why) { decide(why); }
  std::string getAbortReason() const;

private:
  MessageLink(const AxMessageTable &carrier, int32_t rank, int32_t numRanks,
              const CommunicatorOptions &options, bool crowded);

  bool decide(const std::string &why);
  void listen();
  void drive();
  llvm::Error lateError(const Batch &batch, const std::string &operation) const;

  const AxMessageTable &carrier;
  int32_t rank;
  /// Groups so far that this rank shares with each.
  std::vector<int32_t> numShared;
  std::chrono::milliseconds timeout;
  /// Whether ranks share cores.
  bool crowded;
  int32_t spins;
  AxMessageGroup *messages = nullptr;
  AxMessageGroup *groupMessages = nullptr;
  /// Where aborts are told.
  AxMessageGroup *alarm = nullptr;
  std::map<std::vector<int32_t>, std::shared_ptr<GroupState>> groups;

  std::atomic<bool> aborted{false};
  mutable std::mutex reasonMutex;
  std::string reason;

  /// Held by who listens; others need not.
  std::mutex earMutex;
  std::mutex driverMutex;
  std::condition_variable driverWake;
  int32_t numOverlaps = 0;
  bool ending = false;
  std::thread driver;
};

class MessageGroup : public Group {
public:
  MessageGroup(std::vector<int32_t> ranks, int32_t index,
               std::shared_ptr<GroupState> state)
      : Group(std::move(ranks), index), state(std::move(state)) {}
  std::shared_ptr<GroupState> state;
};

llvm::Expected<std::unique_ptr<Operation>>
makeMessageCollective(std::shared_ptr<MessageLink> link,
                      std::shared_ptr<MessageGroup> group,
                      const CollectiveSpecs &specs, const std::string &name);

} // namespace ax::rt::messages

#endif // AX_RUNTIME_MESSAGES_MESSAGELINK_H
