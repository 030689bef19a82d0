//===- ComposePools.cpp - Pools of reads and reductions -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small windows are unrolled (SmallWindows.h). Of others, a window's maximum is
// a reduction over its places, each of which is read where it is in the image;
// a gradient is a sum over the windows that an element may be in. Both are
// pairs of an element of the result and something that it reads, which are
// worked out one by one and never in memory.
//
// An example, in one dimension: windows of 3 elements at a distance of 2 with a
// pad of 1. Window o reads the places 2 o - 1 + k for k in 0 .. 2. Element p is
// in the windows (p + 1) / 2 - 1 + j for j in 0 .. 1, or in one of them.
//
// Next to convolutions whose images have their channels innermost, pools have
// them so, too: threads next to each other read numbers next to each other.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "MergeEqual.h"
#include "SmallWindows.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/PoolSizes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEPOOLS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

using Dims = ArrayRef<int64_t>;

/// Places are numbers of 32 bits, of which a card divides many at once.
constexpr int64_t mostPlaces = std::numeric_limits<int32_t>::max();

int64_t placesOf(Value images) {
  return llvm::product_of(shapeOf(images).drop_front(2));
}

/// Each element of a result of [rows, own..., columns...] with all that it may
/// read, as tensors of [rows, own..., others..., columns...], where columns are
/// channels that lie innermost, or nothing. All are of that shape, indices too:
/// what is smaller would be a kernel's own result, in memory.
class Pairs {
public:
  Pairs(TensorBuilder &t, int64_t rows, Dims own, Dims others, Dims columns)
      : t(t), numOwn(own.size()), numOthers(others.size()), columns(columns) {
    shape.push_back(rows);
    llvm::append_range(shape, own);
    llvm::append_range(shape, others);
    llvm::append_range(shape, columns);
  }

  Value own(size_t i) { return number(1 + i); }
  Value other(size_t i) { return number(1 + numOwn + i); }

  /// Where what is read lies in its next dimension, of `size`; the index is in
  /// [first, last], and outside of that dimension nothing is read.
  void addIndex(Value index, int64_t size, int64_t first, int64_t last) {
    if (first < 0)
      require(t.compare(CompareKind::ge, index, 0));
    if (last >= size)
      require(t.compare(CompareKind::lt, index, static_cast<double>(size)));
    place = append(place, index, size);
  }
  void require(Value condition) {
    isThere = isThere ? t.binary(BinaryKind::logical_and, isThere, condition)
                      : condition;
  }
  /// The place in row-major order of what is read; of no meaning where nothing
  /// is.
  Value getPlace() const { return place; }
  Value getOwnPlace() {
    Value at;
    for (size_t i = 0; i < numOwn; ++i)
      at = append(at, own(i), shape[1 + i]);
    return at;
  }

  /// What is read of images, or of other tensors of as many rows.
  Value read(Value images) {
    Value from = inRows(images), at = inRows(orElse(place, 0));
    return t.reshape(GatherElementsOp::create(t.b, from, at, /*axis=*/1),
                     shape);
  }
  /// `values` where something is read, `number` elsewhere.
  Value orElse(Value values, double number) {
    return isThere ? t.select(isThere, values, number) : values;
  }
  Value reduce(ReduceOpKind kind, Value values, bool keepDims = false) {
    return t.reduce(kind, values, dimsFrom(1 + numOwn, 1 + numOwn + numOthers),
                    keepDims);
  }

private:
  /// [rows, places, columns...]
  Value inRows(Value x) {
    int64_t apart = shape[0] * llvm::product_of(columns);
    SmallVector<int64_t> flat{shape[0], tensorType(x).getNumElements() / apart};
    llvm::append_range(flat, columns);
    return t.reshape(x, flat);
  }
  Value number(int64_t dim) {
    return IotaOp::create(t.b, RankedTensorType::get(shape, t.b.getI32Type()),
                          dim);
  }
  Value append(Value at, Value index, int64_t size) {
    return at ? t.add(t.mul(at, static_cast<double>(size)), index) : index;
  }

  TensorBuilder &t;
  size_t numOwn, numOthers;
  SmallVector<int64_t> columns, shape;
  Value place, isThere;
};

