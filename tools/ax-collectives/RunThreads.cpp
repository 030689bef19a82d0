//===- RunThreads.cpp - Ranks that are threads ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DirectPeer.h"
#include "Reductions.h"
#include "Run.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Support/Error.h"

#include <mutex>
#include <thread>

using namespace ax;

llvm::Error ax::runThreads(CollectivesOptions options) {
  if (llvm::Error error = checkCards(options, options.numRanks))
    return error;
  if (llvm::Error error =
          prepareCalibration(options, options.numRanks, /*isFirst=*/true))
    return error;
  options.calibration.ranksOnHost = options.numRanks;
  auto ranks = rt::allBackends().create(options.numRanks, options.backends);
  if (!ranks)
    return ranks.takeError();
  auto reductions = compileReductions(options.numRanks, options.backends);
  if (!reductions)
    return reductions.takeError();
  options.measure.reductions = std::move(*reductions);
  auto peers = createDirectPeers(options.numRanks);
  std::vector<std::thread> threads;
  std::mutex mutex;
  llvm::Error failure = llvm::Error::success();
  for (size_t rank = 0; rank < ranks->communicators.size(); ++rank)
    threads.emplace_back([&, rank, own = options]() mutable {
      rt::Communicator &comm = *ranks->communicators[rank];
      own.calibration.indexOnHost = comm.getRank();
      if (own.withPeer)
        own.measure.peer = peers[rank].get();
      if (llvm::Error error = runRank(comm, *ranks->devices[rank], own)) {
        {
          std::lock_guard<std::mutex> lock(mutex);
          failure = llvm::joinErrors(std::move(failure), std::move(error));
        }
        // Behind it, so that the cause is told before what it stops.
        comm.abort("another rank has failed");
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return failure;
}
