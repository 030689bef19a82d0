//===- LocalCommunicator.cpp - Ranks that are threads ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/LocalCommunicator.h"

#include "LocalWorld.h"

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace ax::rt {

namespace {

/// The receiver says where a message goes; the sender writes it there, so that
/// each byte is moved once, and a send ends when its receive has been started.
///
/// Memory order: the channel's words `posted` and `delivered`, which one side
/// each writes, are all that is atomic. The receiver writes the address of
/// message n and then posts n + 1; a sender that has seen this sees the
/// address, writes the bytes, and delivers n + 1; a receiver that has seen that
/// sees the bytes. Addresses are in a ring: that of message n is overwritten by
/// message n + capacity, which is refused before message n has been delivered,
/// that is, before the sender has read its address.
class LocalMessage : public Operation {
public:
  LocalMessage(std::shared_ptr<LocalWorld> world, int32_t rank, int32_t peer,
               std::shared_ptr<LocalChannel> channel, std::string name)
      : world(std::move(world)), rank(rank), peer(peer),
        channel(std::move(channel)), name(std::move(name)) {}

protected:
  llvm::Error waitFor(WaitWord &word, uint32_t target, const char *what) {
    WaitResult result = word.waitFor(target, world->getPolicy());
    if (result == WaitResult::Reached)
      return llvm::Error::success();
    return world->waitError(result, rank, peer,
                            std::string(what) + " '" + name + "'");
  }

  std::shared_ptr<LocalWorld> world;
  int32_t rank, peer;
  std::shared_ptr<LocalChannel> channel;
  std::string name;
  uint32_t number = 0;
};

class LocalSend : public LocalMessage {
public:
  using LocalMessage::LocalMessage;
  llvm::Error start(llvm::ArrayRef<const void *> sources,
                    llvm::ArrayRef<void *>) override {
    source = sources.front();
    number = channel->numSent++;
    return llvm::Error::success();
  }
  llvm::Error wait() override {
    if (llvm::Error error = waitFor(channel->posted, number + 1, "send"))
      return error;
    if (channel->bytes)
      std::memcpy(channel->destinations[number % LocalChannel::capacity],
                  source, static_cast<size_t>(channel->bytes));
    channel->delivered.set(number + 1);
    return llvm::Error::success();
  }

private:
  const void *source = nullptr;
};

class LocalReceive : public LocalMessage {
public:
  using LocalMessage::LocalMessage;
  llvm::Error start(llvm::ArrayRef<const void *>,
                    llvm::ArrayRef<void *> destinations) override {
    number = channel->numPosted++;
    if (llvm::Error error = channel->checkRoom(number, rank, name))
      return error;
    channel->destinations[number % LocalChannel::capacity] =
        destinations.front();
    channel->posted.set(number + 1);
    return llvm::Error::success();
  }
  llvm::Error wait() override {
    return waitFor(channel->delivered, number + 1, "receive");
  }
};

class LocalCommunicator : public Communicator {
public:
  LocalCommunicator(std::shared_ptr<LocalWorld> world, int32_t rank)
      : world(std::move(world)), rank(rank) {}

  int32_t getRank() const override { return rank; }
  int32_t getSize() const override { return world->getSize(); }

  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    std::set<int32_t> distinct(ranks.begin(), ranks.end());
    const auto *mine = std::find(ranks.begin(), ranks.end(), rank);
    if (mine == ranks.end() || distinct.size() != ranks.size() ||
        *distinct.begin() < 0 || *distinct.rbegin() >= getSize())
      return makeErrorf(ExitCode::RunFailed, "rank {0}: impossible group",
                        rank);
    return std::make_shared<LocalGroup>(
        ranks.vec(), static_cast<int32_t>(mine - ranks.begin()),
        world->getGroup(ranks.vec()));
  }

  llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) override {
    auto state = join(specs, group, name);
    if (!state)
      return state.takeError();
    return makeLocalCollective(world, rank, group, std::move(*state));
  }
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareOnStream(const CollectiveSpecs &specs,
                  const std::shared_ptr<Group> &group, const std::string &name,
                  const Kernel *reduction) override {
    if (!world->reachEachOther(group->getRanks()) ||
        (!reduction && !specs.empty() && reduces(specs.front().kind)))
      return nullptr;
    auto state = join(specs, group, name);
    if (!state)
      return state.takeError();
    return makeDeviceCollective(world, rank, group, std::move(*state),
                                reduction);
  }

  llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) override {
    auto channel = findChannel(rank, peer, peer, tag, bytes, name);
    if (!channel)
      return channel.takeError();
    return std::make_unique<LocalSend>(world, rank, peer, std::move(*channel),
                                       name);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) override {
    auto channel = findChannel(peer, rank, peer, tag, bytes, name);
    if (!channel)
      return channel.takeError();
    return std::make_unique<LocalReceive>(world, rank, peer,
                                          std::move(*channel), name);
  }
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareSendOnStream(int32_t peer, int64_t tag, int64_t bytes,
                      const std::string &name) override {
    auto channel = findChannel(rank, peer, peer, tag, bytes, name);
    if (!channel)
      return channel.takeError();
    if (!world->reachEachOther({rank, peer}))
      return nullptr;
    return makeDeviceSend(world, rank, peer, std::move(*channel), name);
  }
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareReceiveOnStream(int32_t peer, int64_t tag, int64_t bytes,
                         const std::string &name) override {
    auto channel = findChannel(peer, rank, peer, tag, bytes, name);
    if (!channel)
      return channel.takeError();
    if (!world->reachEachOther({rank, peer}))
      return nullptr;
    return makeDeviceReceive(world, rank, peer, std::move(*channel), name);
  }

  /// Each member counts its own word up and waits for all others': who has left
  /// sees what everybody wrote before it came.
  llvm::Error barrier(Group &group) override {
    auto &local = static_cast<LocalGroup &>(group);
    std::vector<WaitWord> &words = local.state->barriers;
    uint32_t target = words[static_cast<size_t>(group.getIndex())].get() + 1;
    words[static_cast<size_t>(group.getIndex())].set(target);
    for (size_t i = 0; i < words.size(); ++i) {
      WaitResult result = words[i].waitFor(target, world->getPolicy());
      if (result != WaitResult::Reached)
        return world->waitError(result, rank, group.getRanks()[i], "barrier");
    }
    return llvm::Error::success();
  }

  void abort(const std::string &reason) override { world->abort(reason); }
  void stop(const std::string &reason) override { world->abort(reason); }
  std::string getAbortReason() const override {
    return world->getAbortReason();
  }

