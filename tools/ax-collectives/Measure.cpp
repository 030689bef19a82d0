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

#include "ax/Runtime/HostTransfer.h"
#include "ax/Runtime/RankOperation.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace ax {

namespace {

using rt::Communicator, rt::Group;
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
  Run(Communicator &comm, rt::Device &device, std::shared_ptr<Group> group,
      CaseKind kind, int64_t bytes)
      : comm(comm), device(device), group(std::move(group)), kind(kind),
        counts(countsOf(kind, bytes, comm.getSize())) {}
  /// What is still on the stream uses the memory.
  ~Run() {
    if (stream)
      llvm::consumeError(stream->synchronize());
  }

  llvm::Error prepare(const Reductions &reductions);
  /// Puts one execution on the stream.
  llvm::Error issue();
  /// Returns when all that was put there is done.
  llvm::Error complete() {
    if (llvm::Error error = stream->synchronize())
      return error;
    return comm.getLateError();
  }
  void begin(Peer &peer) {
    const rt::HostMapping &host = *device.getHostMapping();
    peer.begin(kind, static_cast<float *>(host.toHost(source->getAddress())),
               static_cast<float *>(host.toHost(destination->getAddress())),
               counts.source);
  }

  llvm::Expected<int64_t> countWrong();
  /// Adds this round to the best time of a call: `call` begins each, and
  /// `complete` returns when all are done.
  llvm::Error time(int64_t calls, Seconds &best,
                   llvm::function_ref<llvm::Error()> call,
                   llvm::function_ref<llvm::Error()> completeAll) {
    if (llvm::Error error = comm.barrier(*group))
      return error;
    Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < calls; ++i)
      if (llvm::Error error = call())
        return error;
    if (llvm::Error error = completeAll())
      return error;
    best = std::min<Seconds>(best, (Clock::now() - begin) / calls);
    return llvm::Error::success();
  }
  int64_t numBytes() const {
    return 4 * std::max(counts.source, counts.destination);
  }

private:
  using Prepared = llvm::Expected<std::unique_ptr<rt::StreamOperation>>;

  llvm::Error allocate();
  Prepared prepareCollective(const Reductions &reductions);
  Prepared prepareMessage(bool isSend);

  Communicator &comm;
  rt::Device &device;
  std::shared_ptr<Group> group;
  CaseKind kind;
  CaseCounts counts;
  std::unique_ptr<rt::DeviceMemory> source, destination;
  std::unique_ptr<rt::Stream> stream;
  std::unique_ptr<rt::StreamOperation> operation, receive;
};

llvm::Error Run::allocate() {
  auto made = device.createStream();
  if (!made)
    return made.takeError();
  stream = std::move(*made);
  for (auto [memory, count] : {std::pair(&source, counts.source),
                               std::pair(&destination, counts.destination)}) {
    auto allocated = comm.allocate(device, count * 4);
    if (!allocated)
      return allocated.takeError();
    *memory = std::move(*allocated);
    if (llvm::Error error =
            stream->clear((*memory)->getAddress(), (*memory)->getSize()))
      return error;
  }
  std::vector<float> values(static_cast<size_t>(counts.source));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = sourceValue(comm.getRank(), static_cast<int64_t>(i));
  return rt::HostTransfer(device, *stream)
      .upload(values.data(), source->getAddress(), source->getSize());
}

Run::Prepared Run::prepareCollective(const Reductions &reductions) {
  rt::CollectiveSpec spec = makeSpec(kind, comm.getSize(), counts);
  const rt::Kernel *reduction =
      kind == CaseKind::AllReduce       ? reductions.allReduce.get()
      : kind == CaseKind::ReduceScatter ? reductions.reduceScatter.get()
                                        : nullptr;
  return rt::RankOperation::inPlaceOf(
      comm.prepareOnStream({spec}, group, "benchmark", reduction),
      [&] { return comm.prepare({spec}, group, "benchmark"); }, device,
      {{source->getSize(), destination->getSize()}});
}

