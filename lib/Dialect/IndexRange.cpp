//===- IndexRange.cpp - Between which numbers integers lie ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/IndexRange.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ax {

static constexpr int maxDepth = 16;
static constexpr int64_t maxConstants = 1 << 20;

static IndexRange join(IndexRange a, IndexRange b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

IndexRange rangeOf(ConstantOp constant) {
  auto values = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  if (!values || values.empty() ||
      (!values.isSplat() && values.getNumElements() > maxConstants))
    return {};
  IndexRange range{std::numeric_limits<int64_t>::max(),
                   std::numeric_limits<int64_t>::min()};
  auto add = [&](const APInt &value) {
    range = join(range, {value.getSExtValue(), value.getSExtValue()});
  };
  if (values.isSplat())
    add(values.getSplatValue<APInt>());
  else
    llvm::for_each(values.getValues<APInt>(), add);
  return range;
}

/// Returns everything when a number at an end could wrap.
static IndexRange product(IndexRange a, IndexRange b) {
  IndexRange range{std::numeric_limits<int64_t>::max(),
                   std::numeric_limits<int64_t>::min()};
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      int64_t end = 0;
      if (__builtin_mul_overflow(x, y, &end))
        return {};
      range = join(range, {end, end});
    }
  return range;
}

/// Returns everything when a number at an end could wrap.
static IndexRange rangeOf(BinaryOp op, IndexRange a, IndexRange b) {
  IndexRange sum;
  switch (op.getKind()) {
  case BinaryKind::add:
    if (__builtin_add_overflow(a.low, b.low, &sum.low) ||
        __builtin_add_overflow(a.high, b.high, &sum.high))
      return {};
    return sum;
  case BinaryKind::sub:
    if (__builtin_sub_overflow(a.low, b.high, &sum.low) ||
        __builtin_sub_overflow(a.high, b.low, &sum.high))
      return {};
    return sum;
  case BinaryKind::mul:
    return product(a, b);
  case BinaryKind::min:
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  case BinaryKind::max:
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  case BinaryKind::floor_mod:
    return b.low > 0 ? IndexRange{0, b.high - 1} : IndexRange();
  default:
    return {};
  }
}

namespace {
/// Values are asked for once, however many ways lead to them.
class RangeFinder {
public:
  explicit RangeFinder(llvm::function_ref<IndexRange(ConstantOp)> ofConstant)
      : ofConstant(ofConstant) {}
  IndexRange find(Value value, int depth = 0);

private:
  IndexRange ofResult(Value made, int depth);

  llvm::function_ref<IndexRange(ConstantOp)> ofConstant;
  llvm::DenseMap<Value, IndexRange> found;
};
} // namespace

/// `made` is a result of an operation.
IndexRange RangeFinder::ofResult(Value made, int depth) {
  auto of = [&](Value value) { return find(value, depth + 1); };
  return llvm::TypeSwitch<Operation *, IndexRange>(made.getDefiningOp())
      .Case([&](ConstantOp constant) { return ofConstant(constant); })
      .Case([](IotaOp iota) {
        int64_t size = tensorType(iota.getResult()).getDimSize(iota.getDim());
        return IndexRange{0, std::max<int64_t>(size - 1, 0)};
      })
      .Case([&](GatherOp gather) { return of(gather.getOperand()); })
      .Case([](ArgReduceOp reduce) {
        int64_t size =
            tensorType(reduce.getOperand()).getDimSize(reduce.getDim());
        return IndexRange{0, std::max<int64_t>(size - 1, 0)};
      })
      .Case([&](TopKOp topK) {
        if (made != topK.getIndices())
          return of(topK.getOperand());
        int64_t size = tensorType(topK.getOperand()).getDimSize(topK.getDim());
        return IndexRange{0, std::max<int64_t>(size - 1, 0)};
      })
      .Case<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, AllGatherOp,
            AllSliceOp, AllToAllOp, CollectivePermuteOp>(
          [&](auto moving) { return of(moving->getOperand(0)); })
      .Case([&](CastOp cast) {
        bool keeps =
            tensorType(cast.getOperand()).getElementType().isSignlessInteger();
        return keeps ? of(cast.getOperand()) : IndexRange();
      })
      .Case([&](SelectOp select) {
        return join(of(select.getOnTrue()), of(select.getOnFalse()));
      })
      .Case([&](BinaryOp binary) {
        return rangeOf(binary, of(binary.getLhs()), of(binary.getRhs()));
      })
      .Case([&](ConcatOp concat) {
        IndexRange range = of(concat.getOperand(0));
        for (Value operand : concat.getOperands().drop_front())
          range = join(range, of(operand));
        return range;
      })
      .Default([](Operation *) { return IndexRange(); });
}

IndexRange RangeFinder::find(Value value, int depth) {
  auto element = dyn_cast<IntegerType>(tensorType(value).getElementType());
  if (!element || !element.isSignless() || element.getWidth() < 8)
    return {};
  IndexRange type{llvm::minIntN(element.getWidth()),
                  llvm::maxIntN(element.getWidth())};
  if (!value.getDefiningOp() || depth > maxDepth)
    return type;
  if (auto known = found.find(value); known != found.end())
    return known->second;
  IndexRange range = ofResult(value, depth);
  // Arithmetic in the narrow type would have wrapped.
  if (range.low < type.low || range.high > type.high)
    range = type;
  found[value] = range;
  return range;
}

IndexRange findRange(Value value,
                     llvm::function_ref<IndexRange(ConstantOp)> ofConstant) {
  return RangeFinder(ofConstant).find(value);
}

} // namespace ax
