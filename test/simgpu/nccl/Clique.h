//===- Clique.h - Communicators of the simulated NCCL -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMNCCL_CLIQUE_H
#define AX_TEST_SIMNCCL_CLIQUE_H

#include "Meeting.h"

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace simnccl {

struct Comm;

/// The ranks that have come with one identity.
struct Clique {
  size_t size = 0;
  /// By rank; null: not there yet.
  std::vector<std::shared_ptr<Comm>> comms;
  size_t numJoined = 0;
  /// To which not all are on their way yet, by their number, and by sender,
  /// receiver and number.
  std::map<uint64_t, std::shared_ptr<Meeting>> collectives;
  std::map<std::tuple<int, int, uint64_t>, std::shared_ptr<Meeting>> messages;
};

/// One rank's communicator.
struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  /// The number of the context that it was made in.
  uint64_t context = 0;
  bool isAborted = false;
  /// What ncclCommGetAsyncError says.
  ncclResult_t fault = ncclSuccess;
  uint64_t numCollectives = 0;
  /// By the other rank.
  std::map<int, uint64_t> numSent, numReceived;
  /// Of work, on streams.
  uint64_t numWaiting = 0;
};

/// What a rank's stream does at once: the calls of a group. They go on
/// independently of each other, and it ends when all are done.
class Batch {
public:
  explicit Batch(std::shared_ptr<Comm> comm) : comm(std::move(comm)) {}

  /// A call, whose tensors are at these places of the work; -1: none.
  struct Step {
    std::shared_ptr<Meeting> meeting;
    size_t member = 0;
    int from = -1, to = -1;
  };
  void add(Step step) { steps.push_back(std::move(step)); }

  /// The stream is there: whether it may go on.
  bool isReady(const std::vector<unsigned char *> &places);
  /// It goes on.
  void end();

private:
  std::shared_ptr<Comm> comm;
  std::vector<Step> steps;
  bool isOnCard = false;
};

/// Guards all that is here.
std::mutex &globalMutex();

} // namespace simnccl

#endif // AX_TEST_SIMNCCL_CLIQUE_H
