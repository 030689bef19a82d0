//===- ComputeWhereRead.cpp - What each reader works out itself -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: the loss of a language model reads its logits, of bf16, in three
// kernels, for the maximum, for the sum of exponentials, and for the gradient.
// Cast to f32 they would be twice as large, and so would their exponentials be,
// which the last two have in common: all three read the logits.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "FusionGroups.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPUTEWHEREREAD
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static int64_t bytesOf(Value value) {
  constexpr int64_t byteBits = 8;
  int64_t bits = elementType(value).getIntOrFloatBitWidth();
  return tensorType(value).getNumElements() *
         std::max(bits / byteBits, int64_t(1));
}

/// Whether it may be done again. An exponential takes less on a GPU than memory
/// does.
static bool isCheap(Operation *op) {
  if (fusionKind(op) != FusionKind::Pull)
    return false;
  auto unary = dyn_cast<UnaryOp>(op);
  return !isCostly(op) || (unary && unary.getKind() == UnaryKind::exp);
}

namespace {

/// What a value is made of.
struct Making {
  /// In an order in which operands come first.
  llvm::SmallSetVector<Operation *, 8> ops;
  /// Of what they read from memory.
  int64_t bytes = 0;
};

struct ComputeWhereReadPass
    : codegen::impl::ComputeWhereReadBase<ComputeWhereReadPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (op.getNumResults() == 1 && !op.getResult(0).hasOneUse() &&
            !isFree(&op))
          giveToReaders(&op);
    });
  }

  /// Down to what is in memory: what others read, too, and what is no work for
  /// an element.
  static void collect(Operation *op, Making &making) {
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      bool isMade =
          source && isCheap(source) && (isFree(source) || source->hasOneUse());
      if (!isMade) {
        making.bytes += bytesOf(operand);
        continue;
      }
      int64_t before = making.bytes;
      collect(source, making);
      // Of what a view is a part of, only that part is read.
      making.bytes = std::min(making.bytes, before + bytesOf(operand));
    }
    making.ops.insert(op);
  }

  /// All kernels' readers but the first get one of their own.
  static void giveToReaders(Operation *op) {
    constexpr size_t mostOps = 8;
    if (!isCheap(op))
      return;
    Making making;
    collect(op, making);
    if (making.ops.size() > mostOps ||
        making.bytes >= bytesOf(op->getResult(0)))
      return;
    llvm::SmallSetVector<Operation *, 4> found;
    for (Operation *reader : op->getResult(0).getUsers())
      if (fusionKind(reader) != FusionKind::None)
        found.insert(reader);
    SmallVector<Operation *> readers = found.takeVector();
    llvm::sort(readers, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    if (readers.empty())
      return;
    for (Operation *reader : llvm::drop_begin(readers)) {
      OpBuilder builder(reader);
      IRMapping mapping;
      for (Operation *made : making.ops)
        builder.clone(*made, mapping);
      reader->replaceUsesOfWith(op->getResult(0),
                                mapping.lookup(op->getResult(0)));
    }
  }
};

} // namespace
