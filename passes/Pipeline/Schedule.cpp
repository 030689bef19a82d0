//===- Schedule.cpp - The order of each stage's actions -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Schedule.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Builders.h"

#include <map>

namespace ax {
#define GEN_PASS_DEF_SCHEDULE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {
struct Schedule : ax::impl::ScheduleBase<Schedule> {
  using ScheduleBase::ScheduleBase;

  void runOnOperation() override {
    PlanOp plan = getOperation();
    for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
      if (failed(schedule(program, plan.getMesh(), policy.get())))
        return signalPassFailure();
  }

  LogicalResult schedule(ProgramOp program, const sharding::Mesh &mesh,
                         const cost::PipelineSchedule &schedule);
};
} // namespace

/// Adds the action if there is a list for it.
static void append(std::string &order, const std::vector<ActionKind> &kinds,
                   ScheduledAction action) {
  if (llvm::is_contained(kinds, action.kind))
    order += (order.empty() ? "" : " ") + toString(action);
}

LogicalResult Schedule::schedule(ProgramOp program, const sharding::Mesh &mesh,
                                 const cost::PipelineSchedule &schedule) {
  cost::Pipeline pipeline;
  pipeline.coordinates = mesh.axisSize(meshAxis::pipe);
  pipeline.microBatches = mesh.numTimeSlices();
  pipeline.backward = 0;
  std::vector<std::vector<ActionKind>> kinds(pipeline.coordinates);
  for (StageOp stage : program.getBody().getOps<StageOp>()) {
    ActionKind kind = *actionOf(stage);
    kinds[stage.getOn()].push_back(kind);
    if (!kind.isOnceAStep())
      pipeline.parts = std::max(pipeline.parts, kind.part + 1);
    if (kind.action == Action::Backward)
      pipeline.backward = std::max(pipeline.backward, 2.0);
    if (kind.action == Action::Weights)
      pipeline.backward = pipeline.weights = 1;
  }
  if (pipeline.trains() && pipeline.coordinates > 1)
    if (llvm::Error error = cost::check(schedule, pipeline))
      return program.emitError(describeError(std::move(error)).message);
  std::vector<cost::ActionOrder> made = schedule.orders(pipeline);
  std::vector<std::string> orders(pipeline.coordinates);
  for (auto [order, actions, known] : llvm::zip_equal(orders, made, kinds)) {
    for (const ScheduledAction &action : actions)
      append(order, known, action);
    llvm::sort(known);
    for (ActionKind kind : known)
      if (kind.isOnceAStep())
        append(order, known, {kind, 0});
  }
  for (StageOp stage : program.getBody().getOps<StageOp>())
    setSlots(stage, mesh,
             schedule.slots(pipeline, stage.getOn(), *actionOf(stage),
                            made[stage.getOn()]));

  for (ScheduleOp old :
       llvm::make_early_inc_range(program.getBody().getOps<ScheduleOp>()))
    old.erase();
  OpBuilder builder(program.getBody().front().getTerminator());
  ScheduleOp::create(
      builder, program.getLoc(),
      builder.getStringAttr(pipeline.trains() ? schedule.name() : "forward"),
      builder.getStrArrayAttr(
          SmallVector<StringRef>(orders.begin(), orders.end())));
  return success();
}
