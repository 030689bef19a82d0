//===- StepFeed.cpp - Steps of training, ahead of their time --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StepFeed.h"

#include "ax/Runtime/Agreement.h"

#include <algorithm>
#include <csignal>

using namespace ax;

llvm::Expected<StepFeed> StepFeed::create(rt::Executor &executor,
                                          Batches &batches, int64_t first,
                                          int64_t last, bool needsLabels) {
  StepFeed made(executor, batches, first, last, needsLabels);
  for (Step &step : made.steps) {
    auto request = executor.createRequest();
    if (!request)
      return request.takeError();
    step.request = std::move(*request);
    step.request->inputs = batches.getSamples().makeBatch();
  }
  return made;
}

llvm::Error StepFeed::readNext(Step &step) {
  if (llvm::Error error = batches.next(step.request->inputs))
    return error;
  step.end = batches.getPlace();
  step.samples = batches.getGiven().vec();
  step.counts = !needsLabels || batches.anyCounts(step.request->inputs);
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

/// All processes find the same wrong with it.
llvm::Error StepFeed::agreeOnNext(int ownSignal) {
  rt::World &world = executor.getWorld();
  llvm::Error mine = llvm::Error::success();
  bool isLast = begun == last, counts = true;
  if (!isLast && at(begun).fault)
    mine = makeError(at(begun).fault->code, at(begun).fault->message);
  else if (!isLast)
    counts = at(begun).counts;
  using Text = llvm::Expected<std::string>;
  char asked = ownSignal == SIGTERM ? 't' : ownSignal ? 'i' : '-';
  std::string flags = {asked, counts ? 'c' : '-'};
  auto all = rt::agreeOnTexts(world, "the next step",
                              mine ? Text(std::move(mine)) : Text(flags));
  auto anyHas = [&](size_t flag, char value) {
    return llvm::any_of(*all, [&](const std::string &text) {
      return text.size() > flag && text[flag] == value;
    });
  };
  if (all)
    stopSignal = anyHas(0, 't') ? SIGTERM : anyHas(0, 'i') ? SIGINT : 0;
  if (isLast)
    return all.takeError();
  if (!all)
    at(begun).fault = describeError(all.takeError());
  else if (!anyHas(1, 'c'))
    at(begun).fault = describeError(batches.getSamples().fault(
        "every label of step " + llvm::Twine(begun + 1) +
        "'s batch is ignored: there is no loss (--on-nonfinite=skip leaves "
        "such steps out)"));
  agreed = begun + 1;
  return llvm::Error::success();
}

llvm::Error StepFeed::begin(int ownSignal) {
  readUntil(begun + 2);
  if (agreed == begun)
    if (llvm::Error error = agreeOnNext(ownSignal))
      return error;
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
  return agreeOnNext(ownSignal);
}

llvm::Error StepFeed::finish() {
  readUntil(begun + 2);
  isBegun = false;
  return executor.wait(*at(begun - 1).request);
}
