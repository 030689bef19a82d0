//===- RankThreads.h - The ranks of one process -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKTHREADS_H
#define AX_RUNTIME_RANKTHREADS_H

#include "GlobalPorts.h"
#include "OutputExchange.h"
#include "RankExecutor.h"
#include "ax/Runtime/WaitWord.h"

#include "ax/Support/Error.h"

#include <condition_variable>
#include <mutex>

namespace ax::rt {

struct RequestSlot;

class ThreadRequest : public Request {
public:
  ~ThreadRequest() override;
  /// The number of its newest announcement.
  uint64_t number = 0;
  bool isAnnounced = false;
  /// The slot, from its announcement until its end was noticed.
  RequestSlot *slot = nullptr;
};

/// A request in flight, as the ranks see it. They never touch the request
/// itself: after a failure it may be gone while a rank still hangs.
struct RequestSlot : RunData {
  uint64_t number = 0;
  /// Ranks that have still to finish it.
  std::atomic<int32_t> remaining{0};
  std::atomic<Clock::rep> begin{0}, end{0};
  /// The request, until its end was noticed. Only the caller's side uses it.
  ThreadRequest *request = nullptr;
  std::vector<std::shared_ptr<const void>> owners;
  /// The first that ranks found so far; guarded by SharedRanks::mutex.
  std::optional<FirstFault> fault;

  void fill(ThreadRequest &from, uint64_t newNumber, int32_t numRanks);
  void release();
};

/// One rank of this process.
struct LocalRank {
  LocalRank(const RankContext &context, StateStore &states,
            const RankExecutor *owner, const RankOptions &options,
            std::unique_ptr<OutputExchange> outputs)
      : exchange(std::move(outputs)), ports(context, exchange.get()),
        executor(context, ports, states, owner, options) {}
  /// Null where there are no other processes.
  std::unique_ptr<OutputExchange> exchange;
  GlobalPorts ports;
  RankExecutor executor;
};

/// What the ranks' threads use. They own it together with the executor, so that
/// a thread that hangs in foreign code can be left behind.
struct SharedRanks {
  std::shared_ptr<const Program> program;
  std::shared_ptr<World> world;
  RankBackends backends;
  /// May be null.
  std::shared_ptr<FlightRecorder> recorder;
  /// Of each rank, where there is no recorder that has them.
  std::vector<std::unique_ptr<FlightLog>> logs;
  std::unique_ptr<StateStore> states;
  std::vector<std::unique_ptr<LocalRank>> ranks;
  std::vector<RequestSlot> ring;
  /// Requests so far whose inputs are there, that may run, and that are
  /// finished. They finish in order, because every rank works in order.
  WaitWord announced, submitted, finished;
  std::atomic<bool> stop{false};
  WaitPolicy idle;
  /// Threads started that have not ended; guarded by mutex.
  int64_t running = 0;
  size_t prepared = 0;
  /// All threads are there. None begins before: what one takes of memory, the
  /// next may lack for its stack.
  bool launched = false;
  std::mutex mutex;
  std::condition_variable changed;
  /// The first failure of a rank; guarded by mutex.
  std::string failure;
  ExitCode failureCode = ExitCode::Success;
  /// The executor that uses these states; guarded by mutex.
  std::weak_ptr<SharedRanks> user;

  explicit SharedRanks(size_t ringSize) : ring(ringSize) {}

  /// Ends all ranks, also those of other processes. `rank`: the one that
  /// failed, or -1.
  void fail(llvm::Error error, int32_t rank = -1);
  /// Ends those of this process, as the job has ended: others know.
  void failAsOthers(const std::string &reason);
  std::string describeOthers(int32_t rank) const;
  /// What the ranks do now, or those of an executor that uses their states, and
  /// in which exchange that is (World::setProgress). For any thread.
  std::string describeProgress();
  void setUser(const std::shared_ptr<SharedRanks> &other);
  llvm::Error takeFailure();
  bool failed();

private:
  void keepFailure(ErrorDescription description, int32_t rank);
  /// Of this process, with their record; those of others, too, or not.
  void stopAll(const std::string &reason, bool tellsOthers);
};

/// What a rank's thread does: prepares, and works through the requests.
void runRank(const std::shared_ptr<SharedRanks> &shared, LocalRank &rank);

} // namespace ax::rt

#endif // AX_RUNTIME_RANKTHREADS_H
