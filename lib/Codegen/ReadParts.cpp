//===- ReadParts.cpp - Kernels are given parts of tensors -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "StridedView.h"
#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {
#define GEN_PASS_DEF_READPARTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Where operands of kernels begin.
static constexpr int64_t alignment = 64;

/// The views through which alone a kernel reads the argument, up to the last
/// slice that is a piece of the argument in its order; none if there is none.
static SmallVector<Operation *> viewsOfPart(BlockArgument argument) {
  SmallVector<Operation *> views;
  size_t count = 0;
  Value value = argument;
  while (value.hasOneUse() && isViewOp(*value.user_begin())) {
    Operation *op = *value.user_begin();
    value = op->getResult(0);
    StridedView view = viewOf(value);
    if (!view.isDense() || view.base != argument)
      break;
    views.push_back(op);
    int64_t elements = tensorType(value).getNumElements();
    int64_t start =
        elements == 0 ? 0 : view.offset * (byteSizeOf(value) / elements);
    if (isa<SliceOp>(op) && start % alignment == 0)
      count = views.size();
  }
  views.truncate(count);
  return views;
}

static bool isInPlace(FusionOp fusion, int64_t operand) {
  std::optional<ArrayRef<int64_t>> places = fusion.getInPlace();
  return places && llvm::is_contained(*places, operand);
}

static void readParts(FusionOp fusion) {
  for (BlockArgument argument : fusion.getBody().getArguments()) {
    int64_t number = argument.getArgNumber();
    if (isInPlace(fusion, number))
      continue;
    for (Operation *view : viewsOfPart(argument)) {
      Value whole = fusion.getOperand(number);
      view->getResult(0).replaceAllUsesWith(argument);
      view->moveBefore(fusion);
      view->setOperand(0, whole);
      fusion.setOperand(number, view->getResult(0));
      argument.setType(view->getResult(0).getType());
    }
  }
}

namespace {

struct ReadPartsPass : codegen::impl::ReadPartsBase<ReadPartsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (FusionOp fusion : stage.getBlock().getOps<FusionOp>())
        readParts(fusion);
    });
  }
};

} // namespace
