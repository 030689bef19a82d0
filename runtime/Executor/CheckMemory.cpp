//===- CheckMemory.cpp - Whether ranks find room on their devices ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CheckMemory.h"

#include "Parts.h"
#include "ax/Runtime/MemoryNeeds.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

namespace ax::rt {

namespace {

/// The memory of one device, and who shares it.
struct DeviceRoom {
  const RankContext *first = nullptr;
  std::vector<Device *> devices;
  MemoryNeeds needs;
  /// The parts of states that nobody changes: ranks share them.
  std::set<std::pair<int32_t, int64_t>> shared;
};

} // namespace

/// Adds to what a rank needs what its device's libraries, and its communicator,
/// say of their own.
static llvm::Error addLibraries(MemoryNeeds &needs, const RankContext &rank) {
  // Layers are alike.
  std::vector<const LibraryDesc *> asked;
  for (const Command *command : rank.stage->allCommands()) {
    if (const auto *library = std::get_if<LibraryCommand>(&command->body)) {
      if (llvm::any_of(asked, [&](const LibraryDesc *other) {
            return *other == library->desc;
          }))
        continue;
      asked.push_back(&library->desc);
      llvm::Expected<int64_t> bytes = rank.device.findWorkspace(library->desc);
      if (!bytes)
        return addContext(bytes.takeError(), "rank " + llvm::Twine(rank.rank) +
                                                 ", '" + command->name + "'");
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
  if (llvm::Error error = addLibraries(needs, rank))
    return error;
  space.needs += needs;
  return llvm::Error::success();
}

llvm::Error checkMemory(llvm::ArrayRef<RankContext> ranks, bool hasStates) {
  std::map<int32_t, DeviceRoom> spaces;
  for (const RankContext &rank : ranks)
    if (!rank.device.getHostMapping())
      if (llvm::Error error =
              add(spaces[rank.device.getMemorySpace()], rank, hasStates))
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
