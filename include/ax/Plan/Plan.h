//===- Plan.h - Plans as files: read, check, tell about ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PLAN_PLAN_H
#define AX_PLAN_PLAN_H

#include "ax/Cost/StageCost.h"
#include "ax/Dialect/Ax.h"
#include "ax/Support/PlanFiles.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <map>

namespace ax::plan {

/// Parses a plan, and reads its constants. The files are untrusted: BadPlan
/// with file, line and what is wrong, InputOutput when they cannot be read. Not
/// yet verified as a plan.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
readPlan(llvm::StringRef path, mlir::MLIRContext &context);
/// Returns the same from text, without constants in another file; `name` stands
/// for the text's own in messages.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
parsePlan(llvm::StringRef text, llvm::StringRef name,
          mlir::MLIRContext &context);

/// `readPlan` has done so: constants that lie in the file beside the plan,
/// which is as untrusted. BadPlan when its bytes are not those that the plan
/// means, InputOutput when there is none.
llvm::Error readConstants(mlir::ModuleOp module, llvm::StringRef planPath);

/// That file of a plan which was read; empty: it has none.
std::string constantsFile(PlanOp plan, llvm::StringRef planPath);
/// The file that `writePlan` may put constants into: `OUTPUT.data`, where the
/// output is a file that can have another one beside it.
std::optional<std::string> constantsFileFor(llvm::StringRef output);

/// Writes the plan aside and renames it; `-` is standard output, which says
/// itself that it failed. Constants of more than a kilobyte go, likewise, to a
/// file of their own. Reading it again gives the same plan.
llvm::Error writePlan(mlir::ModuleOp module, llvm::StringRef path);

/// Proves what docs/plan-format.md lists, without running anything; BadPlan
/// with the first faults, and how many more there are.
llvm::Error verifyPlan(mlir::ModuleOp module);

/// What the plan says of the files of its states.
PlanFiles filesOf(PlanOp plan);

/// The plan, and all that it was made from. `folder` has the files that it
/// names.
std::vector<std::string> pathsOf(PlanOp plan, llvm::StringRef planPath,
                                 llvm::StringRef folder);

/// The plan's text as `writePlan` would write it to `path`, without its
/// constants' file: to explain it, not to run it.
llvm::Expected<std::string> printPlan(mlir::ModuleOp module,
                                      llvm::StringRef path);

/// What a step takes of the program that takes longest, which is the one that
/// trains, `prefill` aside; and what the rank that needs most has for any.
struct StepPrediction {
  double seconds = 0;
  int64_t peakBytes = 0;
};
StepPrediction predictStep(mlir::ModuleOp module,
                           const cost::Predictions &predictions);
/// What a step takes of each program, by the program's name, in seconds.
std::map<std::string, double>
predictSteps(mlir::ModuleOp module, const cost::Predictions &predictions);

/// Mesh and groups, stages, state and peak memory per rank, FLOPs, number and
/// bytes of collectives per axis.
void summarise(mlir::ModuleOp module, llvm::raw_ostream &os,
               const cost::Predictions &predictions = cost::Predictions());

/// How each Linear, Conv and attention is split or why not; for each collective
/// its node, cause and bytes.
void explain(mlir::ModuleOp module, llvm::raw_ostream &os);
std::string explainJSON(mlir::ModuleOp module);

/// What every rank holds and does, beside the whole: bytes of weights, FLOPs of
/// contractions, collectives by axis, seconds of stages.
std::string
reportJSON(mlir::ModuleOp module,
           const cost::Predictions &predictions = cost::Predictions());

} // namespace ax::plan

#endif // AX_PLAN_PLAN_H
