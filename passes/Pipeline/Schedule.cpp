//===- Schedule.cpp - The order of each stage's actions -------------------===//
#include "ax/Dialect/Ax.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/Builders.h"

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
    sharding::Mesh mesh = plan.getMesh();
    // Without backward actions every policy is this one: micro-batches in
    // their order.
    std::string order;
    for (int64_t m = 0; m < mesh.axisSize("micro"); ++m)
      order += (m ? " F" : "F") + std::to_string(m);
    SmallVector<StringRef> orders(mesh.axisSize("pipe"), order);
    for (ProgramOp program : plan.getBody().getOps<ProgramOp>()) {
      for (ScheduleOp old :
           llvm::make_early_inc_range(program.getBody().getOps<ScheduleOp>()))
        old.erase();
      OpBuilder builder(program.getBody().front().getTerminator());
      ScheduleOp::create(builder, program.getLoc(),
                         builder.getStringAttr("forward"),
                         builder.getStrArrayAttr(orders));
    }
  }
};
} // namespace
