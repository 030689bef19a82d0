//===- Search.h - Which strategy is the fastest -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strategies are tried by compiling the model and predicting what its plan
// takes: nothing is run.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SEARCH_SEARCH_H
#define AX_SEARCH_SEARCH_H

#include "ax/Compile/Compile.h"

namespace ax::search {

/// What stays as the user has it. All else of a strategy that is not here
/// stays, too.
struct Fixed {
  bool data = false, context = false, tensor = false, pipe = false;
  bool micro = false;
  bool schedule = false, sequenceParallel = false, zero = false;
  bool recompute = false;
};

struct Options {
  /// Ranks, at least 1.
  int64_t devices = 1;
  Fixed fixed;
  /// What a rank has; 0: what the machine has, or as much as is wanted.
  int64_t memoryBytes = 0;
  /// Seconds after which no other strategy is tried.
  double timeLimit = 60;
};

/// A strategy that was tried.
struct Candidate {
  Strategy strategy;
  /// Why there is no such plan; empty: there is one.
  std::string fault;
  /// Of a step: of training, of all slices of a batch. As predicted, and as
  /// somebody has measured it.
  double seconds = 0;
  std::optional<double> measuredSeconds = std::nullopt;
  /// Of the rank that needs most.
  int64_t peakBytes = 0;
  /// A rank has so much memory.
  bool fits = false;
};

/// Whether `a` comes before `b`: those that fit, the fastest first, and of them
/// those that were measured; then the others, by what they need; at last those
/// of which there is no plan. One has to be 1 % faster for each flag more that
/// it has: so much predictions are worth.
bool isBetter(const Candidate &a, const Candidate &b);

struct Result {
  /// The best first (isBetter).
  std::vector<Candidate> candidates;
  /// What a rank has; 0: nobody said.
  int64_t memoryBytes = 0;
  double seconds = 0;
  /// Nothing was left that was worth a try when the search ended.
  bool isWhole = true;
};

/// Searches from `options.strategy` of a compilation, of an imported model, on
/// so many ranks. Usage errors where sizes that stay do not divide the ranks,
/// no strategy makes a plan, or none fits.
llvm::Expected<Result> search(mlir::ModuleOp model,
                              const CompileOptions &compileOptions,
                              const Options &options);

/// Returns the flags that say the strategy's layout: `--dp=4 --tp=2`.
std::string flagsOf(const Strategy &strategy);

/// Prints the best of a search, with what they take, and what became of the
/// others.
void print(const Result &result, llvm::raw_ostream &os);

} // namespace ax::search

#endif // AX_SEARCH_SEARCH_H