class PoolComposer {
public:
  /// `images` and `windows` have the shapes of what windows read, and of one
  /// element for each window.
  template <typename Op>
  PoolComposer(Op op, Value images, Value windows, Dims kernel,
               bool channelsLast)
      : builder(op), t(op.getLoc(), builder), rows(shapeOf(images)[0]),
        of{llvm::to_vector(shapeOf(images).drop_front(2)),
           llvm::to_vector(shapeOf(windows).drop_front(2)),
           llvm::to_vector(kernel),
           llvm::to_vector(op.getStrides()),
           llvm::to_vector(op.getPads().take_front(kernel.size())),
           llvm::to_vector(op.getDilations())} {
    int64_t channels = shapeOf(images)[1];
    if (channelsLast)
      columns.push_back(channels);
    else
      rows *= channels;
  }

  /// Which elements are the largest, where gradients of small windows go to
  /// them.
  Value pool(PoolOp op, bool hasGradient) {
    Value images = laid(op.getX()), numbers, y;
    bool isMax = op.getKind() == PoolKind::max;
    if (isMax && hasGradient && SmallWindows::areSmall(of.kernel, of.strides))
      std::tie(numbers, y) = SmallWindows(t, of).findLargest(images);
    else
      y = reduceWindows(images, isMax);
    if (op.getKind() == PoolKind::avg)
      y = t.div(y, ofWindows(poolSizes(op, t, elementType(y))));
    replace(op, y);
    return numbers;
  }

  /// Of small windows an element-wise kernel; `numbers`: which elements are the
  /// largest, if the pool has found that. Else two reductions: which element
  /// has a window's gradient, and what an element gets of its windows.
  void maxGradient(MaxPoolGradientOp op, Value numbers) {
    if (SmallWindows::areSmall(of.kernel, of.strides)) {
      SmallWindows small(t, of);
      if (!numbers) {
        Value largest;
        std::tie(numbers, largest) = small.findLargest(laid(op.getX()));
        if (Operation *made = largest.getDefiningOp(); made->use_empty())
          made->erase();
      }
      return replace(op, small.maxGradient(numbers, laid(op.getGradient())));
    }
    Value winners = winnersIn(laid(op.getX()));
    Pairs pairs = windowsOfElements();
    Value isWinner =
        t.compare(CompareKind::eq, pairs.read(winners), pairs.getOwnPlace());
    Value given =
        t.select(isWinner, t.wide(pairs.read(laid(op.getGradient()))), 0.0);
    replace(op, pairs.reduce(ReduceOpKind::sum, pairs.orElse(given, 0)));
  }

  /// What each window has is given to all elements that it reads, times
  /// `factor`.
  void spread(ConvTransposeOp op, double factor) {
    if (SmallWindows::areSmall(of.kernel, of.strides))
      return replace(
          op, t.mul(SmallWindows(t, of).sumGradient(laid(op.getX())), factor));
    Pairs pairs = windowsOfElements();
    for (size_t i = 0; i < of.kernel.size(); ++i) {
      Value first =
          t.mul(windowIndex(pairs, i), static_cast<double>(of.strides[i]));
      Value offset =
          t.sub(t.add(pairs.own(i), static_cast<double>(of.low[i])), first);
      pairs.require(t.compare(CompareKind::ge, offset, 0));
      pairs.require(
          t.compare(CompareKind::lt, offset, static_cast<double>(of.reach(i))));
      if (of.dilations[i] > 1) {
        auto step = static_cast<double>(of.dilations[i]);
        Value rest =
            t.binary(BinaryKind::floor_mod, offset, t.number(offset, step));
        pairs.require(t.compare(CompareKind::eq, rest, 0));
      }
    }
    Value given = pairs.orElse(t.wide(pairs.read(laid(op.getX()))), 0);
    replace(op, t.mul(pairs.reduce(ReduceOpKind::sum, given), factor));
  }

private:
  /// The largest of each window's elements, or their sum.
  Value reduceWindows(Value images, bool isMax) {
    if (SmallWindows::areSmall(of.kernel, of.strides)) {
      SmallWindows small(t, of);
      return isMax ? small.max(images) : small.sum(images);
    }
    Pairs pairs = elementsOfWindows();
    Value read = pairs.read(images);
    if (!isMax)
      read = t.wide(read);
    double nothing = isMax ? lowestOf(elementType(read)) : 0;
    return pairs.reduce(isMax ? ReduceOpKind::max : ReduceOpKind::sum,
                        pairs.orElse(read, nothing));
  }

  /// Of how many windows, one behind another, an element may be.
  int64_t numWindows(size_t i) const {
    return std::min<int64_t>(of.window[i],
                             llvm::divideCeil(of.reach(i), of.strides[i]));
  }

