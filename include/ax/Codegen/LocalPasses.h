//===- LocalPasses.h - From a plan to commands, step by step ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_LOCALPASSES_H
#define AX_CODEGEN_LOCALPASSES_H

#include "ax/Local/Local.h"
#include "ax/Support/Target.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <vector>

namespace ax::codegen {

#define GEN_PASS_DECL
#include "ax/Codegen/LocalPasses.h.inc"

/// What turns a localised stage into commands, in order: all passes behind
/// `axl-localize`. Each runs on stages, or on what holds them.
std::vector<std::unique_ptr<mlir::Pass>> stagePasses(bool separateKernels,
                                                     const Target &target);

/// Adds one of these to what runs on plans: for them, or for each local stage.
void addStagePass(mlir::OpPassManager &plans, std::unique_ptr<mlir::Pass> pass);

/// All passes, and the pipeline `axl-lower`, which is all of them on a plan.
void registerLocalPasses();

} // namespace ax::codegen

#endif // AX_CODEGEN_LOCALPASSES_H
