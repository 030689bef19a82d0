//===- ChannelsLast.cpp - Images with their channels innermost ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "TransposedNorms.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ax::codegen {
#define GEN_PASS_DEF_CHANNELSLAST
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

using Permutation = SmallVector<int64_t>;

/// Result dimension i is operand dimension channelsLast(rank)[i].
Permutation channelsLast(int64_t rank) {
  Permutation permutation{0};
  for (int64_t i = 2; i < rank; ++i)
    permutation.push_back(i);
  permutation.push_back(1);
  return permutation;
}

Permutation inverse(ArrayRef<int64_t> permutation) {
  Permutation result(permutation.size());
  for (auto [i, from] : llvm::enumerate(permutation))
    result[from] = i;
  return result;
}

template <typename T>
SmallVector<T> permuted(ArrayRef<T> values, ArrayRef<int64_t> permutation) {
  SmallVector<T> result;
  for (int64_t from : permutation)
    result.push_back(values[from]);
  return result;
}

/// `value` is made by a transpose that `permutation` undoes.
bool isTransposeOf(Value value, ArrayRef<int64_t> permutation) {
  auto made = value.getDefiningOp<TransposeOp>();
  return made && llvm::equal(permuted(made.getPermutation(), permutation),
                             llvm::seq<int64_t>(0, permutation.size()));
}

/// A depthwise convolution whose signals are as good as they are, each by
/// itself: turning them would cost more than it.
bool keepsSignals(Operation *op, ArrayRef<int64_t> last) {
  auto conv = dyn_cast<ConvOp>(getLibraryCore(op));
  if (!conv || last.size() != 3 || isTransposeOf(op->getOperand(0), last))
    return false;
  RankedTensorType x = tensorType(conv.getX()), y = tensorType(conv);
  int64_t groups = conv.getGroups();
  auto library = dyn_cast<LibraryOp>(op);
  UnaryOp activation = library ? library.getActivation() : UnaryOp();
  return x.getElementType().isF32() && groups > 1 &&
         x.getDimSize(1) == groups && y.getDimSize(1) == groups &&
         conv.getStrides()[0] == 1 &&
         (!activation || activation.getKind() == UnaryKind::relu);
}

/// Whether cuDNN does the convolution fastest with its channels innermost: it
/// does those of 16 bits so, and turns those of f32 round, which need no tensor
/// cores.
bool isNarrow(Operation *op) {
  return tensorType(op->getOperand(0)).getElementTypeBitWidth() == 16;
}

class Converter {
public:
  Converter(Block &block, bool cudnn)
      : block(block), cudnn(cudnn),
        builder(UnknownLoc::get(block.front().getContext()),
                block.front().getContext()) {}

  void run() {
    bool any = false;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      builder.setLoc(op.getLoc());
      if (isa_and_present<ConvOp, ConvTransposeOp, ConvWeightGradientOp, PoolOp,
                          MaxPoolGradientOp>(getLibraryCore(&op))) {
        convert(&op);
        any = true;
      } else if (any) {
        if (auto reduce = dyn_cast<ReduceOp>(op))
          sinkReduce(reduce);
        else if (auto reshape = dyn_cast<ReshapeOp>(op))
          sinkReshape(reshape);
        else if (auto turned = dyn_cast<TransposeOp>(op))
          skipTransposes(turned);
        else if (isa<LayerNormOp, RMSNormOp>(op))
          normalizeInMemoryOrder(&op);
        else
          sink(&op);
      }
    }
  }

