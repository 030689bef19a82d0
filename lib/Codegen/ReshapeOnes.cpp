//===- ReshapeOnes.cpp - Dimensions of one element ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/Tensors.h"

namespace ax::codegen {
#define GEN_PASS_DEF_RESHAPEONES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether each element of the result is one of the operand.
static bool reducesOnes(ReduceOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  return elementType(op.getOperand()) == elementType(op.getResult()) &&
         llvm::all_of(op.getDims(),
                      [&](int64_t dim) { return shape[dim] == 1; });
}

/// Whether a library reads it. They go by strides: of images of one channel,
/// whether channels are innermost.
static bool isReadByLibrary(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return getLibraryCore(user) ||
           (isView(user) && isReadByLibrary(user->getResult(0)));
  });
}

namespace {

struct ReshapeOnesPass : codegen::impl::ReshapeOnesBase<ReshapeOnesPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock())) {
        auto transpose = dyn_cast<TransposeOp>(op);
        auto reduce = dyn_cast<ReduceOp>(op);
        if (!(transpose && keepsOrder(shapeOf(transpose.getOperand()),
                                      transpose.getPermutation())) &&
            !(reduce && reducesOnes(reduce)))
          continue;
        if (isReadByLibrary(op.getResult(0)))
          continue;
        OpBuilder builder(&op);
        op.getResult(0).replaceAllUsesWith(reshapeTo(
            builder, op.getLoc(), op.getOperand(0), shapeOf(op.getResult(0))));
        op.erase();
      }
    });
  }
};

} // namespace
