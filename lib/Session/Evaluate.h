//===- Evaluate.h - How good states are -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_EVALUATE_H
#define AX_LIB_SESSION_EVALUATE_H

#include "BatchRunner.h"

namespace ax {

/// What was measured, over all samples together.
struct Measured {
  int64_t samples = 0;
  double loss = 0;
  /// Where the program has it.
  std::optional<double> accuracy;

  double get(Metric metric) const;
};

class Evaluator {
public:
  /// BadInput errors when the data does not fit, Usage when the program does
  /// not give what a metric needs.
  static llvm::Expected<Evaluator>
  create(rt::Executor &executor, const EvalOptions &options, Tokens tokens);
  /// Measures; nothing when it was interrupted.
  llvm::Expected<std::optional<Measured>> run();
  /// `loss 0.1234, accuracy 0.9722 (360 samples)`.
  std::string describe(const Measured &measured) const;
  llvm::ArrayRef<Metric> getMetrics() const { return metrics; }
  std::string describeUnused() const { return samples.describeUnused(); }

private:
  Evaluator(rt::Executor &executor, Samples samples)
      : executor(executor), samples(std::move(samples)), runner(executor) {}
  std::optional<size_t> findOutput(rt::Role role) const;
  /// Its result for the first `count` samples of a batch.
  double sum(const rt::Request &request, size_t output, int64_t count) const;

  rt::Executor &executor;
  Samples samples;
  BatchRunner runner;
  std::vector<Metric> metrics;
  size_t lossSum = 0, lossCount = 0;
  std::optional<size_t> correct;
};

} // namespace ax

#endif // AX_LIB_SESSION_EVALUATE_H
