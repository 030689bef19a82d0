//===- CompiledPlan.h - Programs in a file ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan becomes when it is compiled for targets: all that a run on one of
// them needs, so that it starts without a compiler. docs/compiled-plans.md
// describes the file, runtime/Program/CompiledPlan.proto its message.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_COMPILEDPLAN_H
#define AX_RUNTIME_COMPILEDPLAN_H

#include "ax/Runtime/Program.h"
#include "ax/Support/PlanFiles.h"
#include "ax/Support/Target.h"

#include <map>
#include <memory>

namespace ax::rt {

/// One of the weights that a compiled plan has itself, which are in the order
/// of these.
struct EmbeddedPiece {
  int64_t bytes = 0;
  std::string checksum;
};

/// A plan's programs, as they are for one target: kernels, commands and what
/// memory they need differ.
struct TargetPrograms {
  CodeTarget target;
  /// In the plan's order.
  std::vector<std::shared_ptr<Program>> programs;

  /// Null when there is none of that name.
  std::shared_ptr<Program> find(llvm::StringRef name) const;
};

/// What is not said of one target is so for all of them.
struct CompiledPlan {
  /// The plan as text, to explain it.
  std::string text;
  PlanFiles files;
  /// Names of all states of the plan, of which programs have those that they
  /// use.
  std::vector<std::string> states;
  /// Some state is trained.
  bool isTraining = false;
  std::vector<TargetPrograms> targets;
  /// Empty: states come from the model's files.
  std::vector<EmbeddedPiece> embedded;

  /// Says how long a step of each program, by its name, was predicted to take
  /// on the machine.
  void setPredicted(const std::map<std::string, double> &seconds,
                    llvm::StringRef machine);
};

/// Whether the file begins like a compiled plan. False for what cannot be read.
bool isCompiledPlan(const std::string &path);

/// Replaces the file as a whole. With a folder, that of the model's files, the
/// weights are in it, too.
llvm::Error
writeCompiledPlan(const std::string &path, CompiledPlan plan,
                  const std::optional<std::string> &embedFrom = std::nullopt);

/// Returns a plan with one target at least, whose programs, of each target one
/// at least, have one mesh. A BadPlan error for a file that is damaged, of
/// another version, or not sound (checkProgram, for every target).
llvm::Expected<CompiledPlan> readCompiledPlan(const std::string &path);

} // namespace ax::rt

#endif // AX_RUNTIME_COMPILEDPLAN_H
