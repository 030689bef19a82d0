//===- GpuCombine.cpp - What threads of a group have becomes one ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FloatMath.h"
#include "GpuWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;

namespace ax::codegen {

/// What this thread's points among `count` from `begin` on combine to: several
/// registers take turns at them, so that loads need not wait for each other.
Value GpuWriter::combineTurns(Value begin, int64_t count,
                              const Combining &combining, LoopBody body) {
  constexpr int64_t registers = 4;
  ReduceOpKind kind = combining.kind;
  Type type = combining.type;
  Values sums(registers, neutral(kind, type));
  int64_t round = registers * group.threads, rounds = count / round;
  if (rounds > 0)
    sums = loop(number(0), number(rounds), sums, [&](Value i, ValueRange own) {
      Value first = addIndex(addIndex(begin, turn), mulIndex(i, number(round)));
      Values next;
      for (int64_t k = 0; k != registers; ++k)
        next.push_back(
            body(addIndex(first, number(k * group.threads)), own[k]).front());
      return next;
    });
  if (int64_t left = count % round)
    sums[0] =
        takeTurns(addIndex(begin, number(count - left)), left, sums[0], body)
            .front();
  Value sum = sums[0];
  if (rounds > 0)
    for (Value other : ArrayRef(sums).drop_front())
      sum = combine(kind, sum, other, type);
  return sum;
}

/// What this thread's points combine to. Many terms are summed in pieces, as by
/// a thread alone (EmitReduce).
Value GpuWriter::combinePoints(const DealtPoints &points,
                               const Combining &combining) {
  constexpr int64_t manyTerms = 1 << 10;
  auto [kind, type] = combining;
  int64_t piece = group.threads * (manyTerms / points.terms), pieces = 0;
  if (kind == ReduceOpKind::sum && isa<FloatType>(type))
    pieces = points.count / piece;
  Value sum;
  if (int64_t left = points.count - pieces * piece)
    sum = combineTurns(number(pieces * piece), left, combining, points.body);
  else
    sum = neutral(kind, type);
  if (pieces == 0)
    return sum;
  return loop(number(0), number(pieces), sum,
              [&](Value i, ValueRange sums) -> Values {
                Value part = combineTurns(mulIndex(i, number(piece)), piece,
                                          combining, points.body);
                return {combine(combining.kind, sums[0], part, combining.type)};
              })
      .front();
}

Value GpuWriter::dealtReduction(ArrayRef<DealtPoints> points, Value carried,
                                Combining combining) {
  assert(group.isMany());
  Value sum;
  for (const DealtPoints &some : points) {
    Value own = combinePoints(some, combining);
    sum = sum ? combine(combining.kind, sum, own, combining.type) : own;
  }
  return combine(combining.kind, carried, combineAll(sum, combining),
                 combining.type);
}

//===----------------------------------------------------------------------===//
// The largest of a row, and a sum that depends on it
//===----------------------------------------------------------------------===//

/// As of Decompose's exp: of NaN it is NaN, and 0 where it would be subnormal.
/// 2^(x log2 e), of the exponent rounded, and what rounding took from that, d,
/// for which 1 + d log 2 will do. The instruction is right to 2 units in the
/// last place.
Value GpuWriter::expFlushed(Value x) {
  if (!x.getType().isF32())
    return ScalarWriter::expFlushed(x);
  FloatMath f(b, x.getType());
  constexpr double log2OfE = 1.44269504088896341, log2 = 0.693147180559945309;
  constexpr double rounded = 1.44269502162933349609375; // as f32
  // What is far below has no part of it left: -inf would be without a number.
  x = arith::MaximumFOp::create(b, loc, x, f.num(-104.0));
  Value exponent = f.mul(x, f.num(rounded));
  Value rest = f.exactFma(x, f.num(rounded), f.neg(exponent));
  rest = f.mul(rest, f.num(log2));
  rest = f.exactFma(x, f.num((log2OfE - rounded) * log2), rest);
  Value power = LLVM::CallIntrinsicOp::create(
                    b, loc, x.getType(),
                    b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"), exponent)
                    .getResult(0);
  return f.exactFma(power, rest, power);
}

/// With so many numbers more. Of NaN both are NaN, and of +inf the sum is.
KernelWriter::Values GpuWriter::addToMaxAndSum(ValueRange maxAndSum,
                                               ValueRange numbers) {
  FloatMath f(b, b.getF32Type());
  Combining max{ReduceOpKind::max, b.getF32Type()};
  Value largest = maxAndSum[0];
  for (Value number : numbers)
    largest = combine(max.kind, largest, number, max.type);
  Value sum = f.mul(maxAndSum[1], expFlushed(f.sub(maxAndSum[0], largest)));
  Value more;
  for (Value number : numbers) {
    Value term = expFlushed(f.sub(number, largest));
    more = more ? f.add(more, term) : term;
  }
  return {largest, f.add(sum, more)};
}

/// A thread takes some points at a time, so that its loads need not wait for
/// each other, and its sum is seldom multiplied.
KernelWriter::MaxAndSum
GpuWriter::dealtMaxAndSum(ArrayRef<DealtPoints> points) {
  assert(group.isMany() && !group.isColumn());
  constexpr int64_t registers = 4;
  FloatMath f(b, b.getF32Type());
  Combining max{ReduceOpKind::max, b.getF32Type()};
  Combining sum{ReduceOpKind::sum, b.getF32Type()};
  // -inf would be below itself by no number: the least number is below all of
  // which there is a sum.
  constexpr double least = std::numeric_limits<float>::lowest();
  Values own{f.num(least), f.num(0.0)};
  for (const DealtPoints &some : points) {
    int64_t round = registers * group.threads, rounds = some.count / round;
    if (rounds > 0)
      own = loop(number(0), number(rounds), own,
                 [&](Value i, ValueRange before) -> Values {
                   Value first = addIndex(turn, mulIndex(i, number(round)));
                   Values numbers;
                   for (int64_t k = 0; k != registers; ++k)
                     numbers = some.body(
                         addIndex(first, number(k * group.threads)), numbers);
                   return addToMaxAndSum(before, numbers);
                 });
    if (int64_t left = some.count - rounds * round)
      own = takeTurns(number(rounds * round), left, own,
                      [&](Value point, ValueRange before) {
                        return addToMaxAndSum(before, some.body(point, {}));
                      });
  }
  Value largest = combineAll(own[0], max);
  Value whole =
      combineAll(f.mul(own[1], expFlushed(f.sub(own[0], largest))), sum);
  // The largest has a term of 1. Where there is none, all are -inf, and that
  // less itself is NaN.
  Value isNone = f.cmp(arith::CmpFPredicate::OEQ, whole, f.num(0.0));
  Value none = neutral(ReduceOpKind::max, b.getF32Type());
  Value nan = f.num(std::numeric_limits<double>::quiet_NaN());
  return {f.select(isNone, none, largest), f.select(isNone, nan, whole)};
}

//===----------------------------------------------------------------------===//
// What threads have becomes one
//===----------------------------------------------------------------------===//

/// Returns `x` of the lane whose number differs in `offset` alone, or of the
/// first one.
Value GpuWriter::fromOther(Value x, bool isFirst, int64_t offset) {
  Type type = x.getType(), i32 = b.getI32Type(), i64 = b.getI64Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  Value raw = x;
  if (!type.isInteger())
    raw = arith::BitcastOp::create(b, loc, b.getIntegerType(bits), raw);
  auto exchange = [&](Value one) -> Value {
    constexpr int64_t lastLane = 31;
    return NVVM::ShflOp::create(
        b, loc, i32, word(-1), one, word(isFirst ? 0 : offset), word(lastLane),
        isFirst ? NVVM::ShflKind::idx : NVVM::ShflKind::bfly, UnitAttr());
  };
  if (bits == 64) {
    Value shift = arith::ConstantIntOp::create(b, loc, 32, 64);
    Value high = exchange(arith::TruncIOp::create(
        b, loc, i32, arith::ShRUIOp::create(b, loc, raw, shift)));
    Value low = exchange(arith::TruncIOp::create(b, loc, i32, raw));
    high = arith::ShLIOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, i64, high), shift);
    raw = arith::OrIOp::create(b, loc, high,
                               arith::ExtUIOp::create(b, loc, i64, low));
  } else if (bits == 32) {
    raw = exchange(raw);
  } else {
    raw = exchange(arith::ExtUIOp::create(b, loc, i32, raw));
    raw = arith::TruncIOp::create(b, loc, b.getIntegerType(bits), raw);
  }
  if (!type.isInteger())
    raw = arith::BitcastOp::create(b, loc, type, raw);
  return raw;
}