private:
  llvm::Expected<std::shared_ptr<LocalCollectiveState>>
  join(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
       const std::string &name) {
    auto &local = static_cast<LocalGroup &>(*group);
    if (std::string fault = findFault(specs, group->getSize()); !fault.empty())
      return makeErrorf(ExitCode::RunFailed, "rank {0}: '{1}' ({2}): {3}", rank,
                        name, specs.empty() ? "" : toString(specs), fault);
    auto state =
        world->joinCollective(*local.state, local.getIndex(), specs, name);
    if (!state)
      return addContext(state.takeError(), "rank " + llvm::Twine(rank));
    return state;
  }

  llvm::Expected<std::shared_ptr<LocalChannel>>
  findChannel(int32_t from, int32_t to, int32_t peer, int64_t tag,
              int64_t bytes, const std::string &name) {
    if (peer < 0 || peer >= getSize() || bytes < 0)
      return makeErrorf(ExitCode::RunFailed,
                        "rank {0}: '{1}': no messages with rank {2}", rank,
                        name, peer);
    return world->getChannel(from, to, tag, bytes);
  }

  std::shared_ptr<LocalWorld> world;
  int32_t rank;
};

} // namespace

std::vector<std::unique_ptr<Communicator>>
createLocalCommunicators(int32_t numRanks, const CommunicatorOptions &options) {
  auto world = std::make_shared<LocalWorld>(numRanks, options);
  std::vector<std::unique_ptr<Communicator>> result;
  for (int32_t rank = 0; rank < numRanks; ++rank)
    result.push_back(std::make_unique<LocalCommunicator>(world, rank));
  return result;
}

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerLocal(Backends &backends) {
  backends.communicators.add(
      "local",
      [](int32_t numRanks, const CommunicatorOptions &options)
          -> llvm::Expected<std::vector<std::unique_ptr<Communicator>>> {
        if (!options.ranks.empty() &&
            static_cast<int32_t>(options.ranks.size()) != numRanks)
          return makeErrorf(ExitCode::Usage,
                            "communicator 'local' is for ranks of one process, "
                            "which has {0} of {1}: use --comm=mpi",
                            options.ranks.size(), numRanks);
        return createLocalCommunicators(numRanks, options);
      });
}

} // namespace ax::rt
