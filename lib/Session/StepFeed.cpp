//===- StepFeed.cpp - Steps of training, ahead of their time --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StepFeed.h"

#include <algorithm>

using namespace ax;

llvm::Expected<StepFeed> StepFeed::create(rt::Executor &executor,
                                          Batches &batches, int64_t first,
                                          int64_t last, bool needsLabels) {
  StepFeed made(executor, batches, first, last, needsLabels);
  const std::vector<rt::Port> &inputs = executor.getProgram().inputs;
  for (Step &step : made.steps) {
    auto request = executor.createRequest();
    if (!request)
      return request.takeError();
    step.request = std::move(*request);
    for (auto [input, port] : llvm::zip_equal(step.request->inputs, inputs))
      input = HostTensor(port.dtype, port.shape);
  }
  return made;
}

llvm::Error StepFeed::readNext(Step &step) {
  if (llvm::Error error = batches.next(step.request->inputs))
    return error;
  step.end = batches.getPlace();
  step.samples = batches.getGiven().vec();
  if (needsLabels && !batches.anyCounts(step.request->inputs))
    return batches.getSamples().fault(
        "every label of step " + llvm::Twine(read + 1) +
        "'s batch is ignored: there is no loss (--on-nonfinite=skip leaves "
        "such steps out)");
  return llvm::Error::success();
}

/// What is wrong is told when the step's turn comes; nothing is behind it.
void StepFeed::readUntil(int64_t number) {
  for (; read < std::min(number, last); ++read) {
    if (read > begun && at(read - 1).fault)
      return;
    if (llvm::Error error = readNext(at(read)))
      at(read).fault = describeError(std::move(error));
  }
}

llvm::Error StepFeed::begin() {
  readUntil(begun + 2);
  for (; announced < std::min(read, begun + 2); ++announced) {
    Step &step = at(announced);
    if (step.fault)
      break;
    if (llvm::Error error = executor.announce(*step.request))
      step.fault = describeError(std::move(error));
  }
  Step &next = at(begun);
  if (next.fault)
    return makeError(next.fault->code, next.fault->message);
  next.begin = std::chrono::steady_clock::now();
  if (llvm::Error error = executor.submit(*next.request))
    return error;
  ++begun;
  isBegun = true;
  return llvm::Error::success();
}

llvm::Error StepFeed::finish() {
  readUntil(begun + 2);
  isBegun = false;
  return executor.wait(*at(begun - 1).request);
}
