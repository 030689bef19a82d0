//===- Sampler.h - Which token is next --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_SAMPLER_H
#define AX_LIB_SESSION_SAMPLER_H

#include "ax/Session/Generate.h"

#include <random>

namespace ax {

/// Chooses tokens by their scores, in turn.
class Sampler {
public:
  explicit Sampler(const SamplingOptions &options)
      : options(options), random(options.seed) {}

  /// Returns the number of the score that was chosen. NaN is chosen by nobody;
  /// nothing where there is nothing else.
  std::optional<int64_t> choose(std::vector<double> scores);

private:
  SamplingOptions options;
  std::mt19937_64 random;
};

} // namespace ax

#endif // AX_LIB_SESSION_SAMPLER_H