  Pairs elementsOfWindows() {
    Pairs pairs(t, rows, of.window, of.kernel, columns);
    for (size_t i = 0; i < of.kernel.size(); ++i) {
      Value first = t.mul(pairs.own(i), static_cast<double>(of.strides[i]));
      Value inside =
          t.mul(pairs.other(i), static_cast<double>(of.dilations[i]));
      Value index =
          t.add(t.add(first, inside), static_cast<double>(-of.low[i]));
      int64_t last =
          (of.window[i] - 1) * of.strides[i] + of.reach(i) - 1 - of.low[i];
      pairs.addIndex(index, of.image[i], -of.low[i], last);
    }
    return pairs;
  }

  Pairs windowsOfElements() {
    SmallVector<int64_t> counts;
    for (size_t i = 0; i < of.kernel.size(); ++i)
      counts.push_back(numWindows(i));
    Pairs pairs(t, rows, of.image, counts, columns);
    for (size_t i = 0; i < of.kernel.size(); ++i) {
      Value index = windowIndex(pairs, i);
      if (counts[i] == of.window[i])
        pairs.addIndex(index, of.window[i], 0, of.window[i] - 1);
      else
        pairs.addIndex(index, of.window[i],
                       of.low[i] / of.strides[i] - counts[i] + 1,
                       (of.image[i] - 1 + of.low[i]) / of.strides[i]);
    }
    return pairs;
  }
  Value windowIndex(Pairs &pairs, size_t i) {
    if (numWindows(i) == of.window[i])
      return pairs.other(i);
    Value place = t.add(pairs.own(i), static_cast<double>(of.low[i]));
    Value last =
        t.div(place, t.number(place, static_cast<double>(of.strides[i])));
    return t.add(t.add(last, static_cast<double>(1 - numWindows(i))),
                 pairs.other(i));
  }

  /// The place in the image that each window's gradient goes to: the first of
  /// its largest elements, or the last that is no number.
  Value winnersIn(Value images) {
    Pairs pairs = elementsOfWindows();
    Value read = pairs.read(images);
    Value masked = pairs.orElse(read, lowestOf(elementType(read)));
    Value best = pairs.reduce(ReduceOpKind::max, masked, /*keepDims=*/true);
    Value isNoNumber = t.unary(UnaryKind::is_nan, masked);
    Value isBest = t.binary(BinaryKind::logical_or, isNoNumber,
                            t.compare(CompareKind::eq, masked, best));
    // The last of them has the least of these, which are negative.
    Value place = pairs.getPlace();
    Value key = t.select(isNoNumber, before(place), place);
    constexpr double none = mostPlaces;
    Value first = pairs.reduce(ReduceOpKind::min,
                               pairs.orElse(t.select(isBest, key, none), none));
    return t.select(t.compare(CompareKind::lt, first, 0), before(first), first);
  }
  /// -1 - x, which undoes itself.
  Value before(Value x) { return t.sub(t.number(x, -1), x); }

  /// Images, or what is made of them, as [rows, spatial..., columns...].
  Value laid(Value images) {
    SmallVector<int64_t> shape{rows}, last{0};
    llvm::append_range(shape, shapeOf(images).drop_front(2));
    if (columns.empty())
      return t.reshape(images, shape);
    llvm::append_range(last, dimsFrom(2, of.rank() + 2));
    last.push_back(1);
    return t.transpose(images, last);
  }
  /// Numbers of windows, for all channels.
  Value ofWindows(Value numbers) {
    SmallVector<int64_t> shape(shapeOf(numbers));
    if (shape.empty() || columns.empty())
      return numbers;
    shape.push_back(1);
    return t.reshape(numbers, shape);
  }
  void replace(Operation *op, Value y) {
    Value result = op->getResult(0);
    SmallVector<int64_t> shape(shapeOf(result));
    if (!columns.empty()) {
      std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
      SmallVector<int64_t> first{0, static_cast<int64_t>(of.image.size()) + 1};
      llvm::append_range(first, dimsFrom(1, of.image.size() + 1));
      y = t.transpose(t.reshape(y, shape), first);
    } else {
      y = t.reshape(y, shape);
    }
    result.replaceAllUsesWith(t.cast(y, elementType(result)));
    op->erase();
  }

  OpBuilder builder;
  TensorBuilder t;
  int64_t rows;
  /// Channels, where they lie innermost.
  SmallVector<int64_t, 1> columns;
  PoolWindows of;
};