Run::Prepared Run::prepareMessage(bool isSend) {
  int32_t ranks = comm.getSize(), rank = comm.getRank();
  int64_t bytes = source->getSize();
  // One tag for messages of each size.
  if (isSend) {
    int32_t peer = (rank + 1) % ranks;
    return rt::RankOperation::inPlaceOf(
        comm.prepareSendOnStream(peer, bytes, bytes, "benchmark"),
        [&] { return comm.prepareSend(peer, bytes, bytes, "benchmark"); },
        device, {{bytes, 0}});
  }
  int32_t peer = (rank + ranks - 1) % ranks;
  return rt::RankOperation::inPlaceOf(
      comm.prepareReceiveOnStream(peer, bytes, bytes, "benchmark"),
      [&] { return comm.prepareReceive(peer, bytes, bytes, "benchmark"); },
      device, {{0, bytes}});
}

llvm::Error Run::prepare(const Reductions &reductions) {
  auto take = [](Prepared made,
                 std::unique_ptr<rt::StreamOperation> &to) -> llvm::Error {
    if (!made)
      return made.takeError();
    to = std::move(*made);
    return llvm::Error::success();
  };
  if (llvm::Error error = allocate())
    return error;
  if (kind != CaseKind::SendReceive)
    return take(prepareCollective(reductions), operation);
  if (llvm::Error error = take(prepareMessage(/*isSend=*/true), operation))
    return error;
  return take(prepareMessage(/*isSend=*/false), receive);
}

llvm::Error Run::issue() {
  rt::DeviceAddress from = source->getAddress(), to = destination->getAddress();
  if (!receive) {
    if (llvm::Error error = operation->start(*stream, {from, to}))
      return error;
    return operation->finish(*stream);
  }
  auto start = [&](bool isSend) {
    return isSend ? operation->start(*stream, {from, {}})
                  : receive->start(*stream, {{}, to});
  };
  // A send may wait for its receive, and where ranks do one thing at a time,
  // not all of them may send first.
  bool isOdd = comm.getRank() % 2;
  bool sendsFirst = comm.isOrdered() && !isOdd;
  for (bool isSend : {sendsFirst, !sendsFirst})
    if (llvm::Error error = start(isSend))
      return error;
  rt::StreamOperation &first = isOdd ? *receive : *operation;
  rt::StreamOperation &second = isOdd ? *operation : *receive;
  if (llvm::Error error = first.finish(*stream))
    return error;
  return second.finish(*stream);
}

llvm::Expected<int64_t> Run::countWrong() {
  std::vector<float> values(static_cast<size_t>(counts.destination));
  if (llvm::Error error = rt::HostTransfer(device, *stream)
                              .download(destination->getAddress(),
                                        values.data(), destination->getSize()))
    return error;
  int64_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i)
    wrong += values[i] != expectedValue(kind, comm.getSize(), comm.getRank(),
                                        static_cast<int64_t>(i), counts);
  return wrong;
}

void printRates(int64_t bytes, double factor, Seconds time) {
  double rate = static_cast<double>(bytes) / time.count() / 1e9;
  std::printf(" %12.2f %8.2f %8.2f", time.count() * 1e6, rate, rate * factor);
}

llvm::Error measureCase(Communicator &comm, rt::Device &device,
                        const std::shared_ptr<Group> &group, CaseKind kind,
                        int64_t bytes, const MeasureOptions &options) {
  Run run(comm, device, group, kind, bytes);
  if (llvm::Error error = run.prepare(options.reductions))
    return error;
  Seconds ours = Seconds::max(), peer = Seconds::max();
  int64_t calls = std::clamp<int64_t>((4 << 20) / run.numBytes(), 2, 200);
  auto issue = [&] { return run.issue(); };
  auto complete = [&] { return run.complete(); };
  if (llvm::Error error = issue())
    return error;
  if (llvm::Error error = complete())
    return error;
  auto wrong = run.countWrong();
  if (!wrong)
    return wrong.takeError();
  if (options.peer)
    run.begin(*options.peer);
  for (int32_t round = 0; round < options.rounds; ++round) {
    if (llvm::Error error = run.time(calls, ours, issue, complete))
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
