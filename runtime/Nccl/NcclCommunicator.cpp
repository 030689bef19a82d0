//===- NcclCommunicator.cpp - Ranks with a card each ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is on memory of devices goes by NCCL. What is on memory of the host goes
// by communicator `local`; by that ranks find each other, too: who is first of
// some gives the others the identity of their NCCL communicator.
//
//===----------------------------------------------------------------------===//

#include "NcclOperations.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/CudaHandles.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

#include <cstdlib>
#include <cstring>
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

/// Returns the identity that the first of the group has made.
llvm::Expected<ncclUniqueId> shareId(const Nccl &library, Communicator &host,
                                     const std::shared_ptr<Group> &group) {
  ncclUniqueId mine{};
  if (group->getIndex() == 0)
    if (llvm::Error error = library.call(&Nccl::ncclGetUniqueId, &mine))
      return error;
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllGather;
  spec.dtype = DType::U8;
  spec.shape = {static_cast<int64_t>(sizeof(mine))};
  spec.gatherDim = 0;
  spec.gatherSize = group->getSize() * spec.shape.front();
  auto gather = host.prepare({spec}, group, "NCCL's identity");
  if (!gather)
    return gather.takeError();
  std::vector<ncclUniqueId> all(static_cast<size_t>(group->getSize()));
  if (llvm::Error error = (*gather)->run(&mine, all.data()))
    return error;
  return all.front();
}

class NcclCommunicator : public Communicator {
public:
  NcclCommunicator(RankLink rank, std::shared_ptr<NcclComm> all)
      : rank(std::move(rank)), all(std::move(all)) {}

  int32_t getRank() const override { return getHost().getRank(); }
  int32_t getSize() const override { return getHost().getSize(); }

  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    auto host = getHost().createGroup(ranks);
    if (!host)
      return host.takeError();
    std::shared_ptr<NcclComm> &comm = comms[ranks.vec()];
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

  llvm::Error barrier(Group &group) override {
    return getHost().barrier(*static_cast<NcclGroup &>(group).host);
  }
  bool isOrdered() const override { return true; }
  llvm::Error startTogether(llvm::function_ref<llvm::Error()> starts) override {
    return rank.link->collect(starts);
  }
  llvm::Error getLateError() const override {
    return rank.link->getLateError();
  }
  void abort(const std::string &reason) override { rank.world->abort(reason); }
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
  /// Of all ranks.
  std::shared_ptr<NcclComm> all;
  std::map<std::vector<int32_t>, std::shared_ptr<NcclComm>> comms;
};

/// The devices of all ranks; a Usage error where two have one card.
llvm::Error checkCards(llvm::ArrayRef<Device *> devices) {
  const char *shares = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  bool mayShare = shares && llvm::StringRef(shares) == "1";
  std::map<int32_t, size_t> users;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const Device &device = *devices[rank];
    if (llvm::StringRef(device.getName()) != "cuda")
      return makeErrorf(ExitCode::Usage,
                        "--comm=nccl is for --device=cuda, not for '{0}': "
                        "leave it out",
                        device.getName());
    auto [other, isNew] = users.emplace(device.getCard(), rank);
    if (!isNew && !mayShare)
      return makeErrorf(ExitCode::Usage,
                        "--comm=nccl: ranks {0} and {1} are both on card {2}, "
                        "and NCCL wants a card for each: give other --devices, "
                        "or leave --comm out",
                        other->second, rank, device.getCard());
  }
  return llvm::Error::success();
}

/// Makes the communicator of all ranks, who join together: the one thread that
/// is here cannot wait in one for those that it has still to come to.
llvm::Expected<std::vector<std::shared_ptr<NcclComm>>>
joinAll(NcclWorld &world, const std::vector<int32_t> &ranks) {
  std::vector<std::shared_ptr<NcclComm>> comms(ranks.size());
  if (ranks.size() == 1)
    return comms;
  const Nccl &library = world.getLibrary();
  ncclUniqueId id{};
  if (llvm::Error error = library.call(&Nccl::ncclGetUniqueId, &id))
    return error;
  if (llvm::Error error = library.call(&Nccl::ncclGroupStart))
    return error;
  llvm::Error error = llvm::Error::success();
  for (size_t i = 0; i < comms.size() && !error; ++i) {
    auto joined = world.getLinks()[i]->join(ranks, id);
    if (joined)
      comms[i] = std::move(*joined);
    else
      error = joined.takeError();
  }
  llvm::Error end = library.call(&Nccl::ncclGroupEnd);
  if (error) {
    llvm::consumeError(std::move(end));
    return error;
  }
  if (end)
    return end;
  return comms;
}

llvm::Expected<std::vector<std::unique_ptr<Communicator>>>
createNcclCommunicators(int32_t numRanks, const CommunicatorOptions &options) {
  if (!options.ranks.empty() &&
      static_cast<int32_t>(options.ranks.size()) != numRanks)
    return makeErrorf(ExitCode::Usage,
                      "communicator 'nccl' is for ranks of one process, which "
                      "has {0} of {1}: use --comm=mpi",
                      options.ranks.size(), numRanks);
  std::vector<int32_t> ranks(static_cast<size_t>(numRanks));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (llvm::Error error = checkCards(options.devices))
    return error;
  auto library = Nccl::load();
  if (!library)
    return library.takeError();
  auto hosts = createLocalCommunicators(numRanks, options);
  auto world =
      std::make_shared<NcclWorld>(std::move(*library), options.timeout);
  for (size_t i = 0; i < hosts.size(); ++i) {
    auto link = std::make_shared<NcclLink>(*world, *options.devices[i],
                                           std::move(hosts[i]));
    if (llvm::Error error = link->create())
      return error;
    world->add(std::move(link));
  }
  auto comms = joinAll(*world, ranks);
  if (!comms)
    return comms.takeError();
  std::vector<std::unique_ptr<Communicator>> made;
  for (size_t i = 0; i < comms->size(); ++i)
    made.push_back(std::make_unique<NcclCommunicator>(
        RankLink{world, world->getLinks()[i]}, std::move((*comms)[i])));
  world->watch();
  return made;
}

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerNccl(Backends &backends) {
  backends.communicators.add("nccl", createNcclCommunicators);
}

} // namespace ax::rt
