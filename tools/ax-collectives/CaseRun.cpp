//===- CaseRun.cpp - One collective of one size, on a rank ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CaseRun.h"

#include "ax/Runtime/HostTransfer.h"
#include "ax/Runtime/RankOperation.h"

#include <algorithm>

namespace ax {

static rt::CollectiveSpec makeSpec(CaseKind kind, int32_t ranks,
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

llvm::Error CaseRun::time(int64_t calls, Seconds &best,
                          llvm::function_ref<llvm::Error()> call,
                          llvm::function_ref<llvm::Error()> completeAll) {
  if (llvm::Error error = comm.barrier(*group))
    return error;
  auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i)
    if (llvm::Error error = call())
      return error;
  if (llvm::Error error = completeAll())
    return error;
  best = std::min<Seconds>(best,
                           (std::chrono::steady_clock::now() - begin) / calls);
  return llvm::Error::success();
}

llvm::Error CaseRun::allocate() {
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
    values[i] = sourceValue(group->getIndex(), static_cast<int64_t>(i));
  return rt::HostTransfer(device, *stream)
      .upload(values.data(), source->getAddress(), source->getSize());
}

CaseRun::Prepared CaseRun::prepareCollective(const Reductions &reductions) {
  rt::CollectiveSpec spec = makeSpec(kind, group->getSize(), counts);
  const rt::Kernel *reduction =
      kind == CaseKind::AllReduce       ? reductions.allReduce.get()
      : kind == CaseKind::ReduceScatter ? reductions.reduceScatter.get()
                                        : nullptr;
  return rt::RankOperation::inPlaceOf(
      comm.prepareOnStream({spec}, group, "benchmark", reduction),
      [&] { return comm.prepare({spec}, group, "benchmark"); }, device,
      {{source->getSize(), destination->getSize()}});
}

CaseRun::Prepared CaseRun::prepareMessage(bool isSend) {
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

llvm::Error CaseRun::prepare(const Reductions &reductions) {
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

llvm::Error CaseRun::issue() {
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

llvm::Expected<int64_t> CaseRun::countWrong() {
  std::vector<float> values(static_cast<size_t>(counts.destination));
  if (llvm::Error error = rt::HostTransfer(device, *stream)
                              .download(destination->getAddress(),
                                        values.data(), destination->getSize()))
    return error;
  int64_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i)
    wrong +=
        values[i] != expectedValue(kind, group->getSize(), group->getIndex(),
                                   static_cast<int64_t>(i), counts);
  return wrong;
}

} // namespace ax
