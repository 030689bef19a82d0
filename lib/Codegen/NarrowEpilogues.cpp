//===- NarrowEpilogues.cpp - Sums with biases in the product's type -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: mixed precision multiplies in bf16, and all else is f32,
//
//   y = linear x, w : bf16     wide = cast y to f32     sum = wide + b
//   g = gelu_tanh sum          h = cast g to bf16
//
// for which a kernel reads y and writes h. As
//
//   s = y + (cast b to bf16) : bf16     h = gelu_tanh s : bf16
//
// all of it is an epilogue, which has y in f32 until it writes s or h. A sum
// that somebody reads in f32 stays: it may be of numbers that the narrow type
// lacks, as where -1e9 is added to logits, or of a bias that is subtracted
// again. So each reader has to round what it makes of the sum: by a cast,
// whatever moves it before that, or behind an activation. That of the gradient
// reads the sum in f32 where there is such an activation, and is rounded for
// its own products.
//
// On a processor, attention is of f32: what no kernel reads is f32 from the
// product on, with the bias as its epilogue. Its library adds up in bf16 behind
// convolutions, too, also what one block of a network hands to the next, and
// does so here where nothing trains:
//
//   sum = wide + b    z = sum + (cast r to f32)    cast z to bf16
//
// becomes (y + b') + r, in bf16, for an r of bf16.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Library.h"
#include "MergeEqual.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/Tensors.h"

namespace ax::codegen {
#define GEN_PASS_DEF_NARROWEPILOGUES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static bool isNarrow(Value value) {
  Type type = elementType(value);
  return type.isBF16() || type.isF16();
}

/// What alone reads `value`, if that is such an operation.
template <typename OpTy>
static OpTy onlyReader(Value value) {
  return value.hasOneUse() ? dyn_cast<OpTy>(*value.user_begin()) : OpTy();
}

namespace {

/// Who reads a sum that may be made in a narrow type.
class Readers {
public:
  explicit Readers(Type narrow) : narrow(narrow) {}

  /// Whether all that is made of equal sums is rounded to that type.
  bool areRounding(ArrayRef<BinaryOp> sums) {
    SmallVector<Operation *> others;
    bool isActivated = false;
    for (BinaryOp sum : sums)
      if (!sortReaders(sum, others, isActivated))
        return false;
    return others.empty() ||
           (isActivated && llvm::all_of(others, [&](Operation *op) {
              return endsRounded(op);
            }));
  }
  /// What `wide` was widened from; null where it is something else.
  Value narrowOf(Value wide) const {
    auto cast = wide.getDefiningOp<CastOp>();
    return cast && elementType(cast.getOperand()) == narrow ? cast.getOperand()
                                                            : Value();
  }
  bool isRounding(Operation *op) const {
    return isa<CastOp>(op) && elementType(op->getResult(0)) == narrow;
  }
  bool isRounded(UnaryOp activation) const {
    return !activation.use_empty() &&
           activation.getType() == activation.getOperand().getType() &&
           llvm::all_of(activation->getUsers(),
                        [&](Operation *user) { return isRounding(user); });
  }

private:
  static constexpr size_t mostOps = 64;

  /// Finds those that neither round nor move nor are such activations. False
  /// where nothing reads it, or too many do.
  bool sortReaders(Value sum, SmallVectorImpl<Operation *> &others,
                   bool &isActivated) const {
    SmallVector<Value> open{sum};
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].use_empty() || open.size() > mostOps)
        return false;
      for (Operation *user : open[i].getUsers()) {
        auto activation = dyn_cast<UnaryOp>(user);
        if (isView(user))
          open.push_back(user->getResult(0));
        else if (activation && isRounded(activation))
          isActivated = true;
        else if (!isRounding(user))
          others.push_back(user);
      }
    }
    return true;
  }

  /// Whether what elementwise operations make of it is rounded, whoever else
  /// reads that: a bias's gradient does.
  bool endsRounded(Operation *first) {
    SmallVector<Operation *> open{first};
    while (!open.empty()) {
      Operation *op = open.pop_back_val();
      if (isRounding(op) || !seen.insert(op).second)
        continue;
      if (!isa<BinaryOp, UnaryOp, SelectOp, CompareOp>(op) || op->use_empty() ||
          seen.size() > mostOps)
        return false;
      if (llvm::none_of(op->getUsers(),
                        [&](Operation *user) { return isRounding(user); }))
        llvm::append_range(open, op->getUsers());
    }
    return true;
  }

  Type narrow;
  /// Those of elementwise operations that end rounded.
  llvm::SmallDenseSet<Operation *> seen;
};

