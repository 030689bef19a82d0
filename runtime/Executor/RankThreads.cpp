//===- RankThreads.cpp - The ranks of one process -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankThreads.h"

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
    outputs.push_back(output.mutableData());
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
  std::lock_guard<std::mutex> lock(mutex);
  if (failureCode == ExitCode::Success)
    return makeError(ExitCode::RunFailed, "the executor was stopped");
  return makeError(failureCode, failure);
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

void SharedRanks::fail(llvm::Error error, int32_t rank) {
  ErrorDescription description = describeError(std::move(error));
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failureCode == ExitCode::Success) {
      failure = description.message;
      failureCode = description.code;
      if (rank >= 0)
        failure += describeOthers(rank);
    }
  }
  backends.communicators.front()->abort(description.message);
  stop.store(true);
  finished.wake();
  changed.notify_all();
}

/// Ends a request for a rank: every rank calls it once for each.
static void finishRank(SharedRanks &shared, RequestSlot &slot,
                       std::optional<FirstFault> fault) {
  if (fault) {
    std::lock_guard<std::mutex> lock(shared.mutex);
    if (!slot.fault || fault->isBefore(*slot.fault))
      slot.fault = std::move(fault);
  }
  if (slot.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (slot.fault)
    return shared.fail(makeError(ExitCode::RunFailed, slot.fault->message));
  slot.end.store(Clock::now().time_since_epoch().count());
  shared.finished.set(static_cast<uint32_t>(slot.number + 1));
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
  llvm::Error error = rank.executor.prepare();
  // One that failed says so below: who waits must not go on before.
  if (!error) {
    std::lock_guard<std::mutex> lock(shared->mutex);
    ++shared->prepared;
  }
  shared->changed.notify_all();
  for (uint64_t number = 0; !error; ++number) {
    if (shared->submitted.waitFor(static_cast<uint32_t>(number + 1),
                                  shared->idle) != WaitResult::Reached)
      break;
    RequestSlot &slot = shared->ring[number % shared->ring.size()];
    Clock::rep none = 0;
    slot.begin.compare_exchange_strong(none,
                                       Clock::now().time_since_epoch().count());
    rank.ports.setInputs(slot);
    rank.ports.setOutputs(slot);
    error = rank.executor.start();
    if (!error &&
        shared->announced.hasReached(static_cast<uint32_t>(number + 2))) {
      rank.ports.setInputs(shared->ring[(number + 1) % shared->ring.size()]);
      error = rank.executor.stageNext();
    }
    if (!error)
      error = rank.executor.finish();
    if (!error)
      finishRank(*shared, slot, rank.executor.takeFault());
  }
  if (error)
    shared->fail(std::move(error), rank.executor.getRank());
}

} // namespace ax::rt
