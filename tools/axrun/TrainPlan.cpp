//===- TrainPlan.cpp - Steps of training ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "Rates.h"
#include "Report.h"

#include "ax/Support/ExitCode.h"

using namespace ax;

/// `measurement` has what is known before the steps.
static llvm::Error report(const RunOptions &options, rt::Executor &executor,
                          const std::vector<std::chrono::nanoseconds> &times,
                          Measurement measurement) {
  measurement.times = times;
  for (std::chrono::nanoseconds time : times)
    measurement.totalSeconds += std::chrono::duration<double>(time).count();
  measurement.flops = countFlops(executor.getProgram());
  return writeReports(options, executor, std::move(measurement));
}

static ExitCode codeOf(TrainEnd end) {
  switch (end) {
  case TrainEnd::Done:
    return ExitCode::Success;
  case TrainEnd::Interrupted:
    return ExitCode::Interrupted;
  case TrainEnd::Terminated:
    return ExitCode::Terminated;
  }
  __builtin_unreachable();
}

llvm::Expected<int> ax::trainPlan(const Task &task) {
  const RunOptions &options = task.options;
  auto rates = measureRates(options, task.session);
  if (!rates)
    return rates.takeError();
  if (llvm::Error error = task.session.start())
    return error;
  TrainOptions training = *options.training;
  Measurement measurement;
  measurement.rates = std::move(*rates);
  measurement.loadSeconds = task.secondsSinceBegin();
  if (!options.trace.empty() || !options.json.empty() || options.profile)
    training.onTraced = [&](const auto &times) {
      return report(options, task.session.getExecutor(), times, measurement);
    };
  auto end = train(task.session, training, llvm::errs());
  if (!end)
    return end.takeError();
  return static_cast<int>(codeOf(*end));
}
