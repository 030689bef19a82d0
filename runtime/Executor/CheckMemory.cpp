//===- CheckMemory.cpp - Whether ranks find room on their devices ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CheckMemory.h"

#include "Parts.h"
#include "ax/Runtime/MemoryNeeds.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"
#include "ax/Support/Threads.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>
#include <thread>

namespace ax::rt {

namespace {

/// The memory of one device, and who shares it.
struct DeviceRoom {
  const RankContext *first = nullptr;
  std::vector<Device *> devices;
  MemoryNeeds needs;
  /// The parts of states that nobody changes: ranks share them.
  std::set<std::pair<int32_t, int64_t>> shared;
  /// What libraries use, as far as they were asked: layers, and ranks, are
  /// alike.
  std::vector<std::pair<const LibraryDesc *, int64_t>> workspaces;
};

} // namespace

static llvm::Expected<int64_t> findWorkspace(DeviceRoom &space,
                                             const RankContext &rank,
                                             const LibraryDesc &desc) {
  for (auto [known, bytes] : space.workspaces)
    if (*known == desc)
      return bytes;
  llvm::Expected<int64_t> bytes = rank.device.findWorkspace(desc);
  if (bytes)
    space.workspaces.emplace_back(&desc, *bytes);
  return bytes;
}

/// Adds to what a rank needs what its device's libraries, and its communicator,
/// say of their own.
static llvm::Error addLibraries(MemoryNeeds &needs, DeviceRoom &space,
                                const RankContext &rank) {
  for (const Command *command : rank.stage->allCommands()) {
    if (const auto *library = std::get_if<LibraryCommand>(&command->body)) {
      llvm::Expected<int64_t> bytes = findWorkspace(space, rank, library->desc);
      if (!bytes)
        return addContext(bytes.takeError(),
                          "rank " + llvm::Twine(rank.rank) + ", stage '" +
                              rank.stage->name + "', preparing '" +
                              command->name + "'");
      needs.scratch = std::max(needs.scratch, *bytes);
    } else if (const auto *collective =
                   std::get_if<CollectiveCommand>(&command->body)) {
      CollectiveSpecs specs(collective->parts.begin(), collective->parts.end());
      const GroupSet &set =
          rank.stage->groups[static_cast<size_t>(collective->groupSet)];
      for (const std::vector<int32_t> &group : set.groups)
        if (auto mine = llvm::find(group, rank.rank); mine != group.end())
          needs.staging = std::max(
              needs.staging, rank.communicator.findStaging(
                                 specs, static_cast<int32_t>(group.size()),
                                 static_cast<int32_t>(mine - group.begin())));
    }
  }
  return llvm::Error::success();
}

static llvm::Error add(DeviceRoom &space, const RankContext &rank,
                       bool hasStates) {
  const Program &program = rank.program;
  if (!space.first)
    space.first = &rank;
  space.devices.push_back(&rank.device);
  auto isNew = [&](int32_t number) {
    const State &state = program.states[static_cast<size_t>(number)];
    if (state.isMutable || state.isPrepared)
      return !hasStates && state.isMutable;
    Part part =
        makePart(state.layout, state.dtype, program.mesh, rank.coordinates(0));
    return space.shared.insert({number, part.number}).second;
  };
  MemoryNeeds needs =
      findNeeds(program, *rank.stage, isNew, rank.device.isNondeterministic());
  needs.ports *= numPortSlots;
  if (llvm::Error error = addLibraries(needs, space, rank))
    return error;
  space.needs += needs;
  return llvm::Error::success();
}

/// Adds up what the ranks of each device need. Libraries take their time to say
/// what they use, so each device has a thread.
static llvm::Error addAll(std::map<int32_t, DeviceRoom> &spaces,
                          llvm::ArrayRef<RankContext> ranks, bool hasStates) {
  std::map<int32_t, std::vector<const RankContext *>> ranksOf;
  for (const RankContext &rank : ranks)
    if (!rank.device.getHostMapping())
      ranksOf[rank.device.getMemorySpace()].push_back(&rank);
  std::vector<llvm::Error> errors;
  std::vector<std::thread> threads;
  errors.reserve(ranksOf.size());
  for (const auto &[number, those] : ranksOf) {
    errors.push_back(llvm::Error::success());
    auto work = [&space = spaces[number], &those = those, hasStates,
                 &error = errors.back()] {
      for (const RankContext *rank : those)
        if (!error)
          error = add(space, *rank, hasStates);
    };
    auto thread = ranksOf.size() > 1
                      ? startThread("a thread that counts memory", work)
                      : llvm::Expected<std::thread>(std::thread());
    if (thread && thread->joinable()) {
      threads.push_back(std::move(*thread));
      continue;
    }
    // It is done here, then.
    if (!thread)
      llvm::consumeError(thread.takeError());
    work();
  }
  for (std::thread &thread : threads)
    thread.join();
  llvm::Error first = llvm::Error::success();
  for (llvm::Error &error : errors)
    if (error && !first)
      first = std::move(error);
    else
      llvm::consumeError(std::move(error));
  return first;
}

llvm::Error checkMemory(llvm::ArrayRef<RankContext> ranks, bool hasStates) {
  std::map<int32_t, DeviceRoom> spaces;
  if (llvm::Error error = addAll(spaces, ranks, hasStates))
    return error;
  for (const auto &[number, space] : spaces) {
    const RankContext &rank = *space.first;
    llvm::Expected<MemorySize> size = rank.device.getMemorySize();
    if (!size)
      return addContext(size.takeError(),
                        "device '" + llvm::Twine(rank.device.getName()) + "'");
    int64_t needed = space.needs.total();
    if (needed <= size->free) {
      for (Device *device : space.devices)
        device->setSpareMemory(size->free - needed);
      continue;
    }
    size_t numRanks = space.devices.size();
    return makeErrorf(
        ExitCode::RunFailed,
        "card {0} of device '{1}' has {2} of memory free, and {3} on it "
        "need{4} {5}: {6}; more ranks on other --devices, --zero, --recompute "
        "or more micro-batches take less",
        rank.device.getCard(), rank.device.getName(), bytesText(size->free),
        numRanks == 1 ? "the rank" : std::to_string(numRanks) + " ranks",
        numRanks == 1 ? "s" : "", bytesText(needed), space.needs.toText());
  }
  return llvm::Error::success();
}

} // namespace ax::rt
