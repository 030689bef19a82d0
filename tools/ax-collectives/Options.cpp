//===- Options.cpp - The command line of ax-collectives -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"

#include "ax/Runtime/Launcher.h"
#include "ax/Support/Error.h"
#include "ax/Support/FlagTable.h"

#include <algorithm>

using namespace ax;

namespace {
#define AX_FLAGS_INC "ax-collectivesFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

/// A flag that would change nothing is a slip.
llvm::Error checkUses(const CommandLine &flags,
                      const rt::BackendOptions &backends, bool isProcess) {
  bool isOnHost = backends.device == "cpu";
  if (!isProcess && rt::findLauncher() != rt::Launcher::None)
    return usage("torchrun, or srun without MPI, has started this process and "
                 "others, and processes are measured that mpirun starts: use "
                 "that, or unset RANK or SLURM_PROCID to measure threads");
  auto idle = [](llvm::StringRef flag, llvm::StringRef use) {
    return usage(flag + " has no use in this run: it is for " + use);
  };
  if (isProcess && flags.has(OPT_ranks))
    return idle("--ranks",
                "ranks that are threads, and a launcher has started processes");
  if (isOnHost && flags.has(OPT_devices))
    return idle("--devices", "--device=cuda");
  if (!isOnHost && flags.isOn(OPT_peer))
    return idle("--peer", "--device=cpu");
  std::string ofTable =
      flags.firstOf({OPT_min_bytes, OPT_max_bytes, OPT_rounds, OPT_peer});
  if (flags.has(OPT_calibrate) && !ofTable.empty())
    return idle(ofTable, "a table of collectives, without --calibrate");
  const std::string &comm = backends.communicator;
  if (isProcess && comm == "local")
    return usage("--comm=local is for ranks that are threads, and a launcher "
                 "has started processes: leave it out");
  if (!isProcess && comm == "mpi")
    return usage("--comm=mpi is for processes that mpirun starts: leave it "
                 "out");
  return llvm::Error::success();
}

llvm::Error readBackends(const CommandLine &flags, bool isProcess,
                         rt::BackendOptions &backends) {
  backends.communicator = isProcess ? "mpi" : "local";
  // Nothing is computed in another device's place.
  backends.host.clear();
  backends.timeout = std::chrono::minutes(1);
  flags.read(OPT_device, backends.device);
  flags.read(OPT_comm, backends.communicator);
  if (flags.has(OPT_devices)) {
    auto cards = rt::parseCards(flags.text(OPT_devices));
    if (!cards)
      return cards.takeError();
    backends.cards = std::move(*cards);
  }
  return checkUses(flags, backends, isProcess);
}
} // namespace

llvm::Expected<CollectivesOptions>
ax::parseCollectivesOptions(int argc, char **argv, bool isProcess) {
  FlagTable table(
      "ax-collectives",
      "says how fast collectives are, of ranks that are threads or, "
      "started by mpirun, processes",
      "[FLAG]...", AX_FLAG_TABLE);
  auto flags = table.parse(argc, argv);
  if (!flags)
    return flags.takeError();
  if (!flags->getInputs().empty())
    return usage("'" + flags->getInputs().front() + "' is no flag");
  CollectivesOptions options;
  if (llvm::Error error = readBackends(*flags, isProcess, options.backends))
    return error;
  constexpr uint64_t mostRanks = 64, mostBytes = uint64_t(1) << 40,
                     mostRounds = 1 << 20;
  uint64_t numRanks = 2, minBytes = 64, maxBytes = 64 << 20, rounds = 20;
  flags->read(OPT_ranks, numRanks);
  flags->read(OPT_min_bytes, minBytes);
  flags->read(OPT_max_bytes, maxBytes);
  flags->read(OPT_rounds, rounds);
  if (numRanks < 1 || numRanks > mostRanks)
    return usage("--ranks=" + llvm::Twine(numRanks) + ": expected 1 to " +
                 llvm::Twine(mostRanks));
  maxBytes = std::min(maxBytes, mostBytes);
  if (minBytes < 4 || maxBytes < 4 || rounds < 1)
    return usage("sizes are 4 bytes or more, and there is a round");
  if (minBytes > maxBytes)
    return usage(
        "the smallest size, --min-bytes=" + llvm::Twine(minBytes) +
        ", is above the largest, --max-bytes=" + llvm::Twine(maxBytes));
  options.numRanks = static_cast<int32_t>(numRanks);
  options.measure.minBytes = static_cast<int64_t>(minBytes);
  options.measure.maxBytes = static_cast<int64_t>(maxBytes);
  options.measure.rounds = static_cast<int32_t>(std::min(rounds, mostRounds));
  options.withPeer = flags->isOn(OPT_peer);
  flags->read(OPT_calibrate, options.calibration.file);
  if (flags->has(OPT_calibrate) && options.calibration.file.empty())
    return usage("--calibrate: expected the name of a file");
  return options;
}

llvm::Error ax::checkCards(const CollectivesOptions &options,
                           int32_t numRanks) {
  auto numCards = static_cast<int32_t>(options.backends.cards.size());
  if (numCards == 0 || numCards == numRanks)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "--devices has {0} card{1}, and there {2} {3} rank{4}: "
                    "give one for each rank",
                    numCards, numCards == 1 ? "" : "s",
                    numRanks == 1 ? "is" : "are", numRanks,
                    numRanks == 1 ? "" : "s");
}
