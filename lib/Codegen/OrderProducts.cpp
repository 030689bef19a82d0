//===- OrderProducts.cpp - Operands that libraries can read ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

namespace {

/// One operand of a product: which of its dimensions are what.
struct Order {
  llvm::SmallVector<int64_t> batch, contract;
};

struct OrderProductsPass : codegen::impl::OrderProductsBase<OrderProductsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (auto dot = dyn_cast_if_present<DotOp>(getLibraryCore(&op)))
          order(&op, dot);
    });
  }

  /// `op` is the product, or holds it.
  static void order(Operation *op, DotOp dot) {
    if (auto lhs =
            transposeOperand(op, 0, dot.getLhsBatch(), dot.getLhsContract())) {
      dot.setLhsBatch(lhs->batch);
      dot.setLhsContract(lhs->contract);
    }
    if (auto rhs =
            transposeOperand(op, 1, dot.getRhsBatch(), dot.getRhsContract())) {
      dot.setRhsBatch(rhs->batch);
      dot.setRhsContract(rhs->contract);
    }
  }

  static std::optional<Order> transposeOperand(Operation *op, unsigned number,
                                               ArrayRef<int64_t> batch,
                                               ArrayRef<int64_t> contract) {
    Value operand = op->getOperand(number);
    if (suitsProduct(operand, batch, contract))
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
