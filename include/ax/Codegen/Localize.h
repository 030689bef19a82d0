//===- Localize.h - What one rank of a stage computes -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage is written on global shapes with layouts. Localising gives the same
// computation on the part that one rank holds: one program for all ranks, in
// which a rank's place is a number read at run time (`axl.axis_index`).
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_LOCALIZE_H
#define AX_CODEGEN_LOCALIZE_H

#include "ax/Local/Local.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace ax::codegen {

/// What a rank computes of `stage`, which must be part of a verified plan with
/// `mesh`. A BadPlan error names the node whose layouts no rank could follow.
llvm::Expected<mlir::OwningOpRef<LocalStageOp>>
localize(StageOp stage, const sharding::Mesh &mesh);

/// All stages of a program of a verified plan.
llvm::Expected<mlir::OwningOpRef<LocalProgramOp>> localize(ProgramOp program);

} // namespace ax::codegen

#endif // AX_CODEGEN_LOCALIZE_H
