//===- SmallWindows.cpp - Pools of small windows, unrolled ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example, in one dimension: windows of 3 elements at a distance of 2 with a
// pad of 1. The elements k of all windows are the slice of the padded image
// from k on with step 2, and the maximum is that of three slices.
//
// The gradient knows of each window which k had the maximum. Elements 2 q are
// in window q, as its k = 1. Elements 2 q + 1 are in window q as its k = 2, and
// in window q + 1 as its k = 0. So elements with equal rests have the same k of
// windows at the same distance, which are slices, too:
//
//   even[q] = (winner[q] == 1 ? gradient[q] : 0)
//   odd[q]  = (winner[q] == 2 ? gradient[q] : 0) +
//             (winner[q + 1] == 0 ? gradient[q + 1] : 0)
//
//===----------------------------------------------------------------------===//
#include "SmallWindows.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

double ax::codegen::lowestOf(Type type) {
  if (isa<FloatType>(type))
    return -std::numeric_limits<double>::infinity();
  return type.isUnsignedInteger()
             ? 0
             : -std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1);
}

bool SmallWindows::areSmall(Dims kernel, Dims strides) {
  constexpr int64_t most = 9;
  return llvm::product_of(kernel) <= most && llvm::product_of(strides) <= most;
}

int64_t SmallWindows::numElements() const {
  return llvm::product_of(of.kernel);
}

SmallVector<int64_t> SmallWindows::elementOf(int64_t number) const {
  SmallVector<int64_t> element(of.rank());
  for (size_t i = of.rank(); i-- > 0; number /= of.kernel[i])
    element[i] = number % of.kernel[i];
  return element;
}

