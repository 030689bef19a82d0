//===- SetMesh.cpp - The plan's mesh --------------------------------------===//
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
    strategy.pipe = pipe;
    strategy.micro = micro;
    auto failWith = [&](llvm::Error error) {
      plan.emitError(describeError(std::move(error)).message);
      signalPassFailure();
    };
    if (llvm::Error error = strategy.setTensorParallel(tensor))
      return failWith(std::move(error));
    if (!order.empty())
      if (llvm::Error error = strategy.setOrder(order))
        return failWith(std::move(error));
    llvm::Expected<sharding::Mesh> mesh = strategy.mesh();
    if (!mesh)
      return failWith(mesh.takeError());
    for (MeshOp old : llvm::to_vector(plan.getBody().getOps<MeshOp>()))
      old.erase();
    OpBuilder builder(&plan.getBody().front(), plan.getBody().front().begin());
    MeshOp::create(builder, plan.getLoc(), *mesh);
  }
};
} // namespace
