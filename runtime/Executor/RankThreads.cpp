//===- RankThreads.cpp - The ranks of one process -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankThreads.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/Error.h"

namespace ax::rt {

ThreadRequest::~ThreadRequest() {
  if (slot)
    slot->request = nullptr;
}

void RequestSlot::fill(ThreadRequest &from, uint64_t newNumber,
                       int32_t numRanks) {
  inputs.clear();
  outputs.clear();
  for (HostTensor &input : from.inputs) {
    inputs.push_back(input.data());
    owners.push_back(input.getOwner());
  }
  for (HostTensor &output : from.outputs) {
    // None of an output that this process does not get.
    outputs.push_back(output.numBytes() ? output.mutableData() : nullptr);
    owners.push_back(output.getOwner());
  }
  request = &from;
  request->number = number = newNumber;
  request->isAnnounced = true;
  request->slot = this;
  fault.reset();
  remaining.store(numRanks);
  begin.store(0);
}

void RequestSlot::release() {
  owners.clear();
  if (!request)
    return;
  request->duration = Clock::duration(end.load() - begin.load());
  request->slot = nullptr;
  request = nullptr;
}

llvm::Error SharedRanks::takeFailure() {
  std::string record = recorder ? recorder->write() : std::string();
  std::lock_guard<std::mutex> lock(mutex);
  if (failureCode == ExitCode::Success)
    return makeError(ExitCode::RunFailed, "the executor was stopped");
  return makeError(failureCode, failure + record);
}

bool SharedRanks::failed() {
  std::lock_guard<std::mutex> lock(mutex);
  return failureCode != ExitCode::Success;
}

/// Who is waited for is often the one at fault.
std::string SharedRanks::describeOthers(int32_t rank) const {
  constexpr int most = 8;
  std::string text;
  int count = 0;
  for (const std::unique_ptr<LocalRank> &other : ranks) {
    const RankExecutor &executor = other->executor;
    if (executor.getRank() != rank && !executor.isIdle() && ++count <= most)
      text += "; meanwhile " + executor.describe();
  }
  if (count > most)
    text += "; and " + std::to_string(count - most) + " more ranks";
  return text;
}

void SharedRanks::setUser(const std::shared_ptr<SharedRanks> &other) {
  std::lock_guard<std::mutex> lock(mutex);
  user = other;
}

std::string SharedRanks::describeProgress() {
  std::string text;
  for (const std::unique_ptr<LocalRank> &rank : ranks) {
    const RankExecutor &executor = rank->executor;
    if (executor.isIdle())
      continue;
    text += (text.empty() ? "" : "; ") + executor.describeShortly();
  }
  if (!text.empty())
    return text;
  std::unique_lock<std::mutex> lock(mutex);
  std::shared_ptr<SharedRanks> other = user.lock();
  lock.unlock();
  if (other)
    return other->describeProgress();
  return ranks.empty() ? "" : ranks.front()->executor.describeShortly();
}

void SharedRanks::keepFailure(ErrorDescription description, int32_t rank) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failureCode != ExitCode::Success)
    return;
  failure = description.message;
  failureCode = description.code;
  if (rank >= 0)
    failure += describeOthers(rank);
  // What ranks find when they are stopped is not why.
  if (recorder)
    recorder->keep(failure);
}

void SharedRanks::stopAll(const std::string &reason, bool tellsOthers) {
  stop.store(true);
  Communicator &communicator = *backends.communicators.front();
  tellsOthers ? communicator.abort(reason) : communicator.stop(reason);
  finished.wake();
  changed.notify_all();
  if (recorder)
    recorder->write();
}

void SharedRanks::fail(llvm::Error error, int32_t rank) {
  ErrorDescription description = describeError(std::move(error));
  bool isAlone = world->isAlone();
  if (!isAlone)
    description.message += " (" + describePlace(world->getPlace()) + ")";
  keepFailure(description, rank);
  // What others find when they are stopped is not why.
  if (!isAlone)
    world->abort(description.message);
  // Where another failure was first, its process tells.
  stopAll(description.message,
          isAlone || world->getAbortReason() == description.message);
}

void SharedRanks::failAsOthers(const std::string &reason) {
  keepFailure({ExitCode::RunFailed, reason}, -1);
  // If each told all others, that would be the square of their number.
  stopAll(reason, /*tellsOthers=*/false);
}

/// Of several faults the first is told.
static void noteFault(SharedRanks &shared, RequestSlot &slot,
                      std::optional<FirstFault> fault) {
  if (!fault)
    return;
  std::lock_guard<std::mutex> lock(shared.mutex);
  if (!slot.fault || fault->isBefore(*slot.fault))
    slot.fault = std::move(fault);
}

