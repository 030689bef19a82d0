//===- LocalWorld.cpp - What the local ranks share ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LocalWorld.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ax::rt {

LocalWorld::LocalWorld(int32_t numRanks, const CommunicatorOptions &options)
    : numRanks(numRanks), devices(options.devices) {
  policy.timeout = options.timeout;
  policy.spins = WaitPolicy::spinsFor(
      options.numThreads > 0 ? options.numThreads : numRanks);
  policy.aborted = &aborted;
}

llvm::Error LocalChannel::checkRoom(uint32_t number, int32_t rank,
                                    const std::string &name) const {
  if (number - delivered.get() < capacity)
    return llvm::Error::success();
  return makeErrorf(ExitCode::RunFailed,
                    "rank {0}: receive '{1}': more than {2} are started", rank,
                    name, capacity);
}

bool LocalWorld::reachEachOther(llvm::ArrayRef<int32_t> ranks) const {
  return !devices.empty() && llvm::all_of(ranks, [&](int32_t rank) {
    return llvm::all_of(ranks, [&](int32_t other) {
      return getDevice(rank).canReach(getDevice(other));
    });
  });
}

std::shared_ptr<LocalGroupState>
LocalWorld::getGroup(const std::vector<int32_t> &ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<LocalGroupState> &group = groups[ranks];
  if (!group)
    group = std::make_shared<LocalGroupState>(ranks.size());
  return group;
}

/// Members of a group prepare its collectives in one order, so the n-th that
/// one prepares is the n-th of all: the first to come makes its state, the
/// others find it, and the last one takes it out of the list. What they ask for
/// must be the same; that it is, a plan's verification proves, and this checks.
llvm::Expected<std::shared_ptr<LocalCollectiveState>>
LocalWorld::joinCollective(LocalGroupState &group, int32_t member,
                           const CollectiveSpecs &specs,
                           const std::string &name) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t &mine = group.prepared[static_cast<size_t>(member)];
  size_t at = mine - group.forgotten;
  if (at == group.collectives.size())
    group.collectives.push_back(std::make_shared<LocalCollectiveState>(
        specs, name, group.prepared.size()));
  std::shared_ptr<LocalCollectiveState> state = group.collectives[at];
  if (!(state->specs == specs))
    return makeErrorf(ExitCode::RunFailed,
                      "ranks disagree: '{0}' ({1}) here, '{2}' ({3}) elsewhere",
                      name, toString(specs), state->name,
                      toString(state->specs));
  ++mine;
  while (!group.collectives.empty() &&
         *std::min_element(group.prepared.begin(), group.prepared.end()) >
             group.forgotten) {
    group.collectives.pop_front();
    ++group.forgotten;
  }
  return state;
}

llvm::Expected<std::shared_ptr<LocalChannel>>
LocalWorld::getChannel(int32_t from, int32_t to, int64_t tag, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<LocalChannel> &channel = channels[{from, to, tag}];
  if (!channel) {
    channel = std::make_shared<LocalChannel>();
    channel->bytes = bytes;
  }
  if (channel->bytes != bytes)
    return makeErrorf(ExitCode::RunFailed,
                      "ranks disagree: messages {0} from rank {1} to rank {2} "
                      "have {3} bytes here, {4} elsewhere",
                      tag, from, to, bytes, channel->bytes);
  return channel;
}

void LocalWorld::abort(const std::string &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!aborted.load(std::memory_order_relaxed))
    reason = why;
  aborted.store(true, std::memory_order_release);
}

std::string LocalWorld::getAbortReason() const {
  std::lock_guard<std::mutex> lock(mutex);
  return reason;
}

llvm::Error LocalWorld::waitError(WaitResult result, int32_t rank, int32_t peer,
                                  const std::string &operation) const {
  if (result == WaitResult::Aborted)
    return makeErrorf(ExitCode::RunFailed, "rank {0}: stopped in {1}: {2}",
                      rank, operation, getAbortReason());
  return makeErrorf(ExitCode::RunFailed,
                    "rank {0}: {1}: waited {2} ms for rank {3}", rank,
                    operation, policy.timeout.count(), peer);
}

} // namespace ax::rt