/// Of lanes that lie `step` apart, so many of them.
Value GpuWriter::combineWarp(Value x, const Combining &combining, int64_t lanes,
                             int64_t step) {
  for (int64_t offset = lanes / 2 * step; offset >= step; offset /= 2)
    x = combine(combining.kind, x, fromOther(x, /*isFirst=*/false, offset),
                combining.type);
  return x;
}

Value GpuWriter::combineAll(Value x, const Combining &combining) {
  if (group.isColumn())
    return combineColumn(x, combining);
  x = combineWarp(x, combining, warpThreads);
  if (!isInWarp()) {
    int64_t warps = group.threads / warpThreads;
    Value parts = sharedMemory("parts", warps * sizeof(int64_t));
    Value lane = remIndex(thread, number(warpThreads));
    // All have read the parts that were there before.
    meet();
    auto isFirst = scf::IfOp::create(b, loc, isLess(lane, number(1)),
                                     /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(isFirst.thenBlock());
      store(x, parts, divIndex(thread, number(warpThreads)), combining.type);
    }
    meet();
    x = load(parts, remIndex(lane, number(warps)), combining.type);
    x = combineWarp(x, combining, warps);
  }
  // Of equal numbers with different bits, lanes may have chosen different ones.
  return fromOther(x, /*isFirst=*/true, 0);
}

/// Each warp has a part of all columns' sums.
Value GpuWriter::combineColumn(Value x, const Combining &combining) {
  int64_t columns = group.columns, warps = threadsPerBlock / warpThreads;
  Value parts = sharedMemory("parts", warps * columns * sizeof(int64_t));
  x = combineWarp(x, combining, warpThreads / columns, columns);
  Value lane = remIndex(thread, number(warpThreads));
  Value column = remIndex(thread, number(columns));
  Value warp = divIndex(thread, number(warpThreads));
  // All have read the parts that were there before.
  meet();
  auto isFirst = scf::IfOp::create(b, loc, isLess(lane, number(columns)),
                                   /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isFirst.thenBlock());
    store(x, parts, addIndex(mulIndex(warp, number(columns)), column),
          combining.type);
  }
  meet();
  x = load(parts, column, combining.type);
  for (int64_t other = 1; other != warps; ++other)
    x = combine(
        combining.kind, x,
        load(parts, addIndex(column, number(other * columns)), combining.type),
        combining.type);
  return x;
}

} // namespace ax::codegen