/// Ends a request for a rank: every rank calls it once for each.
static void finishRank(SharedRanks &shared, RequestSlot &slot) {
  if (slot.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (slot.fault)
    return shared.fail(makeError(ExitCode::RunFailed, slot.fault->message));
  // A rank may have gone on with what was submitted behind one that failed: who
  // waits for that one would take it for finished, too.
  if (shared.stop.load())
    return;
  slot.end.store(Clock::now().time_since_epoch().count());
  shared.finished.set(static_cast<uint32_t>(slot.number + 1));
}

namespace {

/// Works through the requests.
class RequestLoop {
public:
  RequestLoop(SharedRanks &shared, LocalRank &rank)
      : shared(shared), rank(rank) {}

  llvm::Error run();

private:
  RequestSlot &slotOf(uint64_t number) const {
    return shared.ring[number % shared.ring.size()];
  }
  bool isSubmitted(uint64_t number) const {
    return shared.submitted.hasReached(static_cast<uint32_t>(number + 1));
  }
  llvm::Error compute(uint64_t number);
  /// Completes all requests before `end`.
  llvm::Error completeUntil(uint64_t end);

  SharedRanks &shared;
  LocalRank &rank;
  /// The first that is not complete.
  uint64_t open = 0;
};

} // namespace

llvm::Error RequestLoop::run() {
  for (uint64_t number = 0;; ++number) {
    // Who has nothing else to do can as well wait for outputs.
    while (open < number && !isSubmitted(number))
      if (llvm::Error error = completeUntil(open + 1))
        return error;
    if (shared.submitted.waitFor(static_cast<uint32_t>(number + 1),
                                 shared.idle) != WaitResult::Reached)
      return llvm::Error::success();
    if (llvm::Error error = compute(number))
      return error;
    uint64_t lag = rank.exchange ? rank.exchange->getLag() : 0;
    if (number >= lag)
      if (llvm::Error error = completeUntil(number + 1 - lag))
        return error;
  }
}

llvm::Error RequestLoop::compute(uint64_t number) {
  RequestSlot &slot = slotOf(number);
  Clock::rep none = 0;
  slot.begin.compare_exchange_strong(none,
                                     Clock::now().time_since_epoch().count());
  rank.ports.setInputs(slot);
  rank.ports.setOutputs(slot);
  if (rank.exchange)
    if (llvm::Error error = rank.exchange->receive(number, slot))
      return error;
  if (llvm::Error error = rank.executor.start())
    return error;
  if (shared.announced.hasReached(static_cast<uint32_t>(number + 2))) {
    rank.ports.setInputs(slotOf(number + 1));
    if (llvm::Error error = rank.executor.stageNext())
      return error;
  }
  if (llvm::Error error = rank.executor.finish())
    return error;
  noteFault(shared, slot, rank.executor.takeFault());
  if (!rank.exchange)
    return llvm::Error::success();
  rank.executor.setHandingOver(true);
  llvm::Error error = rank.exchange->send(slot);
  if (!error)
    rank.executor.setHandingOver(false);
  return error;
}

llvm::Error RequestLoop::completeUntil(uint64_t end) {
  for (; open < end; ++open) {
    RequestSlot &slot = slotOf(open);
    if (rank.exchange) {
      rank.executor.setHandingOver(true);
      if (llvm::Error error = rank.exchange->complete(open, slot))
        return error;
      rank.executor.setHandingOver(false);
    }
    finishRank(shared, slot);
  }
  return llvm::Error::success();
}

void runRank(const std::shared_ptr<SharedRanks> &shared, LocalRank &rank) {
  {
    std::unique_lock<std::mutex> lock(shared->mutex);
    shared->changed.wait(lock, [&] {
      return shared->launched || shared->failureCode != ExitCode::Success;
    });
    if (!shared->launched)
      return;
  }
  llvm::Error error =
      rank.exchange ? rank.exchange->prepare() : llvm::Error::success();
  if (!error)
    error = rank.executor.prepare();
  // One that failed says so below: who waits must not go on before.
  if (!error) {
    std::lock_guard<std::mutex> lock(shared->mutex);
    ++shared->prepared;
  }
  shared->changed.notify_all();
  if (!error)
    error = RequestLoop(*shared, rank).run();
  if (error)
    shared->fail(std::move(error), rank.executor.getRank());
}

} // namespace ax::rt