bool canCompose(Value images, Value windows) {
  auto isSome = [](Value value) {
    return tensorType(value).getNumElements() > 0;
  };
  return isSome(images) && isSome(windows) && placesOf(images) < mostPlaces &&
         placesOf(windows) < mostPlaces;
}

/// Which elements are the largest, of gradients whose pools were composed.
using Found = llvm::DenseMap<MaxPoolGradientOp, Value>;

bool isGradientOf(MaxPoolGradientOp gradient, PoolOp op) {
  return gradient.getKernel() == op.getKernel() &&
         gradient.getStrides() == op.getStrides() &&
         gradient.getPads() == op.getPads() &&
         gradient.getDilations() == op.getDilations() &&
         shapeOf(gradient.getGradient()) == shapeOf(op.getResult());
}

/// Gradients of this pool. Those of narrow numbers add up in f32, and read the
/// images as such.
SmallVector<MaxPoolGradientOp> gradientsOf(PoolOp op) {
  SmallVector<Value> images{op.getX()};
  for (Operation *user : op.getX().getUsers())
    if (isa<CastOp>(user) && isNarrowFloat(elementType(op.getX())) &&
        elementType(user->getResult(0)).isF32())
      images.push_back(user->getResult(0));
  SmallVector<MaxPoolGradientOp> found;
  for (Value image : images)
    for (Operation *user : image.getUsers())
      if (auto gradient = dyn_cast<MaxPoolGradientOp>(user);
          gradient && gradient.getX() == image && isGradientOf(gradient, op))
        found.push_back(gradient);
  return found;
}

void compose(PoolOp op, bool channelsLast, Found &found) {
  if (!canCompose(op.getX(), op.getResult()) ||
      elementType(op.getX()).isInteger(1))
    return;
  auto gradients = gradientsOf(op);
  PoolComposer composer(op, op.getX(), op.getResult(), op.getKernel(),
                        channelsLast);
  if (Value numbers = composer.pool(op, !gradients.empty()))
    for (MaxPoolGradientOp gradient : gradients)
      found[gradient] = numbers;
}

/// The pool itself reads the same of its images, which would be in memory from
/// there to here, as large as all windows.
void compose(MaxPoolGradientOp op, bool channelsLast, Found &found) {
  if (!canCompose(op.getX(), op.getGradient()))
    return;
  Operation *before = op->getPrevNode(), *behind = op->getNextNode();
  // What is reduced twice is in memory where columns are reduced.
  bool isLast =
      channelsLast && SmallWindows::areSmall(op.getKernel(), op.getStrides());
  PoolComposer(op, op.getX(), op.getGradient(), op.getKernel(), isLast)
      .maxGradient(op, found.lookup(op));
  for (Operation *made = before ? before->getNextNode()
                                : &behind->getBlock()->front();
       made != behind; made = made->getNextNode())
    made->setAttr(kApart, OpBuilder(made).getI64IntegerAttr(0));
}

/// What the gradient of a mean is made of: a transposed convolution of each
/// channel by itself, all of whose weights are one number.
void compose(ConvTransposeOp op, bool channelsLast, Found &) {
  Dims weights = shapeOf(op.getW());
  auto constant = op.getW().getDefiningOp<ConstantOp>();
  auto values = constant ? dyn_cast<SplatElementsAttr>(constant.getValue())
                         : SplatElementsAttr();
  if (!values || weights[0] != static_cast<int64_t>(op.getGroups()) ||
      weights[1] != 1 || !canCompose(op.getResult(), op.getX()))
    return;
  PoolComposer(op, op.getResult(), op.getX(), weights.drop_front(2),
               channelsLast)
      .spread(op, values.getSplatValue<APFloat>().convertToDouble());
}

struct ComposePoolsPass : codegen::impl::ComposePoolsBase<ComposePoolsPass> {
  using ComposePoolsBase::ComposePoolsBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      bool isLast = channelsLast && hasNarrowConvolutions(stage.getBlock());
      Found found;
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        llvm::TypeSwitch<Operation *>(&op)
            .Case<PoolOp, MaxPoolGradientOp, ConvTransposeOp>(
                [&](auto pool) { compose(pool, isLast, found); });
    });
  }

  /// Those that `axl-channels-last` turns round for cuDNN.
  static bool hasNarrowConvolutions(Block &block) {
    constexpr unsigned narrow = 16;
    return llvm::any_of(block, [](Operation &op) {
      return isa<ConvOp, ConvWeightGradientOp>(op) &&
             tensorType(op.getOperand(0)).getElementTypeBitWidth() == narrow;
    });
  }
};

} // namespace
