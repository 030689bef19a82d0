//===- Options.cpp - The command line of ax-collectives -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"

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
} // namespace

llvm::Expected<CollectivesOptions> ax::parseCollectivesOptions(int argc,
                                                               char **argv) {
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
  if (minBytes < 4 || minBytes > maxBytes || rounds < 1)
    return usage("sizes are 4 bytes or more, and there is a round");
  CollectivesOptions options;
  options.numRanks = static_cast<int32_t>(numRanks);
  options.measure.minBytes = static_cast<int64_t>(minBytes);
  options.measure.maxBytes = static_cast<int64_t>(maxBytes);
  options.measure.rounds = static_cast<int32_t>(std::min(rounds, mostRounds));
  options.withPeer = flags->isOn(OPT_peer);
  return options;
}
