//===- Options.cpp - The command line of axlaunch -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"

#include "PlanRanks.h"
#include "ax/Support/Error.h"
#include "ax/Support/FlagTable.h"

#include <algorithm>

using namespace ax;

namespace {

#define AX_FLAGS_INC "axlaunchFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

llvm::Error readFallbacks(const CommandLine &flags, LaunchOptions &options) {
  std::vector<std::string> plans = flags.list(OPT_fallback);
  if (plans.empty())
    return llvm::Error::success();
  auto given = readPlanRanks(options.command.getPlan());
  if (!given)
    return given.takeError();
  int64_t before = *given;
  for (const std::string &plan : plans) {
    auto numRanks = readPlanRanks(plan);
    if (!numRanks)
      return numRanks.takeError();
    if (*numRanks >= before)
      return usage("--fallback=" + plan + " is for " + llvm::Twine(*numRanks) +
                   " ranks, and the plan before it for " + llvm::Twine(before) +
                   ": it must be for fewer");
    auto command = options.command.withPlan(plan, *numRanks);
    if (!command)
      return command.takeError();
    options.fallbacks.push_back(std::move(*command));
    before = *numRanks;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<LaunchOptions> ax::parseLaunchOptions(int argc, char **argv) {
  FlagTable table("axlaunch",
                  "runs a command with axrun, and after a failure again from "
                  "its last checkpoint",
                  "[FLAG]... -- COMMAND...", AX_FLAG_TABLE);
  char **end = argv + argc,
       **dashes = std::find_if(
           argv, end, [](llvm::StringRef word) { return word == "--"; });
  bool hasCommand = dashes != end && dashes + 1 != end;
  auto flags = table.parse(static_cast<int>(dashes - argv), argv);
  if (!hasCommand) {
    if (!flags)
      llvm::consumeError(flags.takeError());
    return usage("the command is missing: axlaunch [FLAG]... -- COMMAND...");
  }
  if (!flags)
    return flags.takeError();
  if (!flags->getInputs().empty())
    return usage("'" + flags->getInputs().front() +
                 "' is no flag: the command stands behind '--'");
  auto command = Command::parse({dashes + 1, end});
  if (!command)
    return command.takeError();
  LaunchOptions options{std::move(*command)};
  flags->read(OPT_max_restarts, options.maxRestarts);
  uint64_t grace = options.grace.count();
  flags->read(OPT_grace, grace);
  // Nobody waits longer than a day, and times are added to each other.
  constexpr uint64_t day = 24 * 60 * 60;
  options.grace = std::chrono::seconds(std::min(grace, day));
  if (llvm::Error error = readFallbacks(*flags, options))
    return error;
  return options;
}
