//===- ReadRounded.cpp - Sums of what was rounded for products ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: of a Linear y = x w + b in mixed precision, whose dy is f32,
//
//   rounded = cast dy to bf16
//   dx = rounded w^T,   dw = x^T rounded,   db = sum of dy over its rows
//
// Products read the rounded dy in memory. Where the sum is of that, too,
// widened as it is read, dy itself is often nobody's any more.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "FusionGroups.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"

namespace ax::codegen {
#define GEN_PASS_DEF_READROUNDED
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether all dimensions but the last are summed, of more than one row.
static bool isSumOfRows(ReduceOp reduce) {
  ArrayRef<int64_t> shape = shapeOf(reduce.getOperand());
  ArrayRef<int64_t> dims = reduce.getDims();
  int64_t last = static_cast<int64_t>(shape.size()) - 1;
  return reduce.getKind() == ReduceOpKind::sum && last > 0 &&
         static_cast<int64_t>(dims.size()) == last &&
         !llvm::is_contained(dims, last) &&
         llvm::product_of(shape.drop_back()) > 1;
}

static bool isFactor(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa_and_present<LinearOp, DotOp>(getLibraryCore(user));
  });
}

/// What products read of `value`: bf16 or f16; null where there is no such.
static CastOp findRounded(Value value) {
  for (Operation *user : value.getUsers()) {
    auto cast = dyn_cast<CastOp>(user);
    if (cast && isNarrowFloat(elementType(cast.getResult())) &&
        !isFloat8(elementType(cast.getResult())) && isFactor(cast.getResult()))
      return cast;
  }
  return {};
}

namespace {

struct ReadRoundedPass : codegen::impl::ReadRoundedBase<ReadRoundedPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto reduce : stage.getBlock().getOps<ReduceOp>())
        if (isSumOfRows(reduce))
          readRounded(reduce);
    });
  }

  static void readRounded(ReduceOp reduce) {
    Value exact = reduce.getOperand();
    Operation *maker = exact.getDefiningOp();
    // What is no more than a view of something takes less to read.
    if (!elementType(exact).isF32() || !maker || isFree(maker))
      return;
    CastOp rounded = findRounded(exact);
    if (!rounded)
      return;
    if (reduce->isBeforeInBlock(rounded))
      rounded->moveAfter(maker);
    OpBuilder builder(reduce);
    reduce->setOperand(0, CastOp::create(builder, reduce.getLoc(),
                                         exact.getType(), rounded.getResult()));
  }
};

} // namespace
