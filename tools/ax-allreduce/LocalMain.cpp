//===- LocalMain.cpp - All-reduce between threads -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Measure.h"

#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

#include <atomic>
#include <numeric>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

llvm::Error runRank(Communicator &communicator, const MeasureOptions &options) {
  std::vector<int32_t> ranks(static_cast<size_t>(options.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto group = communicator.createGroup(ranks);
  if (!group)
    return group.takeError();
  CollectiveSpec spec;
  spec.shape = {options.bytes / 4};
  auto operation = communicator.prepare({spec}, *group, "benchmark");
  if (!operation)
    return operation.takeError();
  HostTensor source(DType::F32, spec.shape), result(DType::F32, spec.shape);
  source.mutableData();
  uint8_t *to = result.mutableData();
  llvm::Error failure = llvm::Error::success();
  TimeSummary summary = measure(options, [&] {
    if (!failure)
      failure = (*operation)->run(source.data(), to);
  });
  if (!failure && communicator.getRank() == 0)
    report("local", options, summary);
  return failure;
}

} // namespace

int main(int argc, char **argv) {
  MeasureOptions options = MeasureOptions::parse(argc, argv);
  auto communicators = createLocalCommunicators(options.ranks);
  std::vector<std::thread> threads;
  std::atomic<int> status{0};
  for (auto &communicator : communicators)
    threads.emplace_back([&] {
      if (int code =
              reportError("ax-allreduce", runRank(*communicator, options)))
        status = code;
    });
  for (std::thread &thread : threads)
    thread.join();
  return status;
}
