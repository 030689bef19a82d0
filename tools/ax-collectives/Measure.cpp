//===- Measure.cpp - Times of collectives, ours and others' ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are measured in turns, in short rounds. Of these the fastest counts:
// what else runs on the machine only adds time.
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace ax {

namespace {

using rt::Communicator, rt::Group, rt::Operation;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

rt::CollectiveSpec makeSpec(CaseKind kind, int32_t ranks,
                            const CaseCounts &counts) {
  rt::CollectiveSpec spec;
  spec.shape = {counts.source};
  switch (kind) {
  case CaseKind::AllReduce:
    break;
  case CaseKind::AllGather:
    spec.kind = rt::CollectiveKind::AllGather;
    spec.gatherDim = 0;
    spec.gatherSize = counts.destination;
    break;
  case CaseKind::ReduceScatter:
    spec.kind = rt::CollectiveKind::ReduceScatter;
    spec.scatterDim = 0;
    spec.scatterPart = counts.destination;
    break;
  case CaseKind::AllToAll:
    spec.kind = rt::CollectiveKind::AllToAll;
    spec.shape = {1, counts.source};
    spec.gatherDim = 0;
    spec.gatherSize = ranks;
    spec.scatterDim = 1;
    spec.scatterPart = counts.source / ranks;
    break;
  default:
    spec.kind = rt::CollectiveKind::Permute;
    for (int32_t rank = 0; rank < ranks; ++rank)
      spec.permutation.push_back(
          kind == CaseKind::Broadcast ? 0 : (rank + ranks - 1) % ranks);
  }
  return spec;
}

/// One case of one size, on this rank.
class Run {
public:
  Run(Communicator &comm, std::shared_ptr<Group> group, CaseKind kind,
      int64_t bytes)
      : comm(comm), group(std::move(group)), kind(kind),
        counts(countsOf(kind, bytes, comm.getSize())),
        source(static_cast<size_t>(counts.source)),
        destination(static_cast<size_t>(counts.destination)) {
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = sourceValue(comm.getRank(), static_cast<int64_t>(i));
  }

  llvm::Error prepare() {
    int32_t ranks = comm.getSize(), rank = comm.getRank();
    auto take = [](llvm::Expected<std::unique_ptr<Operation>> made,
                   std::unique_ptr<Operation> &operation) -> llvm::Error {
      if (!made)
        return made.takeError();
      operation = std::move(*made);
      return llvm::Error::success();
    };
    if (kind != CaseKind::SendReceive)
      return take(
          comm.prepare({makeSpec(kind, ranks, counts)}, group, "benchmark"),
          operation);
    int64_t bytes = counts.source * 4;
    if (llvm::Error error = take(
            comm.prepareSend((rank + 1) % ranks, bytes, bytes, "benchmark"),
            operation))
      return error;
    return take(comm.prepareReceive((rank + ranks - 1) % ranks, bytes, bytes,
                                    "benchmark"),
                receive);
  }

  llvm::Error ours() {
    const void *from = source.data();
    void *to = destination.data();
    if (!receive)
      return operation->run(from, to);
    if (llvm::Error error = receive->start({}, to))
      return error;
    if (llvm::Error error = operation->start(from, {}))
      return error;
    // A send may wait for its receive.
    if (comm.getRank() % 2) {
      if (llvm::Error error = receive->wait())
        return error;
      return operation->wait();
    }
    if (llvm::Error error = operation->wait())
      return error;
    return receive->wait();
  }
  void begin(Peer &peer) {
    peer.begin(kind, source.data(), destination.data(), counts.source);
  }

  int64_t countWrong() const {
    int64_t wrong = 0;
    for (size_t i = 0; i < destination.size(); ++i)
      wrong +=
          destination[i] != expectedValue(kind, comm.getSize(), comm.getRank(),
                                          static_cast<int64_t>(i), counts);
    return wrong;
  }
  /// Adds this round to the best time of a call.
  template <typename Fn>
  llvm::Error time(int64_t calls, Seconds &best, Fn &&call) {
    if (llvm::Error error = comm.barrier(*group))
      return error;
    Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < calls; ++i)
      if (llvm::Error error = call())
        return error;
    best = std::min<Seconds>(best, (Clock::now() - begin) / calls);
    return llvm::Error::success();
  }
  int64_t numBytes() const {
    return 4 * std::max(counts.source, counts.destination);
  }

private:
  Communicator &comm;
  std::shared_ptr<Group> group;
  CaseKind kind;
  CaseCounts counts;
  std::vector<float> source, destination;
  std::unique_ptr<Operation> operation, receive;
};

void printRates(int64_t bytes, double factor, Seconds time) {
  double rate = static_cast<double>(bytes) / time.count() / 1e9;
  std::printf(" %12.2f %8.2f %8.2f", time.count() * 1e6, rate, rate * factor);
}

llvm::Error measureCase(Communicator &comm, const std::shared_ptr<Group> &group,
                        CaseKind kind, int64_t bytes,
                        const MeasureOptions &options) {
  Run run(comm, group, kind, bytes);
  if (llvm::Error error = run.prepare())
    return error;
  Seconds ours = Seconds::max(), peer = Seconds::max();
  int64_t calls = std::clamp<int64_t>((4 << 20) / run.numBytes(), 2, 200);
  if (llvm::Error error = run.ours())
    return error;
  int64_t wrong = run.countWrong();
  if (options.peer)
    run.begin(*options.peer);
  for (int32_t round = 0; round < options.rounds; ++round) {
    if (llvm::Error error = run.time(calls, ours, [&] { return run.ours(); }))
      return error;
    if (!options.peer)
      continue;
    if (llvm::Error error =
            run.time(calls, peer, [&] { return options.peer->run(); }))
      return error;
  }
  // A peer of another rank may still read what is this one's, or write to it.
  if (llvm::Error error = comm.barrier(*group))
    return error;
  wrong = std::max(wrong, run.countWrong());
  if (comm.getRank() == 0) {
    double factor = busFactor(kind, comm.getSize());
    std::printf("%-14s %10lld %5s", nameOf(kind),
                static_cast<long long>(run.numBytes()), "f32");
    printRates(run.numBytes(), factor, ours);
    std::printf(" %6lld", static_cast<long long>(wrong));
    if (options.peer) {
      printRates(run.numBytes(), factor, peer);
      std::printf(" %6.2f", ours / peer);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  if (!wrong)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Differs,
                    "rank {0}: {1} of {2} bytes: {3} values "
                    "are wrong",
                    comm.getRank(), nameOf(kind), run.numBytes(), wrong);
}

} // namespace

llvm::Error measureAll(Communicator &comm, const MeasureOptions &options) {
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
  for (int32_t kind = 0; kind < numCases; ++kind)
    for (int64_t bytes = options.minBytes; bytes <= options.maxBytes;
         bytes *= 4)
      if (llvm::Error error = measureCase(
              comm, *group, static_cast<CaseKind>(kind), bytes, options))
        return error;
  return llvm::Error::success();
}

} // namespace ax
