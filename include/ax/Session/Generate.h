//===- Generate.h - Tokens, one after another -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decoder's program takes tokens and gives a score for each that may be next;
// what it has seen before is in states that it carries (`axopt --carry`). It is
// run again and again, each time on the token that was chosen last.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SESSION_GENERATE_H
#define AX_SESSION_GENERATE_H

#include "ax/Runtime/Npy.h"
#include "ax/Session/Session.h"

#include <chrono>
#include <functional>
#include <map>

namespace ax {

/// How the next token is chosen by its scores.
struct SamplingOptions {
  /// 0: the largest, the first of equal ones. Otherwise at random, by the
  /// softmax of scores divided by it, and
  double temperature = 0;
  /// of the so many largest (0: of all), and of these
  int64_t topK = 0;
  /// of the fewest that have so much of the probability together.
  double topP = 1;
  /// Equal seeds choose equal tokens of equal scores, on any machine.
  uint64_t seed = 0;
};

struct GenerateOptions {
  /// How many tokens there are to be behind the prompt, at most.
  int64_t count = 0;
  /// Integers, [batch, length] or, for a batch of one, [length].
  HostTensor prompt;
  SamplingOptions sampling;
  /// Behind one of these a sequence ends; what follows repeats it.
  std::vector<int64_t> stops;
  /// What the program calls its `tokens`, `mask`, `positions` and `logits`
  /// where that is not as exporters have it: `input_ids`, `attention_mask`,
  /// `position_ids`, `logits`.
  std::map<std::string, std::string> names;
  /// Values of all other inputs, by name, the same in each step.
  rt::NamedTensors others;
  /// Called in the first process with the next token of each sequence, as soon
  /// as they are chosen; may be empty.
  std::function<void(llvm::ArrayRef<int64_t> tokens)> chosen;
};

struct Generated {
  /// [batch, prompt and what follows], i64.
  HostTensor tokens;
  /// How long the prompt took, to its end, and what follows the first token
  /// that was chosen by it.
  double promptSeconds = 0, restSeconds = 0;
  /// Of each step of the session's program.
  std::vector<std::chrono::nanoseconds> times;
};

/// Names of the inputs that `generate` gives values itself. A Usage error where
/// the program is none that it can run: it says what is missing.
llvm::Expected<std::vector<std::string>>
findGenerated(const rt::Program &program,
              const std::map<std::string, std::string> &names);

/// Runs the session's program, which takes one token of each sequence, from
/// states that are as they were when it started; and its second one, if it has
/// one, for several tokens of the prompt at a time. Usage and BadInput errors
/// where prompt and program do not fit, or the carried states have no room for
/// so many tokens. All processes make the call, and all have the tokens.
llvm::Expected<Generated> generate(Session &session,
                                   const GenerateOptions &options);

} // namespace ax

#endif // AX_SESSION_GENERATE_H
