//===- Options.h - The command line of axopt --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXOPT_OPTIONS_H
#define AX_TOOLS_AXOPT_OPTIONS_H

#include "ax/Driver/ModelFlags.h"

namespace ax {

enum class Explain { No, Text, JSON };
enum class Inspect { No, Text, All, JSON };

/// `targets` are none where the output is the plan's text.
struct Options : driver::ModelOptions {
  std::string input;
  /// Whether the input is a plan; else it is a model.
  bool isPlan = false;
  /// Whether, with isPlan, it is a compiled one; else it is text.
  bool isCompiledPlan = false;
  std::string output = "-";
  std::string saveStrategy;
  /// How many of the layouts that a search has found are run.
  int64_t numDryRuns = 0;
  bool verifyOnly = false;
  bool quiet = false;
  Explain explain = Explain::No;
  /// What there is in the model is told, and nothing is compiled.
  Inspect inspect = Inspect::No;
  /// The model with these weights goes here, and nothing is compiled.
  std::string exportOnnx, weights;
  /// Weights of the model that are not among them stay what they are.
  bool isPartial = false;
  /// Weights that they lack get others' values: by name, from name.
  std::map<std::string, std::string> tied;
  std::vector<std::string> leaveOut;
  /// What MLIR's pass manager writes when a pass fails.
  std::string reproducer;
  /// JSON of what every rank holds and does, to this file.
  std::string report;
  /// Phases after which the IR goes to standard error.
  std::vector<std::string> dumpAfter;
};

/// Parses the command line; fails with code Usage. `--help` and `--version`
/// end the process.
llvm::Expected<Options> parseOptions(int argc, char **argv);

} // namespace ax

#endif // AX_TOOLS_AXOPT_OPTIONS_H
