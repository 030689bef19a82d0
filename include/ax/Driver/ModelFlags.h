//===- ModelFlags.h - What axopt's flags say of a model ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one table of axopt's flags (lib/Driver/Flags.td), for the tool and for
// who calls the compiler as a library with the same flags.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DRIVER_MODELFLAGS_H
#define AX_DRIVER_MODELFLAGS_H

#include "ax/Import/Import.h"
#include "ax/Passes/Strategy.h"
#include "ax/Search/Search.h"
#include "ax/Support/FlagTable.h"
#include "ax/Support/MachineRates.h"
#include "ax/Support/Target.h"

namespace ax::driver {

/// How a plan is made of a model.
struct ModelOptions {
  import::ImportOptions import;
  Strategy strategy;
  /// What cannot be split as asked is an error, not a warning.
  bool strict = false;
  /// What times and memory are predicted for; nothing: the GPU among `targets`,
  /// or a generic processor.
  std::optional<MachineRates> machine;
  /// The strategy is what is searched from.
  std::optional<search::Options> search;
  /// What kernels are compiled for, each once, if the plan is written with
  /// them.
  std::vector<Target> targets;
  /// A plan with its kernels has the weights, too.
  bool embedWeights = false;
  /// What flags have read: `--strategy`, and others.
  std::string strategyFile;
  std::vector<std::string> otherInputs;
};

FlagTable axoptFlags();

/// Reads the flags of input, layout and training, and `--dump-tensors`, and
/// holds them against each other: Usage errors, and those of files that they
/// name. `onlyLooks`: nothing is compiled, and training needs no loss.
llvm::Error readModelFlags(const CommandLine &flags, bool onlyLooks,
                           ModelOptions &options);

/// Reads `--target`, this machine if it is not given, and `--embed-weights`; a
/// Usage error for targets that there are not, or that are given twice.
llvm::Error readTarget(const CommandLine &flags, ModelOptions &options);

/// Returns what all these flags say: `{"--tp=2", "--dim", "batch=4"}`. Flags
/// that tell the tool what to read, write or print are Usage errors.
llvm::Expected<ModelOptions> parseModelFlags(llvm::ArrayRef<std::string> words);

} // namespace ax::driver

#endif // AX_DRIVER_MODELFLAGS_H
