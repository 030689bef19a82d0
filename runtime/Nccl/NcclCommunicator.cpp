//===- NcclCommunicator.cpp - Ranks with a card each ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is on memory of devices goes by NCCL. What is on memory of the host goes
// by the communicator that the ranks would have without it, `local` for
// threads, `mpi` or `tcp` for processes; by that they find each other, too: who
// is first of some gives the others the identity of their NCCL communicator.
//
//===----------------------------------------------------------------------===//

#include "NcclOperations.h"
#include "NcclSeats.h"
#include "NcclSplits.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/CudaHandles.h"
#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Runtime/TcpMesh.h"
#include "ax/Support/Error.h"

#include <map>
#include <numeric>

namespace ax::rt {

namespace {

using namespace nccl;

class NcclGroup : public Group {
public:
  NcclGroup(std::shared_ptr<Group> host, std::shared_ptr<NcclComm> comm)
      : Group(host->getRanks(), host->getIndex()), host(std::move(host)),
        comm(std::move(comm)) {}
  std::shared_ptr<Group> host;
  std::shared_ptr<NcclComm> comm;
};

/// Returns what all of the group give, in their order. `T` is plain bytes.
template <typename T>
llvm::Expected<std::vector<T>> gather(Communicator &host,
                                      const std::shared_ptr<Group> &group,
                                      const T &mine, const char *name) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllGather;
  spec.dtype = DType::U8;
  spec.shape = {static_cast<int64_t>(sizeof(T))};
  spec.gatherDim = 0;
  spec.gatherSize = group->getSize() * spec.shape.front();
  auto operation = host.prepare({spec}, group, name);
  if (!operation)
    return operation.takeError();
  std::vector<T> all(static_cast<size_t>(group->getSize()));
  if (llvm::Error error = (*operation)->run(&mine, all.data()))
    return error;
  return all;
}

/// Returns the identity that the first of the group has made.
llvm::Expected<ncclUniqueId> shareId(const Nccl &library, Communicator &host,
                                     const std::shared_ptr<Group> &group) {
  ncclUniqueId mine{};
  if (group->getIndex() == 0)
    if (llvm::Error error = library.call(&Nccl::ncclGetUniqueId, &mine))
      return error;
  auto all = gather(host, group, mine, "NCCL's identity");
  if (!all)
    return all.takeError();
  return all->front();
}

/// Operations of a graph, told to the link before each launch.
class NcclCaptured : public CapturedOperations {
public:
  explicit NcclCaptured(RankLink rank)
      : rank(std::move(rank)), operations(this->rank.link->endCapture()) {}
  llvm::Error beginLaunch() override {
    return rank.link->beginLaunch(operations);
  }

private:
  RankLink rank;
  std::vector<std::shared_ptr<const Description>> operations;
};

/// Memory that operations reach without copies.
class NcclMemory : public DeviceMemory {
public:
  NcclMemory(RankLink rank, std::unique_ptr<NcclBuffer> buffer)
      : DeviceMemory(DeviceAccess::address(buffer->address), buffer->bytes),
        rank(std::move(rank)), buffer(std::move(buffer)) {}
  ~NcclMemory() override { rank.link->free(*buffer); }

private:
  RankLink rank;
  std::unique_ptr<NcclBuffer> buffer;
};

class NcclCommunicator : public Communicator {
public:
  NcclCommunicator(RankLink rank, std::shared_ptr<NcclComm> all)
      : rank(std::move(rank)), all(std::move(all)) {}

  int32_t getRank() const override { return getHost().getRank(); }
  int32_t getSize() const override { return getHost().getSize(); }

  llvm::Error
  announceGroups(llvm::ArrayRef<std::vector<int32_t>> groups) override;
  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    auto host = getHost().createGroup(ranks);
    if (!host)
      return host.takeError();
    std::shared_ptr<NcclComm> &comm = comms[ranks.vec()];
    if (!comm && isWhole(ranks, getSize()))
      comm = all;
    if (!comm) {
      auto id = shareId(rank.world->getLibrary(), getHost(), *host);
      if (!id)
        return id.takeError();
      auto joined = rank.link->join(ranks.vec(), *id);
      if (!joined)
        return joined.takeError();
      comm = std::move(*joined);
    }
    return std::make_shared<NcclGroup>(std::move(*host), comm);
  }

  llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) override {
    return getHost().prepare(specs, static_cast<NcclGroup &>(*group).host,
                             name);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) override {
    return getHost().prepareSend(peer, tag, bytes, name);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) override {
    return getHost().prepareReceive(peer, tag, bytes, name);
  }

  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareOnStream(const CollectiveSpecs &specs,
                  const std::shared_ptr<Group> &group, const std::string &name,
                  const Kernel *) override {
    if (std::string fault = findFault(specs, group->getSize()); !fault.empty())
      return makeErrorf(ExitCode::RunFailed, "rank {0}: '{1}' ({2}): {3}",
                        getRank(), name, specs.empty() ? "" : toString(specs),
                        fault);
    if (reduces(specs.front().kind) && !canReduce(specs.front().dtype))
      return nullptr;
    return makeNcclCollective(rank, static_cast<NcclGroup &>(*group).comm,
                              group->getIndex(), specs, name);
  }
  int64_t findStaging(const CollectiveSpecs &specs, int32_t size,
                      int32_t index) const override {
    bool isByNccl =
        findFault(specs, size).empty() &&
        (!reduces(specs.front().kind) || canReduce(specs.front().dtype));
    return isByNccl ? scratchOf(specs, size, index) : 0;
  }
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareSendOnStream(int32_t peer, int64_t, int64_t bytes,
                      const std::string &name) override {
    return prepareMessage(peer, /*isSend=*/true, bytes, name);
  }
  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareReceiveOnStream(int32_t peer, int64_t, int64_t bytes,
                         const std::string &name) override {
    return prepareMessage(peer, /*isSend=*/false, bytes, name);
  }

  llvm::Expected<std::unique_ptr<DeviceMemory>>
  allocate(Device &device, int64_t bytes) override;
  llvm::Error barrier(Group &group) override {
    return getHost().barrier(*static_cast<NcclGroup &>(group).host);
  }
  bool isOrdered() const override { return true; }
  void beginCapture() override { rank.link->beginCapture(); }
  std::unique_ptr<CapturedOperations> endCapture() override;
  llvm::Error getLateError() const override {
    return rank.link->getLateError();
  }
  void settle(std::chrono::steady_clock::time_point until) override {
    rank.link->settle(until);
  }
  void abort(const std::string &reason) override { rank.world->abort(reason); }
  void stop(const std::string &reason) override { rank.world->stop(reason); }
  std::string getAbortReason() const override {
    return rank.world->getAbortReason();
  }

private:
  Communicator &getHost() const { return rank.link->getHost(); }

  llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareMessage(int32_t peer, bool isSend, int64_t bytes,
                 const std::string &name) {
    if (peer < 0 || peer >= getSize() || peer == getRank() || bytes < 0)
      return makeErrorf(ExitCode::RunFailed,
                        "rank {0}: '{1}': no messages with rank {2}", getRank(),
                        name, peer);
    return makeNcclMessage(rank, all, peer, isSend, bytes, name);
  }

  RankLink rank;
  /// Of all ranks; null where there is one.
  std::shared_ptr<NcclComm> all;
  /// By their ranks.
  std::map<std::vector<int32_t>, std::shared_ptr<NcclComm>> comms;
};

