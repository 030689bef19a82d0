//===- Command.h - A command line that runs axrun ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mpirun -np 8 axrun plan.mlir --save run ...`: a launcher's words, if there
// is one, then axrun's. What is known of it is what a restart changes.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TOOLS_AXLAUNCH_COMMAND_H
#define AX_TOOLS_AXLAUNCH_COMMAND_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ax {

class Command {
public:
  /// A Usage error for a command without axrun (or axrun-core), a plan, or
  /// --save. What else may be wrong with it the command says itself.
  static llvm::Expected<Command> parse(std::vector<std::string> words);

  const std::vector<std::string> &getWords() const { return words; }
  const std::string &getPlan() const { return words[planAt]; }
  /// The values of --save, --log and --resume; the latter two may be empty.
  const std::string &getSave() const { return save; }
  const std::string &getLog() const { return log; }
  const std::string &getResume() const { return resume; }
  /// Whether something else than axrun is started.
  bool hasLauncher() const { return axrunAt > 0; }

  /// Returns the command that goes on with what `folder` has, and not with what
  /// this one began with: --resume, or other weights.
  Command resumedFrom(llvm::StringRef folder) const;
  /// Returns the command with another plan, on as many ranks as that has. A
  /// Usage error where the launcher's words do not say how many there are.
  llvm::Expected<Command> withPlan(llvm::StringRef plan,
                                   int64_t numRanks) const;

private:
  std::vector<std::string> words;
  std::string save, log, resume;
  size_t axrunAt = 0, planAt = 0;
};

} // namespace ax

#endif // AX_TOOLS_AXLAUNCH_COMMAND_H
