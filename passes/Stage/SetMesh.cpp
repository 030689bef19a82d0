//===- SetMesh.cpp - The plan's mesh --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Passes/Passes.h"
#include "ax/Passes/Strategy.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Builders.h"

namespace ax {
#define GEN_PASS_DEF_SETMESH
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {
struct SetMesh : ax::impl::SetMeshBase<SetMesh> {
  using SetMeshBase::SetMeshBase;

  void runOnOperation() override {
    PlanOp plan = getOperation();
    Strategy strategy;
    strategy.data = data;
    strategy.context = context;
    strategy.pipe = pipe;
    strategy.micro = micro;
    strategy.tensor = tensor;
    if (!order.empty())
      strategy.order.assign(order.begin(), order.end());
    llvm::Expected<sharding::Mesh> mesh = strategy.mesh();
    if (!mesh) {
      plan.emitError(describeError(mesh.takeError()).message);
      return signalPassFailure();
    }
    for (MeshOp old : llvm::to_vector(plan.getBody().getOps<MeshOp>()))
      old.erase();
    OpBuilder builder(&plan.getBody().front(), plan.getBody().front().begin());
    MeshOp::create(builder, plan.getLoc(), *mesh);
  }
};
} // namespace
