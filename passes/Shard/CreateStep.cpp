//===- CreateStep.cpp - A step of a resharding as an operation ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CreateStep.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

Value ax::createStep(OpBuilder &builder, Location loc, const Step &step,
                     Value operand, const Mesh &mesh, StringAttr because) {
  Type type = withLayout(tensorType(operand), step.result, mesh);
  AxesAttr axes = AxesAttr::get(builder.getContext(), step.axes, mesh);
  auto create = [&](auto tag) -> Value {
    return decltype(tag)::create(builder, loc, type, operand, axes,
                                 communicates(step.kind) ? because : nullptr)
        ->getResult(0);
  };
  switch (step.kind) {
  case StepKind::AllSlice:
    return create(AllSliceOp());
  case StepKind::AllGather:
    return create(AllGatherOp());
  case StepKind::AllToAll:
    return create(AllToAllOp());
  case StepKind::ReduceScatter:
    return create(ReduceScatterOp());
  case StepKind::AllReduce:
    return create(AllReduceOp());
  case StepKind::CollectivePermute:
    return create(CollectivePermuteOp());
  case StepKind::ToPartial:
    return create(ToPartialOp());
  }
  llvm_unreachable("unknown step");
}