private:
  /// `value` transposed; looks through a transpose that makes it.
  Value transpose(Value value, ArrayRef<int64_t> permutation) {
    Permutation whole(permutation);
    if (auto made = value.getDefiningOp<TransposeOp>()) {
      value = made.getOperand();
      whole = permuted(made.getPermutation(), permutation);
    }
    if (llvm::equal(whole, llvm::seq<int64_t>(0, whole.size())))
      return value;
    RankedTensorType type = tensorType(value);
    return TransposeOp::create(
        builder, type.clone(permuted(type.getShape(), whole)), value, whole);
  }

  /// Who reads what is turned twice, as a pool reads the image that a
  /// convolution gave, reads what is there.
  void skipTransposes(TransposeOp turned) {
    if (!turned.getOperand().getDefiningOp<TransposeOp>())
      return;
    builder.setInsertionPoint(turned);
    turned.getResult().replaceAllUsesWith(
        transpose(turned.getOperand(), turned.getPermutation()));
    turned.erase();
  }

  void setInMemory(OpOperand &x, ArrayRef<int64_t> last) {
    Value inMemory = transpose(x.get(), last);
    x.set(TransposeOp::create(builder, x.get().getType(), inMemory,
                              inverse(last)));
  }

  void convert(Operation *op) {
    Operation *core = getLibraryCore(op);
    RankedTensorType type = tensorType(op->getResult(0));
    if (type.getRank() < 3)
      return;
    bool isConvolution =
        isa<ConvOp, ConvTransposeOp, ConvWeightGradientOp>(core);
    if (cudnn && isConvolution && !isNarrow(op))
      return;
    Permutation last = channelsLast(type.getRank()), back = inverse(last);
    if (keepsSignals(op, last))
      return;
    builder.setInsertionPoint(op);
    setInMemory(op->getOpOperand(0), last);
    // Of a convolution it is the weights, which only cuDNN has in any order.
    if (isa<ConvWeightGradientOp, MaxPoolGradientOp>(core) ||
        (cudnn && isConvolution))
      setInMemory(op->getOpOperand(1), last);
    if (isa<ConvWeightGradientOp>(core) && !cudnn)
      return;
    LibraryOp library = wrapInLibrary(op);
    if (BinaryOp residual = library.getResidual()) {
      OpOperand &operand = library.getResidualOperand();
      unsigned number = operand.getOperandNumber();
      builder.setInsertionPoint(library);
      setLibraryOperand(library, number, transpose(operand.get(), last));
      builder.setInsertionPoint(core);
      residual.getRhsMutable().assign(TransposeOp::create(
          builder, type, library.getBody().getArgument(number), back));
    }
    builder.setInsertionPoint(library.getYield());
    library.setYielded(TransposeOp::create(
        builder, type.clone(permuted(type.getShape(), last)),
        library.getYield()->getOperand(0), last));
    replaceByTransposed(library, type, back);
  }

  /// Users of `op` see its result through a transpose to `type`.
  void replaceByTransposed(Operation *op, RankedTensorType type,
                           ArrayRef<int64_t> permutation) {
    builder.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    auto back = TransposeOp::create(builder, type, result, permutation);
    result.replaceAllUsesExcept(back, back);
  }

  /// The transpose that makes the largest operand; null when there is none.
  TransposeOp sunkTranspose(Operation *op) {
    TransposeOp found;
    int64_t elements = tensorType(op->getResult(0)).getNumElements();
    for (Value operand : op->getOperands()) {
      RankedTensorType type = tensorType(operand);
      if (type.getRank() == 0 ||
          (!changesShape(op) && type.getNumElements() != elements))
        continue; // Broadcast: small.
      auto made = operand.getDefiningOp<TransposeOp>();
      if (!made || (found && found.getPermutation() != made.getPermutation()))
        return {};
      found = made;
    }
    return found;
  }

  /// Whether attributes of `op` count dimensions, which change with their
  /// order.
  static bool changesShape(Operation *op) {
    return isa<ConcatOp, SliceOp, PadOp, LocalCollectiveOpInterface>(op);
  }

  void sink(Operation *op) {
    if (!isElementwise(op) && !changesShape(op))
      return;
    // Who waits for it knows what it reads.
    if (op->hasAttr("start") || op->getNumResults() != 1)
      return;
    TransposeOp above = sunkTranspose(op);
    RankedTensorType type = tensorType(op->getResult(0));
    if (!above || tensorType(above).getRank() != type.getRank())
      return;
    Permutation down(above.getPermutation()), up = inverse(down);
    builder.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands()) {
      RankedTensorType from = tensorType(operand.get());
      if (from.getRank() == 0)
        continue;
      Value value = operand.get();
      if (from.getRank() < type.getRank()) {
        SmallVector<int64_t> shape(type.getRank() - from.getRank(), 1);
        llvm::append_range(shape, from.getShape());
        value = ReshapeOp::create(builder, from.clone(shape), value);
      }
      operand.set(transpose(value, up));
    }
    if (auto concat = dyn_cast<ConcatOp>(op)) {
      concat.setDim(down[concat.getDim()]);
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      slice.setStarts(permuted(slice.getStarts(), up));
      slice.setSteps(permuted(slice.getSteps(), up));
    } else if (auto pad = dyn_cast<PadOp>(op)) {
      pad.setLow(permuted(pad.getLow(), up));
      pad.setHigh(permuted(pad.getHigh(), up));
    }
    if (auto gather = dyn_cast<LocalAllGatherOp>(op)) {
      gather.setDims(down[gather.getDims()[0]]);
    } else if (auto scatter = dyn_cast<LocalReduceScatterOp>(op)) {
      scatter.setDims(down[scatter.getDims()[0]]);
    } else if (auto swap = dyn_cast<LocalAllToAllOp>(op)) {
      swap.setGatherDim(down[swap.getGatherDim()]);
      swap.setScatterDim(down[swap.getScatterDim()]);
    }
    op->getResult(0).setType(type.clone(permuted(type.getShape(), up)));
    replaceByTransposed(op, type, down);
  }

  /// Turns a reduction over the same elements where they are, if what remains
  /// keeps its order or can be turned, being small.
  void sinkReduce(ReduceOp reduce) {
    auto above = reduce.getOperand().getDefiningOp<TransposeOp>();
    if (!above)
      return;
    ArrayRef<int64_t> down = above.getPermutation();
    SmallVector<int64_t> dims, kept;
    for (auto [i, from] : llvm::enumerate(down)) {
      bool isReduced =
          llvm::is_contained(reduce.getDims(), static_cast<int64_t>(i));
      (isReduced ? dims : kept).push_back(from);
    }
    if (!reduce.getKeepDims() && !llvm::is_sorted(kept))
      return;
    RankedTensorType type = tensorType(reduce.getResult());
    Permutation back(down);
    llvm::sort(dims);
    reduce.setOperand(above.getOperand());
    reduce.setDims(dims);
    if (!reduce.getKeepDims())
      return;
    reduce.getResult().setType(
        type.clone(permuted(type.getShape(), inverse(back))));
    replaceByTransposed(reduce, type, back);
  }

  /// Cuts, or joins, batches of images in the order of memory: what is
  /// transposed are dimensions behind those that change.
  void sinkReshape(ReshapeOp reshape) {
    auto above = reshape.getOperand().getDefiningOp<TransposeOp>();
    if (!above)
      return;
    ArrayRef<int64_t> down = above.getPermutation();
    size_t still = 0;
    while (still < down.size() && down[still] == static_cast<int64_t>(still))
      ++still;
    size_t moved = down.size() - still;
    RankedTensorType type = tensorType(reshape.getResult());
    auto rank = static_cast<size_t>(type.getRank());
    if (rank < moved || type.getShape().take_back(moved) !=
                            tensorType(above).getShape().take_back(moved))
      return;
    auto changed = static_cast<int64_t>(rank - moved);
    Permutation permutation = llvm::to_vector(llvm::seq<int64_t>(0, changed));
    for (int64_t from : down.drop_front(still))
      permutation.push_back(from - static_cast<int64_t>(still) + changed);
    reshape.setOperand(above.getOperand());
    reshape.getResult().setType(
        type.clone(permuted(type.getShape(), inverse(permutation))));
    replaceByTransposed(reshape, type, permutation);
  }

  Block &block;
  bool cudnn;
  ImplicitLocOpBuilder builder;
};

struct ChannelsLastPass : codegen::impl::ChannelsLastBase<ChannelsLastPass> {
  using ChannelsLastBase::ChannelsLastBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      Converter(stage.getBlock(), cudnn).run();
    });
  }
};

} // namespace
