//===- Backends.cpp - Devices and communicators by name -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"

#include "ax/Support/Error.h"
#include "ax/Support/Processors.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <set>

namespace ax::rt {

llvm::Error checkThreads(int64_t numRanks, int64_t threadsPerRank) {
  if (threadsPerRank < 1)
    return makeErrorf(ExitCode::Usage,
                      "--threads-per-rank={0}: a rank has 1 thread or more",
                      threadsPerRank);
  if (numRanks <= mostThreads / threadsPerRank)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "{0} rank{1} with {2} threads each: one process runs 1 to "
                    "{3} threads",
                    numRanks, numRanks == 1 ? "" : "s", threadsPerRank,
                    mostThreads);
}

int32_t findThreadsPerRank(int64_t numRanks, const BackendOptions &options) {
  int64_t here = options.ranks.empty()
                     ? numRanks
                     : static_cast<int64_t>(options.ranks.size());
  if (std::optional<int32_t> asked = askedThreads())
    return static_cast<int32_t>(
        std::clamp<int64_t>(mostThreads / here, 1, *asked));
  if (!options.ranks.empty())
    return 1;
  return static_cast<int32_t>(
      std::max<int64_t>(1, countProcessors() / numRanks));
}

llvm::Error noBackend(llvm::StringRef kind, llvm::StringRef name,
                      const std::vector<std::string> &known) {
  return makeErrorf(ExitCode::Usage, "there is no {0} '{1}', but: {2}", kind,
                    name, llvm::join(known, ", "));
}

llvm::Expected<std::vector<int32_t>> parseCards(llvm::StringRef text) {
  std::vector<int32_t> cards;
  for (llvm::StringRef word : llvm::split(text, ',')) {
    uint32_t card;
    if (word.getAsInteger(10, card) || card > INT32_MAX)
      return makeErrorf(ExitCode::Usage,
                        "--devices={0}: '{1}' is no number of a card: expected "
                        "one for each rank, from 0, with commas between",
                        text, word);
    cards.push_back(static_cast<int32_t>(card));
  }
  return cards;
}

llvm::Error Backends::check(const BackendOptions &options) const {
  auto device = devices.find(options.device);
  if (!device)
    return device.takeError();
  return communicators.find(options.communicator).takeError();
}

llvm::Error Backends::checkRanks(int64_t numRanks,
                                 const BackendOptions &options) const {
  auto numHere = options.ranks.empty()
                     ? numRanks
                     : static_cast<int64_t>(options.ranks.size());
  if (llvm::Error error = checkThreads(numHere, options.devices.threadsPerRank))
    return error;
  auto numCards = static_cast<int64_t>(options.cards.size());
  if (numCards == 0 || numCards == numRanks)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "--devices has {0} card{1}, and the plan {2} rank{3}: give "
                    "one for each rank",
                    numCards, numCards == 1 ? "" : "s", numRanks,
                    numRanks == 1 ? "" : "s");
}

llvm::Expected<std::vector<int32_t>>
Backends::placeRanks(int64_t numRanks, const BackendOptions &options) const {
  if (llvm::Error error = checkRanks(numRanks, options))
    return error;
  auto device = devices.find(options.device);
  if (!device)
    return device.takeError();
  llvm::Expected<int32_t> numCards = device->countCards();
  if (!numCards)
    return numCards.takeError();
  std::vector<int32_t> cards;
  if (options.cards.empty()) {
    // Several processes have one rank each.
    bool isAlone = options.ranks.empty();
    int64_t onHost = isAlone ? numRanks : options.processesOnHost;
    int64_t first = isAlone ? 0 : options.indexOnHost;
    int64_t here =
        isAlone ? numRanks : static_cast<int64_t>(options.ranks.size());
    int64_t numUsed = std::min<int64_t>(*numCards, onHost);
    for (int64_t i = first; i < first + here; ++i)
      cards.push_back(static_cast<int32_t>(i * numUsed / onHost));
    return cards;
  }
  if (options.ranks.empty())
    cards = options.cards;
  for (int32_t rank : options.ranks)
    cards.push_back(options.cards[static_cast<size_t>(rank)]);
  for (int32_t card : cards)
    if (card >= *numCards)
      return makeErrorf(ExitCode::Usage,
                        "--devices: there is no card {0} of device '{1}', "
                        "which has {2}",
                        card, options.device,
                        *numCards == 1
                            ? "only card 0"
                            : llvm::formatv("{0}, from 0", *numCards).str());
  return cards;
}

llvm::Expected<Target>
Backends::findTarget(int64_t numRanks, const BackendOptions &options) const {
  auto cards = placeRanks(numRanks, options);
  if (!cards)
    return cards.takeError();
  auto device = devices.find(options.device);
  if (!device)
    return device.takeError();
  std::optional<Target> least;
  for (int32_t card : std::set<int32_t>(cards->begin(), cards->end())) {
    llvm::Expected<Target> target = device->findTarget(card);
    if (!target)
      return target.takeError();
    if (!least || !runsOn(*least, *target))
      least = std::move(*target);
  }
  return *least;
}

llvm::Expected<RankBackends>
Backends::create(int64_t numRanks, const BackendOptions &options) const {
  auto cards = placeRanks(numRanks, options);
  if (!cards)
    return cards.takeError();
  auto device = devices.find(options.device);
  if (!device)
    return device.takeError();
  auto createCommunicators = communicators.find(options.communicator);
  if (!createCommunicators)
    return createCommunicators.takeError();
  auto ranks = static_cast<int32_t>(numRanks);
  auto madeDevices = device->create(*cards, options.devices);
  if (!madeDevices)
    return madeDevices.takeError();
  CommunicatorOptions communicatorOptions;
  communicatorOptions.ranks = options.ranks;
  communicatorOptions.timeout = options.timeout;
  for (const std::unique_ptr<Device> &made : *madeDevices) {
    communicatorOptions.numThreads += made->getNumThreads();
    communicatorOptions.devices.push_back(made.get());
  }
  communicatorOptions.numThreads *= options.processesOnHost;
  auto madeCommunicators = (*createCommunicators)(ranks, communicatorOptions);
  if (!madeCommunicators)
    return madeCommunicators.takeError();
  RankBackends made{std::move(*madeDevices), std::move(*madeCommunicators)};
  if (options.host.empty() || made.devices.front()->getHostMapping())
    return made;
  auto host = devices.find(options.host);
  if (!host)
    return host.takeError();
  const std::vector<int32_t> first(cards->size());
  auto madeHosts = host->create(first, options.devices);
  if (!madeHosts)
    return madeHosts.takeError();
  made.hosts = std::move(*madeHosts);
  return made;
}

} // namespace ax::rt
