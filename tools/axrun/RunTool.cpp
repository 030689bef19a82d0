//===- RunTool.cpp - From a command line to an exit code ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RunTool.h"

#include "Actions.h"
#include "Inputs.h"

#include "ax/Support/Error.h"
#include "ax/Support/Process.h"
#include "ax/Support/Stack.h"

using namespace ax;
using Clock = std::chrono::steady_clock;

double Task::secondsSinceBegin() const {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static llvm::Expected<int> run(const RunOptions &options) {
  Clock::time_point begin = Clock::now();
  auto session = Session::compile(options.plan, options.session);
  if (!session)
    return session.takeError();
  if (options.listing) {
    printListing((*session)->getProgram(), llvm::outs());
    return static_cast<int>(ExitCode::Success);
  }
  if (llvm::Error error = checkDestinations(options, **session))
    return error;
  Task task{options, **session, begin};
  if (options.training)
    return trainPlan(task);
  if (options.eval)
    return evaluateSamples(task);
  if (!options.predict.empty())
    return predictSamples(task);
  return runInputs(task);
}

static int runTool(int argc, char **argv, const Toolkit &toolkit) {
  llvm::Expected<RunOptions> options = parseOptions(argc, argv, toolkit);
  if (!options)
    return reportError(toolkit.name, options.takeError());
  llvm::Expected<int> code = run(*options);
  if (!code)
    return reportError(toolkit.name, code.takeError());
  return *code;
}

int ax::runMain(int argc, char **argv, const Toolkit &toolkit) {
  setUpProcess(toolkit.name);
  return runWithLargeStacks(toolkit.name,
                            [&] { return runTool(argc, argv, toolkit); });
}
