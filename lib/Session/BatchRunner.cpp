//===- BatchRunner.cpp - A program on all samples -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BatchRunner.h"

#include "ax/Runtime/Agreement.h"

#include <algorithm>

using namespace ax;

llvm::Error BatchRunner::read(rt::Request &request, const Samples &samples,
                              int64_t first, int64_t count) {
  int64_t batch = samples.getBatch();
  if (llvm::Error error = samples.beginBatch(first / batch, request.inputs))
    return error;
  for (int64_t at = 0; at < batch; ++at) {
    if (at < count)
      if (llvm::Error error = samples.check(first + at, at))
        return error;
    samples.copy(first + at % count, at, request.inputs);
  }
  return llvm::Error::success();
}

llvm::Expected<bool> BatchRunner::run(const Samples &samples, int64_t end,
                                      Keep keep,
                                      llvm::function_ref<bool()> goesOn) {
  const rt::Program &program = executor.getProgram();
  int64_t batch = samples.getBatch(), count = (end + batch - 1) / batch,
          ahead = static_cast<int64_t>(program.stages.size()) + 2;
  auto requestOf = [&](int64_t number) -> rt::Request & {
    return *requests[static_cast<size_t>(number % ahead)];
  };
  auto countOf = [&](int64_t number) {
    return std::min(batch, end - number * batch);
  };
  while (static_cast<int64_t>(requests.size()) < std::min(ahead, count)) {
    auto request = executor.createRequest();
    if (!request)
      return request.takeError();
    (*request)->inputs = samples.makeBatch();
    requests.push_back(std::move(*request));
  }
  llvm::Error fault = llvm::Error::success();
  bool isGoingOn = true;
  for (int64_t submitted = 0, kept = 0;; ++kept) {
    while (!fault && isGoingOn && submitted < std::min(count, kept + ahead)) {
      rt::Request &request = requestOf(submitted);
      isGoingOn = goesOn();
      if (isGoingOn)
        fault = read(request, samples, submitted * batch, countOf(submitted));
      auto all = rt::agreeOnFlags(executor.getWorld(), "a batch", isGoingOn,
                                  std::move(fault));
      fault = all.takeError();
      if (fault)
        break;
      isGoingOn = !llvm::is_contained(*all, false);
      if (isGoingOn)
        fault = executor.submit(request);
      submitted += isGoingOn && !fault;
    }
    if (kept == submitted)
      break;
    if (llvm::Error error = executor.wait(requestOf(kept))) {
      llvm::consumeError(std::move(fault));
      return error;
    }
    keep(requestOf(kept), kept * batch, countOf(kept));
  }
  if (fault)
    return fault;
  return isGoingOn;
}
