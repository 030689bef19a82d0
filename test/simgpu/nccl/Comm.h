//===- Comm.h - Communicators of the simulated NCCL -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMNCCL_COMM_H
#define AX_TEST_SIMNCCL_COMM_H

#include "Table.h"

#include <map>
#include <mutex>
#include <vector>

namespace simnccl {

/// One rank's communicator. globalMutex() guards what may change.
struct Comm {
  std::shared_ptr<Table> table;
  int rank = 0;
  ncclUniqueId id = {};
  /// The number of the context that it was made in, and of the card among all
  /// of the host.
  uint64_t context = 0, card = 0;
  /// Of those that share resources the abort of one is that of all.
  std::shared_ptr<bool> isAborted = std::make_shared<bool>(false);
  /// Whether those that are split from it share its resources.
  bool splitShares = false;
  uint64_t numSplits = 0;
  /// What ncclCommGetAsyncError says.
  ncclResult_t fault = ncclSuccess;
  uint64_t numCollectives = 0;
  /// By the other rank.
  std::map<int, uint64_t> numSent, numReceived;
  /// Of work, on streams.
  uint64_t numWaiting = 0;
  /// Memory that it knows, by the handles that it gave.
  std::map<uintptr_t, uintptr_t> registered;
  uintptr_t numRegistered = 0;
};

/// One call, from when its stream has come to it.
class Step {
public:
  /// `number`: among the collectives of the communicator, or the messages
  /// between the two, from 1. `peer`: of a message. Places of the tensors among
  /// those of the work; -1: none.
  Step(Shape shape, int peer, bool isSend, uint64_t number, int from, int to)
      : shape(shape), peer(peer), isSend(isSend), number(number), from(from),
        to(to) {}

  /// Goes on as far as can be. Returns why it never will; empty: it may.
  std::string advance(Comm &comm, const std::vector<unsigned char *> &places);
  bool isDone() const { return done; }
  /// Whether the other one, of the same group, is a message with the same peer
  /// that goes before: the first send and the first receive go at once, then
  /// the second ones.
  bool isBehind(const Step &other) const {
    return shape.kind == Kind::Message && other.shape.kind == Kind::Message &&
           peer == other.peer && other.pass < pass;
  }
  /// In a group behind these.
  void setPass(const std::vector<Step> &before);

private:
  std::string advanceCollective(Comm &comm, const unsigned char *source,
                                unsigned char *destination);
  std::string advanceMessage(Comm &comm, const unsigned char *source,
                             unsigned char *destination);
  void computeResult(Comm &comm, unsigned char *destination) const;
  size_t getSourceBytes(const Comm &comm) const;

  Shape shape;
  int peer;
  bool isSend;
  uint64_t number;
  int from, to;
  int pass = 0;
  bool hasBegun = false, hasGiven = false, done = false;
};

/// What a rank's stream does at once: the calls of a group. They go on
/// independently of each other, but for messages with one peer, and it ends
/// when all are done.
class Batch {
public:
  explicit Batch(std::shared_ptr<Comm> comm) : comm(std::move(comm)) {}
  void add(Step step) {
    step.setPass(steps);
    steps.push_back(step);
  }
  /// The stream is there: whether it may go on.
  bool isReady(const std::vector<unsigned char *> &places);
  /// It goes on.
  void end();

private:
  std::shared_ptr<Comm> comm;
  std::vector<Step> steps;
  bool isOnCard = false, hasFailed = false;
};

/// Guards all communicators of the process.
std::mutex &globalMutex();
/// By handle; guarded by globalMutex().
std::map<ncclComm_t, std::shared_ptr<Comm>> &comms();
/// Null where there is none.
std::shared_ptr<Comm> findComm(ncclComm_t handle);

} // namespace simnccl

#endif // AX_TEST_SIMNCCL_COMM_H
