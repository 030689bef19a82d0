//===- Options.h - The command line of axrun --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_OPTIONS_H
#define AX_TOOLS_AXRUN_OPTIONS_H

#include "TestData.h"
#include "ax/Session/Generate.h"
#include "ax/Session/Session.h"
#include "ax/Session/Train.h"

#include <optional>

namespace ax {

struct RunOptions {
  std::string plan;
  SessionOptions session;
  /// Whether the communicator was asked for.
  bool hasCommunicator = false;
  /// As JobOptions::control.
  std::string control;
  /// All that has to be the same in all processes, as it was given.
  std::vector<std::pair<std::string, std::string>> shared;
  /// (name, file.npy)
  std::vector<std::pair<std::string, std::string>> inputs;
  std::string inputArchive;
  std::string testData;
  /// Reads it; there is one where it is asked for.
  const TestData *testCases = nullptr;
  std::optional<uint64_t> randomSeed;
  std::string output;
  std::string expect;
  double rtol = 1e-3;
  double atol = 1e-5;
  int64_t warmup = 0;
  int64_t iterations = 0;
  std::string json;
  std::string trace;
  /// Lines of the table of what takes the time; 0: all.
  std::optional<int64_t> profile;
  /// Requests submitted before the first is waited for.
  int64_t inFlight = 0;
  bool listing = false;
  /// Outputs are not cut to the results that there are.
  bool isPadded = false;
  /// Given when the program is to be trained.
  std::optional<TrainOptions> training;
  /// Given when it is only to be measured.
  std::optional<EvalOptions> eval;
  Tokens tokens = Tokens::No;
  /// Given when tokens are to be generated behind those of this file.
  std::optional<GenerateOptions> generate;
  std::string prompt;
  /// Samples whose outputs go to `output`; empty: something else is to be done.
  std::string predict;
};

/// A tool that runs plans, and what it can do besides running compiled ones.
struct Toolkit {
  const char *name, *input;
  PlanCompiler compiler = nullptr;
  const TestData *testCases = nullptr;
  /// The compiler's steps, which --dump-after names.
  std::vector<std::string> steps = {};
};

/// Parses the command line; fails with code Usage. `--help` and `--version`
/// end the process.
llvm::Expected<RunOptions> parseOptions(int argc, char **argv,
                                        const Toolkit &toolkit);

} // namespace ax

#endif // AX_TOOLS_AXRUN_OPTIONS_H
