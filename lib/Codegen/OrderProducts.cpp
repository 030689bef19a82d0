//===- OrderProducts.cpp - Operands that libraries can read ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EightBitProducts.h"
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {
#define GEN_PASS_DEF_ORDERPRODUCTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether a matrix product can read the operand as it is when it is dense: its
/// last dimension is no batch, what is summed over is one run.
static bool suitsProduct(Value operand, ArrayRef<int64_t> batch,
                         ArrayRef<int64_t> contract) {
  ArrayRef<int64_t> shape = tensorType(operand).getShape();
  for (size_t i = 1; i < contract.size(); ++i)
    if (contract[i] != contract[i - 1] + 1)
      return false;
  int64_t last = static_cast<int64_t>(shape.size()) - 1;
  while (last > 0 && shape[last] == 1)
    --last;
  return !llvm::is_contained(batch, last);
}

/// Whether the last dimensions, and no others, are summed over, in this order,
/// and the first ones are a batch.
static bool isInnermost(Value operand, ArrayRef<int64_t> batch,
                        ArrayRef<int64_t> contract) {
  auto isRun = [](ArrayRef<int64_t> dims, int64_t first) {
    return llvm::equal(
        dims, llvm::seq(first, first + static_cast<int64_t>(dims.size())));
  };
  return isRun(batch, 0) &&
         isRun(contract, tensorType(operand).getRank() -
                             static_cast<int64_t>(contract.size()));
}

namespace {

/// One operand of a product: which of its dimensions are what.
struct Order {
  llvm::SmallVector<int64_t> batch, contract;
};

struct OrderProductsPass : codegen::impl::OrderProductsBase<OrderProductsPass> {
  using OrderProductsBase::OrderProductsBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock())) {
        bool innermost =
            multipliesIntegers(&op) || (float8 && multipliesFloat8(&op));
        Operation *product = getLibraryCore(&op);
        if (auto dot = dyn_cast_if_present<DotOp>(product))
          order(&op, dot, innermost);
        else if (auto linear = dyn_cast_if_present<LinearOp>(product))
          if (innermost)
            order(&op, linear);
      }
    });
  }

  /// `op` is the product, or holds it.
  static void order(Operation *op, DotOp dot, bool innermost) {
    if (auto lhs = transposeOperand(op, 0, dot.getLhsBatch(),
                                    dot.getLhsContract(), innermost)) {
      dot.setLhsBatch(lhs->batch);
      dot.setLhsContract(lhs->contract);
    }
    if (auto rhs = transposeOperand(op, 1, dot.getRhsBatch(),
                                    dot.getRhsContract(), innermost)) {
      dot.setRhsBatch(rhs->batch);
      dot.setRhsContract(rhs->contract);
    }
  }
  /// What a Linear sums over lies innermost in x.
  static void order(Operation *op, LinearOp linear) {
    if (!linear.getTransposeW() &&
        transposeOperand(op, 1, {}, {0}, /*innermost=*/true))
      linear.setTransposeW(true);
  }

  static std::optional<Order> transposeOperand(Operation *op, unsigned number,
                                               ArrayRef<int64_t> batch,
                                               ArrayRef<int64_t> contract,
                                               bool innermost) {
    Value operand = op->getOperand(number);
    if (innermost ? isInnermost(operand, batch, contract)
                  : suitsProduct(operand, batch, contract))
      return std::nullopt;
    RankedTensorType type = tensorType(operand);
    SmallVector<int64_t> permutation(batch), sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
        permutation.push_back(dim);
    int64_t firstContract = permutation.size();
    llvm::append_range(permutation, contract);
    for (int64_t dim : permutation)
      sizes.push_back(type.getDimSize(dim));
    OpBuilder builder(op);
    setLibraryOperand(op, number,
                      TransposeOp::create(builder, op->getLoc(),
                                          type.clone(sizes), operand,
                                          permutation));
    return Order{
        llvm::to_vector(llvm::seq<int64_t>(batch.size())),
        llvm::to_vector(llvm::seq<int64_t>(firstContract, type.getRank()))};
  }
};

} // namespace
