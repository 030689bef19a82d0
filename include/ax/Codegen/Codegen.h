//===- Codegen.h - From a plan's program to commands ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_CODEGEN_H
#define AX_CODEGEN_CODEGEN_H

#include "ax/Cost/StageCost.h"
#include "ax/Local/Local.h"
#include "ax/Runtime/CompiledPlan.h"
#include "ax/Support/Target.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>

namespace mlir {
class TimingManager;
} // namespace mlir

namespace ax::codegen {

struct Options {
  /// What runs the kernels.
  Target target = Target::native();
  /// Folder of compiled kernels; empty: none are kept.
  std::string cacheDir;
  /// Threads that compile kernels.
  int64_t numThreads = 1;
  /// Told once when many kernels have to be compiled, which takes long: how
  /// many the program has. May be left empty; any thread may call it.
  std::function<void(int64_t)> onMany;
  /// Told how many kernels of a program this process has compiled, and how many
  /// it has found in the cache. May be left empty.
  std::function<void(int64_t compiled, int64_t found)> onKernels;
  /// Told once of each target which products of factors of eight bits its
  /// library does not have, and what is done in their place. May be left empty.
  std::function<void(const std::string &)> onWidened;
  /// Every operation is a kernel of its own; for finding faults.
  bool separateKernels = false;
  /// Kernels are left out: only what memory is needed can be asked of the
  /// result.
  bool withoutKernels = false;
  /// Is called after "localize" and each of the passes behind it, with the plan
  /// whose program is a local one, and with "choose-nests" and a copy that says
  /// which loops kernels have; may be left empty.
  std::function<void(llvm::StringRef step, PlanOp plan)> after;
  /// What the steps take, if it is to be told.
  mlir::TimingManager *timing = nullptr;
  /// Weights of the plan that the program does not use are among its states
  /// (rt::State::isUnused): for who saves a run.
  bool allWeights = false;
};

/// The folder `asked`; when that is empty, `kernels` in `$AXOPT_CACHE` or
/// `~/.cache/axopt`. Where it cannot be made `warn` is told, if there is one,
/// and the result is empty: a cache that cannot be had costs time, not results.
std::string usableCache(std::string asked,
                        const std::function<void(const std::string &)> &warn);

/// The names by which `Options::after` is called, in this order.
std::vector<std::string> stepNames();

/// A plan of the mesh and the states of `program`'s, and a local program that
/// has gone through all passes. Errors as of generate.
llvm::Expected<mlir::OwningOpRef<PlanOp>> lower(ProgramOp program,
                                                const Options &options = {});

/// Commands, kernels and memory of all stages of `program`, which must be part
/// of a verified plan. BadPlan errors name the stage and node that cannot be
/// localised, Unsupported ones what has no kernel.
llvm::Expected<rt::Program> generate(ProgramOp program,
                                     const Options &options = {});

/// The programs of a verified plan that are named, in the plan's order, for
/// each of the targets, with all that a run needs to know besides; but for its
/// text and files. `options` are those of generate, for any target.
llvm::Expected<rt::CompiledPlan>
compilePlan(PlanOp plan, llvm::ArrayRef<llvm::StringRef> programs,
            llvm::ArrayRef<Target> targets, Options options = {});

/// Returns what lists of `program` allocate and take on the machine of its
/// plan, by the commands that a run would have. Errors as of generate.
llvm::Expected<cost::Predictions> predict(ProgramOp program);

} // namespace ax::codegen

#endif // AX_CODEGEN_CODEGEN_H
