//===- Measure.cpp - Times of collectives, ours and others' ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are measured in turns, in short rounds. Of these the fastest counts:
// what else runs on the machine only adds time. The calls of a round are put on
// a stream one behind another, and the time is that to the end of the last one,
// as nccl-tests have it.
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace ax {

namespace {

using rt::Communicator, rt::Group;
using Seconds = CaseRun::Seconds;

void printRates(int64_t bytes, double factor, Seconds time) {
  double rate = static_cast<double>(bytes) / time.count() / 1e9;
  std::printf(" %12.2f %8.2f %8.2f", time.count() * 1e6, rate, rate * factor);
}

llvm::Error measureCase(Communicator &comm, rt::Device &device,
                        const std::shared_ptr<Group> &group, CaseKind kind,
                        int64_t bytes, const MeasureOptions &options) {
  CaseRun run(comm, device, group, kind, bytes);
  if (llvm::Error error = run.prepare(options.reductions))
    return error;
  Seconds ours = Seconds::max(), peer = Seconds::max();
  int64_t calls = std::clamp<int64_t>((4 << 20) / run.numBytes(), 2, 200);
  if (llvm::Error error = run.issue())
    return error;
  if (llvm::Error error = run.complete())
    return error;
  auto wrong = run.countWrong();
  if (!wrong)
    return wrong.takeError();
  if (options.peer)
    run.begin(*options.peer);
  for (int32_t round = 0; round < options.rounds; ++round) {
    if (llvm::Error error = run.time(calls, ours))
      return error;
    if (!options.peer)
      continue;
    if (llvm::Error error = run.time(
            calls, peer, [&] { return options.peer->run(); },
            [] { return llvm::Error::success(); }))
      return error;
  }
  // A peer of another rank may still read what is this one's, or write to it.
  if (llvm::Error error = comm.barrier(*group))
    return error;
  auto later = run.countWrong();
  if (!later)
    return later.takeError();
  *wrong = std::max(*wrong, *later);
  if (comm.getRank() == 0) {
    double factor = busFactor(kind, comm.getSize());
    std::printf("%-14s %10lld %5s", nameOf(kind),
                static_cast<long long>(run.numBytes()), "f32");
    printRates(run.numBytes(), factor, ours);
    std::printf(" %6lld", static_cast<long long>(*wrong));
    if (options.peer) {
      printRates(run.numBytes(), factor, peer);
      std::printf(" %6.2f", ours / peer);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  if (!*wrong)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Differs,
                    "rank {0}: {1} of {2} bytes: {3} values "
                    "are wrong",
                    comm.getRank(), nameOf(kind), run.numBytes(), *wrong);
}

} // namespace

llvm::Error measureAll(Communicator &comm, rt::Device &device,
                       const MeasureOptions &options) {
  std::vector<int32_t> ranks(static_cast<size_t>(comm.getSize()));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto group = comm.createGroup(ranks);
  if (!group)
    return group.takeError();
  if (comm.getRank() == 0) {
    std::printf("%-14s %10s %5s %12s %8s %8s %6s", "", "bytes", "type", "us",
                "alg GB/s", "bus GB/s", "wrong");
    if (options.peer)
      std::printf(" %12s %8s %8s %6s", "peer us", "alg GB/s", "bus GB/s",
                  "ratio");
    std::printf("\n");
  }
  for (int32_t number = 0; number < numCases; ++number) {
    auto kind = static_cast<CaseKind>(number);
    // NCCL sends nothing from a rank to itself.
    if (kind == CaseKind::SendReceive && comm.isOrdered() &&
        comm.getSize() == 1)
      continue;
    for (int64_t bytes = options.minBytes; bytes <= options.maxBytes;
         bytes *= 4)
      if (llvm::Error error =
              measureCase(comm, device, *group, kind, bytes, options))
        return error;
  }
  return llvm::Error::success();
}

} // namespace ax
