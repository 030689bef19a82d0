//===- Team.cpp - All ranks, which tell each other numbers ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Team.h"

#include "ax/Runtime/HostTransfer.h"
#include "ax/Runtime/RankOperation.h"

#include <algorithm>
#include <numeric>

using namespace ax;

llvm::Expected<std::unique_ptr<Team>> Team::create(rt::Communicator &comm,
                                                   rt::Device &device) {
  std::unique_ptr<Team> team(new Team(device));
  if (llvm::Error error = team->prepare(comm))
    return error;
  return team;
}

llvm::Error Team::prepare(rt::Communicator &comm) {
  std::vector<int32_t> ranks(static_cast<size_t>(comm.getSize()));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto madeGroup = comm.createGroup(ranks);
  if (!madeGroup)
    return madeGroup.takeError();
  group = std::move(*madeGroup);
  auto madeStream = device.createStream();
  if (!madeStream)
    return madeStream.takeError();
  stream = std::move(*madeStream);
  rt::CollectiveSpec spec;
  spec.kind = rt::CollectiveKind::AllGather;
  spec.dtype = DType::F64;
  spec.shape = {1};
  spec.gatherDim = 0;
  spec.gatherSize = comm.getSize();
  for (auto [memory, bytes] : {std::pair(&mine, sourceBytes(spec)),
                               std::pair(&all, destinationBytes(spec))}) {
    auto allocated = comm.allocate(device, bytes);
    if (!allocated)
      return allocated.takeError();
    *memory = std::move(*allocated);
  }
  auto prepared = rt::RankOperation::inPlaceOf(
      comm.prepareOnStream({spec}, group, "calibration", nullptr),
      [&] { return comm.prepare({spec}, group, "calibration"); }, device,
      {{mine->getSize(), all->getSize()}});
  if (!prepared)
    return prepared.takeError();
  exchange = std::move(*prepared);
  return llvm::Error::success();
}

llvm::Expected<std::vector<double>> Team::gather(double own) {
  rt::HostTransfer transfer(device, *stream);
  std::vector<double> numbers(static_cast<size_t>(group->getSize()));
  llvm::Error error =
      transfer.upload(&own, mine->getAddress(), mine->getSize());
  if (!error)
    error = exchange->start(*stream, {mine->getAddress(), all->getAddress()});
  if (!error)
    error = exchange->finish(*stream);
  if (!error)
    error =
        transfer.download(all->getAddress(), numbers.data(), all->getSize());
  if (error)
    return error;
  return numbers;
}

llvm::Expected<double> Team::findLargest(double own) {
  auto numbers = gather(own);
  if (!numbers)
    return numbers.takeError();
  return *std::max_element(numbers->begin(), numbers->end());
}