/// All of them are split from the communicator of all ranks, which takes NCCL
/// no identities, and no meeting beside those connections that there are.
llvm::Error
NcclCommunicator::announceGroups(llvm::ArrayRef<std::vector<int32_t>> groups) {
  std::vector<SplitGroups> splits = findSplits(groups, getSize());
  if (splits.empty())
    return llvm::Error::success();
  // Inside a split only an abort ends the waiting for who does not come: all
  // are about to be there, or nobody goes.
  std::vector<int32_t> everybody(static_cast<size_t>(getSize()));
  std::iota(everybody.begin(), everybody.end(), 0);
  auto host = getHost().createGroup(everybody);
  if (!host)
    return host.takeError();
  if (llvm::Error error = getHost().barrier(**host))
    return error;
  for (const SplitGroups &split : splits) {
    auto mine = llvm::find_if(split, [&](const std::vector<int32_t> &group) {
      return llvm::is_contained(group, getRank());
    });
    bool isIn = mine != split.end();
    auto made = rank.link->split(*all, isIn ? *mine : std::vector<int32_t>(),
                                 isIn ? static_cast<int>(mine - split.begin())
                                      : NCCL_SPLIT_NOCOLOR);
    if (!made)
      return made.takeError();
    if (isIn)
      comms[*mine] = std::move(*made);
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<DeviceMemory>>
NcclCommunicator::allocate(Device &device, int64_t bytes) {
  // NCCL's memory comes in pieces of 2 MiB, so that less would waste much, and
  // each has to be known to each communicator.
  constexpr int64_t leastBytes = int64_t(16) << 20;
  if (all && !rank.world->sharesCards() && bytes >= leastBytes)
    if (std::unique_ptr<NcclBuffer> buffer = rank.link->allocate(bytes))
      return std::make_unique<NcclMemory>(rank, std::move(buffer));
  return device.allocate(bytes);
}

std::unique_ptr<CapturedOperations> NcclCommunicator::endCapture() {
  return std::make_unique<NcclCaptured>(rank);
}

llvm::Error checkDevices(llvm::ArrayRef<Device *> devices) {
  for (const Device *device : devices)
    if (llvm::StringRef(device->getName()) != "cuda")
      return makeErrorf(ExitCode::Usage,
                        "--comm=nccl is for --device=cuda, not for '{0}': "
                        "leave it out",
                        device->getName());
  return llvm::Error::success();
}

/// Ranks of this process are all that there are.
bool areAllHere(int32_t numRanks, const CommunicatorOptions &options) {
  return options.ranks.empty() ||
         static_cast<int32_t>(options.ranks.size()) == numRanks;
}

llvm::Expected<std::unique_ptr<Communicator>>
createOfProcess(int32_t numRanks, const CommunicatorOptions &options) {
  if (TcpMesh *mesh = getTcp())
    return mesh->createCommunicator(numRanks, options);
  auto process = openMpi();
  if (!process)
    return process.takeError();
  return (*process)->createCommunicator(numRanks, options);
}

llvm::Expected<std::vector<std::unique_ptr<Communicator>>>
createHosts(int32_t numRanks, const CommunicatorOptions &options) {
  if (areAllHere(numRanks, options))
    return createLocalCommunicators(numRanks, options);
  auto made = createOfProcess(numRanks, options);
  if (!made)
    return made.takeError();
  std::vector<std::unique_ptr<Communicator>> hosts;
  hosts.push_back(std::move(*made));
  return hosts;
}

/// Looks where all ranks are, and returns the identity of their communicator.
llvm::Expected<ncclUniqueId> meet(NcclWorld &world,
                                  const std::vector<int32_t> &ranks) {
  const auto &links = world.getLinks();
  if (links.size() == ranks.size()) {
    std::vector<Seat> seats;
    for (const std::shared_ptr<NcclLink> &link : links) {
      auto seat = seatOf(link->getDevice(), world.getLibrary());
      if (!seat)
        return seat.takeError();
      seats.push_back(*seat);
    }
    llvm::Expected<bool> isShared = findSharing(seats);
    if (!isShared)
      return isShared.takeError();
    world.setSharing(*isShared);
    ncclUniqueId id{};
    if (llvm::Error error =
            world.getLibrary().call(&Nccl::ncclGetUniqueId, &id))
      return error;
    return id;
  }
  Communicator &host = links.front()->getHost();
  auto group = host.createGroup(ranks);
  if (!group)
    return group.takeError();
  auto seat = seatOf(links.front()->getDevice(), world.getLibrary());
  if (!seat)
    return seat.takeError();
  auto seats = gather(host, *group, *seat, "cards of ranks");
  if (!seats)
    return seats.takeError();
  // Inside NCCL it is an error, too, but one that names no host.
  if (llvm::Error error = checkVersions(*seats))
    return error;
  llvm::Expected<bool> isShared = findSharing(*seats);
  if (!isShared)
    return isShared.takeError();
  world.setSharing(*isShared);
  return shareId(world.getLibrary(), host, *group);
}

/// Makes the communicator of all ranks, of which those here join together: one
/// thread cannot wait in one for those that it has still to come to.
llvm::Expected<std::vector<std::shared_ptr<NcclComm>>>
joinAll(NcclWorld &world, int32_t numRanks) {
  std::vector<int32_t> ranks(static_cast<size_t>(numRanks));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::shared_ptr<NcclComm>> comms(world.getLinks().size());
  if (numRanks == 1)
    return comms;
  auto id = meet(world, ranks);
  if (!id)
    return id.takeError();
  const Nccl &library = world.getLibrary();
  if (llvm::Error error = library.call(&Nccl::ncclGroupStart))
    return error;
  llvm::Error error = llvm::Error::success();
  for (size_t i = 0; i < comms.size() && !error; ++i) {
    auto joined = world.getLinks()[i]->join(ranks, *id);
    if (joined)
      comms[i] = std::move(*joined);
    else
      error = joined.takeError();
  }
  llvm::Error end = library.call(&Nccl::ncclGroupEnd);
  if (error)
    // The end says it once more.
    llvm::consumeError(std::move(end));
  else
    error = std::move(end);
  if (!error)
    return comms;
  // None of them is whole.
  world.abort("ranks could not join");
  return error;
}

llvm::Expected<std::vector<std::unique_ptr<Communicator>>>
createNcclCommunicators(int32_t numRanks, const CommunicatorOptions &options) {
  if (llvm::Error error = checkDevices(options.devices))
    return error;
  auto library = Nccl::load();
  if (!library)
    return library.takeError();
  auto hosts = createHosts(numRanks, options);
  if (!hosts)
    return hosts.takeError();
  auto world =
      std::make_shared<NcclWorld>(std::move(*library), options.timeout);
  for (size_t i = 0; i < hosts->size(); ++i) {
    auto link = std::make_shared<NcclLink>(*world, *options.devices[i],
                                           std::move((*hosts)[i]));
    if (llvm::Error error = link->create())
      return error;
    world->add(std::move(link));
  }
  auto comms = joinAll(*world, numRanks);
  if (!comms)
    return comms.takeError();
  std::vector<std::unique_ptr<Communicator>> made;
  for (size_t i = 0; i < comms->size(); ++i)
    made.push_back(std::make_unique<NcclCommunicator>(
        RankLink{world, world->getLinks()[i]}, std::move((*comms)[i])));
  if (llvm::Error error = world->watch())
    return error;
  return made;
}

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerNccl(Backends &backends) {
  backends.communicators.add("nccl", createNcclCommunicators);
}

} // namespace ax::rt
