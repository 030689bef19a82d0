//===- ComputeWhereRead.cpp - What each reader works out itself -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: the loss of a language model reads its logits, of bf16, in three
// kernels, for the maximum, for the sum of exponentials, and for the gradient.
// Cast to f32 they would be twice as large, and so would their exponentials be,
// which the last two have in common: all three read the logits.
//
// And one that is no smaller: a norm's gradients, of its input and of its
// scale, read (x - mean) / deviation, as large as x, which is in memory for
// others. Both kernels read x, and nobody writes the other.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "FusionGroups.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

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

/// Whether it may be done again. What is made of one exponential takes a GPU
/// less than memory does.
static bool isCheap(Operation *op) {
  if (fusionKind(op) != FusionKind::Pull)
    return false;
  auto unary = dyn_cast<UnaryOp>(op);
  return !isCostly(op) ||
         (unary && llvm::is_contained(
                       {UnaryKind::exp, UnaryKind::sigmoid, UnaryKind::silu},
                       unary.getKind()));
}

namespace {

/// What a value is made of.
struct Making {
  static constexpr size_t mostOps = 16;
  /// In an order in which operands come first.
  llvm::SmallSetVector<Operation *, 8> ops;
  /// There are more than `mostOps`, of which some were not looked at.
  bool isTooLarge = false;
  /// Of what they read from memory, and of that what is there for them alone.
  int64_t bytes = 0, own = 0;
  bool isCostly = false;
  /// Of the value itself.
  int64_t elements;

  explicit Making(Operation *op) : elements(numElements(op)) {}

  /// Down to what is in memory: what others read, too, and what is no work for
  /// an element.
  void collect(Operation *op, size_t depth = 1) {
    isTooLarge |= depth > mostOps || ops.size() > mostOps;
    if (isTooLarge || ops.contains(op))
      return;
    isCostly |= codegen::isCostly(op);
    for (Value operand : op->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source || !isCheap(source) || !isFor(source, op) || isFew(source)) {
        bytes += bytesOf(operand);
        if (!isInMemoryForOthers(operand))
          own += bytesOf(operand);
        continue;
      }
      int64_t before = bytes;
      collect(source, depth + 1);
      // Of what a view is a part of, only that part is read.
      if (isViewOp(source))
        bytes = std::min(bytes, before + bytesOf(operand));
    }
    ops.insert(op);
  }

  /// `op` alone, which reads its operand from memory.
  static Making of(CastOp op) {
    Making making(op);
    making.ops.insert(op);
    making.bytes = bytesOf(op.getOperand());
    if (!isInMemoryForOthers(op.getOperand()))
      making.own = making.bytes;
    return making;
  }

  /// Whether it is a number for each channel, say, of what is as large as all
  /// images: made once, it is in a cache for all. A single one is no kernel's
  /// work.
  bool isFew(Operation *source) const {
    constexpr int64_t many = 64;
    int64_t few = numElements(source);
    return !isFree(source) &&
           isa<FloatType>(elementType(source->getResult(0))) && few > 1 &&
           few * many <= elements;
  }

  /// Whether nobody else wants it, but for an extreme that is found on the way.
  static bool isFor(Operation *source, Operation *reader) {
    return isFree(source) ||
           llvm::all_of(source->getUsers(), [&](Operation *user) {
             return user == reader || findExtreme(user);
           });
  }

  /// A kernel makes it for one other that reads it, and not for two: that is a
  /// guess, as there are no kernels yet.
  static bool isInMemoryForOthers(Value value) {
    Operation *source = value.getDefiningOp();
    if (!source || fusionKind(source) == FusionKind::None)
      return true;
    constexpr size_t readerAndMaker = 2;
    llvm::SmallPtrSet<Operation *, 4> readers(value.user_begin(),
                                              value.user_end());
    return readers.size() > readerAndMaker;
  }
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

  /// Whether `reader` is in a kernel, and all that reads it if it is a view:
  /// then it may work out `value` itself. A kernel with a scatter reads what is
  /// in memory.
  static bool isInKernel(Operation *reader, unsigned depth = 0) {
    constexpr unsigned deepest = 4;
    FusionKind kind = fusionKind(reader);
    if (kind == FusionKind::None || kind == FusionKind::Window ||
        depth > deepest)
      return false;
    return !isFree(reader) ||
           llvm::all_of(reader->getUsers(), [&](Operation *user) {
             return isInKernel(user, depth + 1);
           });
  }

  /// Whether less goes to and from memory. Where each reader reads about as
  /// much as before, it is not written at least, if nobody wants it in memory.
  static bool isWorthIt(const Making &making, int64_t bytes, bool isInMemory) {
    constexpr int64_t few = 16;
    return making.bytes < bytes ||
           (!isInMemory && making.bytes <= bytes + bytes / few &&
            making.own <= bytes / few);
  }

  /// Whether each of many readers wants a part of its own: of what all steps of
  /// an LSTM begin with. In memory a part is an address, and steps have a kernel
  /// in common; worked out in each, it is a number in its code.
  static bool isOfManyParts(Value value) {
    constexpr int64_t fewParts = 4;
    return llvm::count_if(value.getUsers(), llvm::IsaPred<SliceOp>) > fewParts;
  }

  /// All kernels' readers but the first get one of their own.
  static void giveToReaders(Operation *op) {
    // A number or a few are made once, and every kernel finds them in a cache.
    constexpr int64_t leastBytes = 1 << 10;
    Value value = op->getResult(0);
    // Slices of what is padded are parts that overlap, as windows do.
    bool isOfWindows = isa<PadOp>(op) &&
                       llvm::any_of(value.getUsers(), llvm::IsaPred<SliceOp>);
    if (!isCheap(op) || bytesOf(value) < leastBytes || isOfWindows ||
        isOfManyParts(value))
      return;
    Making making(op);
    making.collect(op);
    // What is widened is in memory then, and no longer what that gives.
    auto cast = dyn_cast<CastOp>(op);
    if (cast && (making.isTooLarge || making.ops.size() > Making::mostOps ||
                 making.bytes > bytesOf(cast.getOperand())))
      making = Making::of(cast);
    giveToReaders(value, making);
  }

  static void giveToReaders(Value value, const Making &making) {
    if (making.isTooLarge || making.ops.size() > Making::mostOps)
      return;
    llvm::SmallSetVector<Operation *, 4> found;
    bool isInMemory = false;
    for (Operation *reader : value.getUsers()) {
      if (!isInKernel(reader)) {
        isInMemory = true;
        continue;
      }
      // Where more elements read it, each would be worked out several times.
      bool isMany = tensorType(reader->getResult(0)).getNumElements() >
                    tensorType(value).getNumElements();
      if (!making.isCostly || !isMany)
        found.insert(reader);
      else
        isInMemory = true;
    }
    if (found.empty() || !isWorthIt(making, bytesOf(value), isInMemory))
      return;
    SmallVector<Operation *> readers = found.takeVector();
    llvm::sort(readers, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    // An extreme of rows is found by the kernel of the next one, if there is.
    SmallVector<Operation *> together;
    bool isFirst = true;
    for (Operation *reader : readers) {
      together.push_back(reader);
      if (findExtreme(reader) && reader != readers.back())
        continue;
      if (!std::exchange(isFirst, false)) {
        OpBuilder builder(together.front());
        IRMapping mapping;
        for (Operation *made : making.ops)
          builder.clone(*made, mapping);
        for (Operation *one : together)
          one->replaceUsesOfWith(value, mapping.lookup(value));
      }
      together.clear();
    }
  }
};

} // namespace
