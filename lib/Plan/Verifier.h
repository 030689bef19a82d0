//===- Verifier.h - The parts of the proof ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each reports errors at the operations and goes on; the plan is sound when
// none did.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_PLAN_VERIFIER_H
#define AX_LIB_PLAN_VERIFIER_H

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/MeshAxes.h"

#include <set>

namespace ax::plan {

/// Rules, and types of operands and results that obey them, as numbers.
using ObeyedRules = std::set<std::vector<int64_t>>;

/// Operations of a stage: their layouts obey their rules, collectives stay
/// inside the stage and the micro-batch. What is in `obeyed` need not be proven
/// again; what has been is added to it.
void verifyOps(StageOp stage, const sharding::Mesh &mesh, ObeyedRules &obeyed);

/// One schedule, in which every list of every stage takes every micro-batch
/// once, all in the same order, finds what it needs, and nobody waits for ever.
void verifySchedule(ProgramOp program, const sharding::Mesh &mesh);

/// What a program that trains stores in a state was this state before, or stays
/// it; a program that evaluates stores nothing.
void verifyStores(ProgramOp program);

/// What `@prepare` stores, it makes of states that stay as they are, and no
/// other program changes; every prepared state is stored.
void verifyPrepared(PlanOp plan);

/// Stages that hold the same state store the same value.
void verifyReplicas(ProgramOp program);

/// Why ranks cannot hold a value with this layout as a whole: it is partial, or
/// split over `pipe` (or, unless `inTime`, over axes in time).
std::optional<std::string> findHoldingFault(mlir::RankedTensorType type,
                                            const sharding::Mesh &mesh,
                                            bool inTime);

} // namespace ax::plan

#endif // AX_LIB_PLAN_VERIFIER_H
