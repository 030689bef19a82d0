//===- RunTool.cpp - From a command line to an exit code ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RunTool.h"

#include "Actions.h"
#include "Inputs.h"
#include "SameRun.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/LeftThreads.h"
#include "ax/Session/Job.h"
#include "ax/Support/Error.h"
#include "ax/Support/Process.h"
#include "ax/Support/Stack.h"

#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace ax;
using Clock = std::chrono::steady_clock;

double Task::secondsSinceBegin() const {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static llvm::Error checkFirst(const RunOptions &options,
                              const Session &session) {
  rt::World &world = *options.session.world;
  if (llvm::Error error = checkSameFiles(options, session))
    return error;
  // What is written process 0 writes.
  return rt::share(world, "files to write",
                   [&]() -> llvm::Expected<std::string> {
                     if (llvm::Error error =
                             checkDestinations(options, session))
                       return error;
                     return "";
                   })
      .takeError();
}

static llvm::Expected<int> run(const RunOptions &options) {
  Clock::time_point begin = Clock::now();
  if (llvm::Error error = checkSameCommand(options))
    return error;
  auto session = Session::compile(options.plan, options.session);
  if (!session)
    return session.takeError();
  if (options.listing) {
    printListing((*session)->getProgram(), llvm::outs());
    return static_cast<int>(ExitCode::Success);
  }
  if (llvm::Error error = checkFirst(options, **session))
    return error;
  Task task{options, **session, begin};
  if (options.training)
    return trainPlan(task);
  if (options.eval)
    return evaluateSamples(task);
  if (!options.predict.empty())
    return predictSamples(task);
  if (options.generate)
    return generateTokens(task);
  return runInputs(task);
}

static llvm::Error chooseCommunicator(const Job &job, RunOptions &options) {
  std::string &communicator = options.session.communicator;
  const rt::World &world = *job.getWorld();
  if (world.isAlone())
    return llvm::Error::success();
  if (options.hasCommunicator && communicator == "local")
    return makeErrorf(ExitCode::Usage,
                      "--comm=local is for ranks that are threads of one "
                      "process, and there are {0}: leave it out, or give "
                      "--comm={1}",
                      world.getPlace().numProcesses, job.getCommunicator());
  if (communicator == "local")
    communicator = job.getCommunicator();
  return llvm::Error::success();
}

/// Returns the exit code of all processes.
static llvm::Expected<int> runIn(const Job &job,
                                 llvm::Expected<RunOptions> options) {
  const std::shared_ptr<rt::World> &world = job.getWorld();
  if (llvm::Error error =
          rt::agree(*world, "command line", options.takeError()))
    return error;
  SessionOptions &session = options->session;
  session.world = world;
  if (!world->isFirst()) {
    session.warn = [](const std::string &) {};
    session.note = nullptr;
  }
  if (llvm::Error error = chooseCommunicator(job, *options))
    return error;
  auto done = run(*options);
  if (!done)
    return done;
  // Process 0 knows whether outputs differ.
  auto shared = world->broadcast("exit code", std::to_string(*done));
  if (!shared)
    return shared.takeError();
  llvm::StringRef(*shared).getAsInteger(10, *done);
  return done;
}

static int runTool(int argc, char **argv, const Toolkit &toolkit) {
  keepOutputOfFirst();
  llvm::Expected<RunOptions> options = parseOptions(argc, argv, toolkit);
  JobOptions jobOptions;
  jobOptions.tool = toolkit.name;
  if (options) {
    jobOptions.control = options->control;
    jobOptions.timeoutSeconds = options->session.timeoutSeconds;
  }
  auto job = Job::join(jobOptions);
  if (!job) {
    llvm::consumeError(options.takeError());
    return Job::failBeforeJoin(toolkit.name, job.takeError());
  }
  llvm::Expected<int> code = runIn(**job, std::move(options));
  return code ? (*job)->leave(*code) : (*job)->fail(code.takeError());
}

int ax::runMain(int argc, char **argv, const Toolkit &toolkit) {
  setUpProcess(toolkit.name);
  // Who asks for flight records that are not kept ends nothing by that.
  std::signal(SIGUSR2, SIG_IGN);
  int code = runWithLargeStacks(toolkit.name,
                                [&] { return runTool(argc, argv, toolkit); });
  if (!rt::wereThreadsLeft())
    return code;
  llvm::outs().flush();
  llvm::errs().flush();
  std::fflush(nullptr);
  ::_exit(code);
}
