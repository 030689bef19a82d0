//===- LocalWorld.h - What the local ranks share ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_LOCALWORLD_H
#define AX_RUNTIME_LOCALWORLD_H

#include "ax/Runtime/WaitWord.h"

#include "ax/Runtime/LocalCommunicator.h"

#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace ax::rt {

/// Memory for one member's part in a collective.
struct alignas(64) LocalMember {
  /// Runs whose source is published.
  WaitWord ready;
  /// Runs of which this member has done its first step; see LocalCollective.
  WaitWord done;
  /// The sources of run n are in sources[n % 2]; a slow member may still look
  /// at the last ones.
  std::vector<const void *> sources[2];
  /// Where others write to, if they do.
  std::vector<void *> destinations;
  /// Memory of this member, which sizes it when it prepares.
  std::vector<uint8_t> scratch;
  uint8_t *alignedScratch = nullptr;
};

/// The same for memory of devices, whose streams do the work; see
/// DeviceCollective. Nothing is twice here: who starts the next run has seen
/// `done` of all, who by then look at nothing of this one any more.
struct DeviceMember {
  /// Runs whose addresses and `isReady` are published, and those whose `isDone`
  /// is.
  WaitWord ready, done;
  /// On the member's stream: where its tensors may be used, and behind its part
  /// of the work.
  std::unique_ptr<Event> isReady, isDone;
  std::vector<DeviceAddress> sources, destinations;
};

/// What the members of one prepared collective share.
struct LocalCollectiveState {
  LocalCollectiveState(CollectiveSpecs specs, std::string name, size_t members)
      : specs(std::move(specs)), name(std::move(name)), members(members),
        onDevices(members) {}
  CollectiveSpecs specs;
  std::string name;
  std::vector<LocalMember> members;
  std::vector<DeviceMember> onDevices;
};

struct LocalGroupState {
  explicit LocalGroupState(size_t size) : barriers(size), prepared(size, 0) {}
  std::vector<WaitWord> barriers;
  /// Guarded by the world's mutex: operations in the order of preparation, and
  /// how many each member has prepared. Forgotten once all have.
  std::deque<std::shared_ptr<LocalCollectiveState>> collectives;
  size_t forgotten = 0;
  std::vector<size_t> prepared;
};

/// One of the receives of a channel, on memory of a device.
struct DeviceArrival {
  DeviceAddress destination;
  /// On the receiver's stream: where the destination may be overwritten.
  std::unique_ptr<Event> isPosted;
  /// On the sender's: behind the copy.
  std::unique_ptr<Event> isDelivered;
};

/// Messages of one (sender, receiver, tag), received in order. One thread on
/// each side.
struct LocalChannel {
  static constexpr uint32_t capacity = mostReceivesAhead;
  int64_t bytes = -1;
  WaitWord posted;
  WaitWord delivered;
  void *destinations[capacity] = {};
  /// In their place, on memory of devices.
  std::shared_ptr<DeviceArrival> arrivals[capacity];
  /// Sends started, receives started: used by one side each.
  uint32_t numSent = 0;
  uint32_t numPosted = 0;

  /// An error where `rank` would start more receives than there may be.
  llvm::Error checkRoom(uint32_t number, int32_t rank,
                        const std::string &name) const;
};

class LocalWorld {
public:
  LocalWorld(int32_t numRanks, const CommunicatorOptions &options);

  int32_t getSize() const { return numRanks; }
  const WaitPolicy &getPolicy() const { return policy; }
  /// Returns whether these ranks have devices that all reach each other.
  bool reachEachOther(llvm::ArrayRef<int32_t> ranks) const;
  Device &getDevice(int32_t rank) const {
    return *devices[static_cast<size_t>(rank)];
  }

  std::shared_ptr<LocalGroupState> getGroup(const std::vector<int32_t> &ranks);
  llvm::Expected<std::shared_ptr<LocalCollectiveState>>
  joinCollective(LocalGroupState &group, int32_t member,
                 const CollectiveSpecs &specs, const std::string &name);
  llvm::Expected<std::shared_ptr<LocalChannel>>
  getChannel(int32_t from, int32_t to, int64_t tag, int64_t bytes);

  void abort(const std::string &reason);
  std::string getAbortReason() const;

  /// The error of rank `rank`, whose wait for `peer` in `operation` ended so.
  llvm::Error waitError(WaitResult result, int32_t rank, int32_t peer,
                        const std::string &operation) const;

private:
  int32_t numRanks;
  std::vector<Device *> devices;
  WaitPolicy policy;
  std::atomic<bool> aborted{false};
  mutable std::mutex mutex;
  std::string reason;
  std::map<std::vector<int32_t>, std::shared_ptr<LocalGroupState>> groups;
  std::map<std::tuple<int32_t, int32_t, int64_t>, std::shared_ptr<LocalChannel>>
      channels;
};

class LocalGroup : public Group {
public:
  LocalGroup(std::vector<int32_t> ranks, int32_t index,
             std::shared_ptr<LocalGroupState> state)
      : Group(std::move(ranks), index), state(std::move(state)) {}
  std::shared_ptr<LocalGroupState> state;
};

/// Makes member `group->getIndex()` of the collective.
std::unique_ptr<Operation>
makeLocalCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                    std::shared_ptr<Group> group,
                    std::shared_ptr<LocalCollectiveState> state);

/// Makes the same, on memory of devices that reach each other; null where it
/// reduces and `reduction` is.
llvm::Expected<std::unique_ptr<StreamOperation>>
makeDeviceCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                     std::shared_ptr<Group> group,
                     std::shared_ptr<LocalCollectiveState> state,
                     const Kernel *reduction);

std::unique_ptr<StreamOperation>
makeDeviceSend(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
               std::shared_ptr<LocalChannel> channel, std::string name);
llvm::Expected<std::unique_ptr<StreamOperation>>
makeDeviceReceive(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
                  std::shared_ptr<LocalChannel> channel, std::string name);

} // namespace ax::rt

#endif // AX_RUNTIME_LOCALWORLD_H