/// Of spatial dimensions.
Value SmallWindows::padded(Value x, Dims low, Dims high, double with) {
  auto isZero = [](int64_t n) { return n == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  size_t rank = shapeOf(x).size();
  SmallVector<int64_t> below(rank, 0), above(rank, 0);
  llvm::copy(low, below.begin() + 1);
  llvm::copy(high, above.begin() + 1);
  return PadOp::create(t.b, x, t.number(x, with), below, above,
                       PadMode::constant);
}

/// Of spatial dimensions.
Value SmallWindows::slice(Value x, Dims starts, Dims steps, Dims sizes) {
  SmallVector<int64_t> shape(shapeOf(x));
  SmallVector<int64_t> first(shape.size(), 0), step(shape.size(), 1);
  llvm::copy(starts, first.begin() + 1);
  llvm::copy(steps, step.begin() + 1);
  llvm::copy(sizes, shape.begin() + 1);
  return SliceOp::create(t.b, RankedTensorType::get(shape, elementType(x)), x,
                         first, step);
}

/// So that all windows lie inside.
Value SmallWindows::padImages(Value images, double with) {
  SmallVector<int64_t> high;
  for (size_t i = 0; i < of.rank(); ++i)
    high.push_back(std::max<int64_t>(0, (of.window[i] - 1) * of.strides[i] +
                                            of.reach(i) - of.low[i] -
                                            of.image[i]));
  return padded(images, of.low, high, with);
}

/// The element of that number in all windows.
Value SmallWindows::readElement(Value padded, int64_t number) {
  SmallVector<int64_t> starts = elementOf(number);
  for (auto [start, dilation] : llvm::zip(starts, of.dilations))
    start *= dilation;
  return slice(padded, starts, of.strides, of.window);
}

Value SmallWindows::max(Value images) {
  Value x = padImages(images, lowestOf(elementType(images)));
  Value y = readElement(x, 0);
  for (int64_t number = 1; number < numElements(); ++number)
    y = t.binary(BinaryKind::max, y, readElement(x, number));
  return y;
}

Value SmallWindows::sum(Value images) {
  Value x = padImages(images, 0);
  Value y = t.wide(readElement(x, 0));
  for (int64_t number = 1; number < numElements(); ++number)
    y = t.add(y, t.wide(readElement(x, number)));
  return y;
}

/// The number of each window's first element that is no padding.
Value SmallWindows::firstInside(Value like) {
  auto type = RankedTensorType::get(shapeOf(like), t.b.getI32Type());
  Value first = t.splat({}, t.b.getI32Type(), 0);
  for (size_t i = 0; i < of.rank(); ++i) {
    first = t.mul(first, static_cast<double>(of.kernel[i]));
    if (of.low[i] == 0)
      continue;
    auto step = static_cast<double>(of.dilations[i]);
    Value begin = t.mul(IotaOp::create(t.b, type, 1 + static_cast<int64_t>(i)),
                        static_cast<double>(of.strides[i]));
    Value missing =
        t.sub(t.number(begin, static_cast<double>(of.low[i])), begin);
    Value skipped = missing;
    if (step > 1)
      skipped = t.div(t.add(missing, step - 1), t.number(missing, step));
    first = t.add(first,
                  t.select(t.compare(CompareKind::gt, missing, 0), skipped, 0));
  }
  return t.broadcast(first, type.getShape());
}

std::pair<Value, Value> SmallWindows::findLargest(Value images) {
  Value x = padImages(images, lowestOf(elementType(images)));
  Value best = readElement(x, 0);
  Value winner = t.cast(firstInside(best), t.b.getIntegerType(8));
  for (int64_t number = 1; number < numElements(); ++number) {
    Value next = readElement(x, number);
    Value isBetter =
        t.binary(BinaryKind::logical_or, t.compare(CompareKind::gt, next, best),
                 t.unary(UnaryKind::is_nan, next));
    best = t.select(isBetter, next, best);
    winner = t.select(isBetter, t.number(winner, static_cast<double>(number)),
                      winner);
  }
  return {winner, best};
}

Value SmallWindows::maxGradient(Value numbers, Value gradient) {
  SmallVector<int64_t> rests;
  Value all = gather(numbers, gradient, rests);
  SmallVector<int64_t> none(of.rank(), 0), one(of.rank(), 1);
  return ArrayRef(shapeOf(all)).slice(1, of.rank()) == ArrayRef(of.image)
             ? all
             : slice(all, none, one, of.image);
}

/// Elements whose first indices have these rests, one for each of their
/// quotients, and all places of the other dimensions.
Value SmallWindows::gather(Value numbers, Value gradient,
                           SmallVector<int64_t> &rests) {
  size_t i = rests.size();
  if (i == of.rank())
    return gatherAt(numbers, gradient, rests);
  SmallVector<Value> apart;
  for (int64_t rest = 0; rest < of.strides[i]; ++rest) {
    rests.push_back(rest);
    apart.push_back(gather(numbers, gradient, rests));
    rests.pop_back();
  }
  if (apart.size() == 1)
    return apart.front();
  auto dim = 1 + static_cast<int64_t>(i);
  SmallVector<int64_t> shape(shapeOf(apart.front())), whole = shape;
  shape.insert(shape.begin() + dim + 1, 1);
  whole[static_cast<size_t>(dim)] *= of.strides[i];
  for (Value &part : apart)
    part = t.reshape(part, shape);
  return t.reshape(ConcatOp::create(t.b, apart, dim + 1), whole);
}

/// What elements with these rests get: for each number of an element that they
/// are somewhere, that of the window where they are it; where there are
/// `numbers`, if that is the window's.
Value SmallWindows::gatherAt(Value numbers, Value gradient, Dims rests) {
  SmallVector<int64_t> sizes, low(of.rank(), 0), high(of.rank(), 0);
  for (size_t i = 0; i < of.rank(); ++i)
    sizes.push_back(llvm::divideCeil(of.image[i], of.strides[i]));
  SmallVector<std::pair<int64_t, SmallVector<int64_t>>> distances;
  for (int64_t number = 0; number < numElements(); ++number) {
    SmallVector<int64_t> distance = elementOf(number);
    bool isOne = true;
    for (size_t i = 0; i < of.rank(); ++i) {
      int64_t from = rests[i] + of.low[i] - distance[i] * of.dilations[i];
      isOne &= from % of.strides[i] == 0;
      distance[i] = from / of.strides[i];
    }
    if (!isOne)
      continue;
    for (size_t i = 0; i < of.rank(); ++i) {
      low[i] = std::max(low[i], -distance[i]);
      high[i] = std::max(high[i], sizes[i] + distance[i] - of.window[i]);
    }
    distances.emplace_back(number, std::move(distance));
  }
  if (distances.empty()) {
    SmallVector<int64_t> shape(shapeOf(gradient));
    llvm::copy(sizes, shape.begin() + 1);
    return t.wide(t.splat(shape, elementType(gradient), 0));
  }
  // No element has this number.
  if (numbers)
    numbers = padded(numbers, low, high, -1);
  gradient = padded(gradient, low, high, 0);
  SmallVector<int64_t> steps(of.rank(), 1);
  Value sum;
  for (auto &[number, starts] : distances) {
    for (size_t i = 0; i < of.rank(); ++i)
      starts[i] += low[i];
    Value given = t.wide(slice(gradient, starts, steps, sizes));
    if (numbers)
      given = t.select(t.compare(CompareKind::eq,
                                 slice(numbers, starts, steps, sizes),
                                 static_cast<double>(number)),
                       given, 0.0);
    sum = sum ? t.add(sum, given) : given;
  }
  return sum;
}