/// Whether libraries alone read it.
bool isForLibraries(Value value) {
  return !value.use_empty() &&
         llvm::all_of(value.getUsers(), [](Operation *user) {
           return isView(user) ? isForLibraries(user->getResult(0))
                               : isLibraryOp(user);
         });
}

struct NarrowEpiloguesPass
    : codegen::impl::NarrowEpiloguesBase<NarrowEpiloguesPass> {
  using NarrowEpiloguesBase::NarrowEpiloguesBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      // Who computes again has a cast of its own.
      mergeEqual(stage);
      // Of gradients some read a sum that others make again: it is to be the
      // same.
      bool takesConvolutions = !gpu && !trains(stage);
      for (Operation &op : stage.getBlock())
        if (isa<LinearOp>(op) ? isNarrow(op.getResult(0))
                              : takesConvolutions && isa<ConvOp>(op) &&
                                    elementType(op.getResult(0)).isBF16())
          narrow(&op);
      removeUnused(stage.getBlock());
    });
  }

  void narrow(Operation *product) const {
    Value made = product->getResult(0);
    auto widened = onlyReader<CastOp>(made);
    if (!widened || !elementType(widened.getResult()).isF32())
      return;
    Value wide = widened.getResult();
    Readers readers(elementType(made));
    SmallVector<BinaryOp> sums = findSums(product, wide);
    if (!gpu && isa<LinearOp>(product) &&
        isForLibraries(sums.size() == 1 ? sums.front() : wide)) {
      made.setType(tensorType(wide));
      widened.replaceAllUsesWith(made);
      return;
    }
    bool addsBlock = isa<ConvOp>(product) && sums.size() == 1 &&
                     findBlockSum(sums.front(), readers);
    if (!sums.empty() && (addsBlock || readers.areRounding(sums)))
      wide = addNarrow(product, sums, biasOf(product, sums.front(), wide));
    narrowActivations(wide, readers);
    if (isa<ConvOp>(product))
      addBlocks(wide, readers);
  }

  /// What alone reads `wide`, adds what is narrow, or will be, and is rounded.
  static BinaryOp findBlockSum(Value wide, const Readers &readers) {
    auto sum = onlyReader<BinaryOp>(wide);
    if (!sum || sum.getKind() != BinaryKind::add || sum.use_empty())
      return {};
    Value other = sum->getOperand(sum.getLhs() == wide);
    bool fits = other != wide && other.getType() == wide.getType() &&
                (readers.narrowOf(other) || comesToBeNarrow(other, readers)) &&
                llvm::all_of(sum->getUsers(), [&](Operation *user) {
                  return readers.isRounding(user);
                });
    return fits ? sum : BinaryOp();
  }

  /// Whether `value` is the sum of another convolution, and of its bias.
  static bool comesToBeNarrow(Value value, const Readers &readers) {
    auto sum = value.getDefiningOp<BinaryOp>();
    return sum && llvm::any_of(sum->getOperands(), [&](Value wide) {
             Value made = readers.narrowOf(wide);
             auto conv = made ? made.getDefiningOp<ConvOp>() : ConvOp();
             return conv && made.hasOneUse() && wide.hasOneUse() &&
                    biasOf(conv, sum, wide);
           });
  }

  /// Both are widened: they are added as they are.
  static void addBlocks(Value wide, const Readers &readers) {
    BinaryOp sum = findBlockSum(wide, readers);
    Value lhs = sum ? readers.narrowOf(sum.getLhs()) : Value();
    Value rhs = sum ? readers.narrowOf(sum.getRhs()) : Value();
    if (!lhs || !rhs)
      return;
    OpBuilder builder(sum);
    auto added = BinaryOp::create(builder, sum.getLoc(), lhs.getType(),
                                  BinaryKind::add, lhs, rhs);
    // One that is computed again stays so.
    added->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
    for (Operation *rounding : sum->getUsers())
      rounding->getResult(0).replaceAllUsesWith(added);
  }

  /// All that read `wide`, in order, if each adds the same bias: where
  /// something is computed again, there are several.
  static SmallVector<BinaryOp> findSums(Operation *product, Value wide) {
    SmallVector<BinaryOp> sums;
    Value bias;
    for (Operation *user : wide.getUsers()) {
      auto sum = dyn_cast<BinaryOp>(user);
      Value added = sum ? biasOf(product, sum, wide) : Value();
      if (!added || (bias && added != bias))
        return {};
      bias = added;
      sums.push_back(sum);
    }
    llvm::sort(sums,
               [](BinaryOp a, BinaryOp b) { return a->isBeforeInBlock(b); });
    return sums;
  }

  /// A number for each column, or channel; null where `sum` adds something
  /// else.
  static Value biasOf(Operation *product, BinaryOp sum, Value wide) {
    Value added = sum->getOperand(sum.getLhs() == wide);
    int64_t dim = cast<LayerOpInterface>(product).getFeatureDim();
    SmallVector<int64_t> shape(shapeOf(wide).drop_front(dim));
    std::fill(shape.begin() + 1, shape.end(), 1);
    bool fits = sum.getKind() == BinaryKind::add &&
                shapeOf(added) == ArrayRef<int64_t>(shape) &&
                tensorType(wide).getRank() > 1;
    return fits ? added : Value();
  }

  /// Returns the sum that is made in the product's type, once, as f32.
  static Value addNarrow(Operation *product, ArrayRef<BinaryOp> sums,
                         Value bias) {
    // What there is from the beginning is rounded there, all biases together.
    BinaryOp sum = sums.front();
    OpBuilder builder(sum);
    if (isa<BlockArgument>(bias))
      builder.setInsertionPointToStart(sum->getBlock());
    Location loc = sum.getLoc();
    RankedTensorType type = tensorType(product->getResult(0));
    auto rounded = CastOp::create(
        builder, loc, tensorType(bias).clone(type.getElementType()), bias);
    builder.setInsertionPoint(sum);
    auto added = BinaryOp::create(builder, loc, type, BinaryKind::add,
                                  product->getResult(0), rounded);
    auto wide = CastOp::create(builder, loc, sum.getType(), added);
    for (BinaryOp replaced : sums)
      replaced.getResult().replaceAllUsesWith(wide);
    return wide;
  }

  /// Those that are only read when they are rounded.
  static void narrowActivations(Value wide, const Readers &readers) {
    Value narrow = wide.getDefiningOp<CastOp>().getOperand();
    for (Operation *user : llvm::make_early_inc_range(wide.getUsers())) {
      auto activation = dyn_cast<UnaryOp>(user);
      if (!activation || !readers.isRounded(activation))
        continue;
      OpBuilder builder(activation);
      auto rounded =
          UnaryOp::create(builder, activation.getLoc(), narrow.getType(),
                          activation.getKind(), narrow);
      // One that is computed again stays so.
      rounded->setDiscardableAttrs(activation->getDiscardableAttrDictionary());
      for (Operation *reader :
           llvm::make_early_inc_range(activation->getUsers()))
        reader->getResult(0).replaceAllUsesWith(rounded);
    }
  }
};

} // namespace
