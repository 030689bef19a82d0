//===- GpuCombine.cpp - What threads of a group have becomes one ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuMath.h"
#include "GpuWriter.h"
#include "LlvmCode.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;

namespace ax::codegen {

/// What this thread's points among `count` from `begin` on combine to: several
/// registers, each of `width` values, take turns at them, so that loads need
/// not wait for each other. Where these are several, a loop that LLVM unrolled
/// would begin with more loads than there are registers; and a point of many
/// terms has loads enough.
KernelWriter::Values GpuWriter::combineTurns(Value begin, int64_t count,
                                             const Combining &combining,
                                             size_t width, int64_t terms,
                                             LoopBody body) {
  constexpr int64_t manyTerms = 16;
  const int64_t together = terms < manyTerms ? 4 : 1;
  const int64_t registers = width > 4 ? 2 : together;
  ReduceOpKind kind = combining.kind;
  Type type = combining.type;
  Values sums(registers * width, neutral(kind, type));
  int64_t round = together * group.threads, rounds = count / round;
  if (rounds > 0)
    sums = loop(number(0), number(rounds), sums, [&](Value i, ValueRange own) {
      Value first = addIndex(addIndex(begin, turn), mulIndex(i, number(round)));
      Values next(own);
      for (int64_t k = 0; k != together; ++k) {
        auto one = llvm::MutableArrayRef<Value>(next).slice(
            k % registers * width, width);
        llvm::copy(body(addIndex(first, number(k * group.threads)), one),
                   one.begin());
      }
      return next;
    });
  if (rounds > 1 && width > 1)
    sums.front().getDefiningOp()->setAttr(
        kLoop,
        parseAttribute("#llvm.loop_annotation<unroll = <disable = true>>",
                       b.getContext()));
  ArrayRef<Value> all(sums);
  Values sum(all.take_front(width));
  if (int64_t left = count % round)
    sum = takeTurns(addIndex(begin, number(count - left)), left, sum, body);
  if (rounds > 0)
    for (auto [i, other] : llvm::enumerate(all.drop_front(width)))
      sum[i % width] = combine(kind, sum[i % width], other, type);
  return sum;
}

/// What this thread's points combine to. Many terms are summed in pieces, as by
/// a thread alone (EmitReduce).
KernelWriter::Values GpuWriter::combinePoints(const DealtPoints &points,
                                              const Combining &combining,
                                              size_t width) {
  constexpr int64_t manyTerms = 1 << 10;
  ReduceOpKind kind = combining.kind;
  Type type = combining.type;
  int64_t piece = group.threads * (manyTerms / points.terms), pieces = 0;
  if (kind == ReduceOpKind::sum && isa<FloatType>(type))
    pieces = points.count / piece;
  Values sums(width, neutral(kind, type));
  if (int64_t left = points.count - pieces * piece)
    sums = combineTurns(number(pieces * piece), left, combining, width,
                        points.terms, points.body);
  if (pieces == 0)
    return sums;
  return loop(number(0), number(pieces), sums,
              [&](Value i, ValueRange before) -> Values {
                Values parts =
                    combineTurns(mulIndex(i, number(piece)), piece, combining,
                                 width, points.terms, points.body);
                for (auto [part, sum] : llvm::zip_equal(parts, before))
                  part = combine(kind, sum, part, type);
                return parts;
              });
}

KernelWriter::Values GpuWriter::dealtReduction(ArrayRef<DealtPoints> points,
                                               ValueRange carried,
                                               Combining combining) {
  assert(group.isMany() && (carried.size() == 1 || group.isColumn()));
  auto add = [&](Values &sums, const Values &more) {
    for (auto [sum, one] : llvm::zip_equal(sums, more))
      sum = combine(combining.kind, sum, one, combining.type);
  };
  Values own = combinePoints(points.front(), combining, carried.size());
  for (const DealtPoints &some : points.drop_front())
    add(own, combinePoints(some, combining, carried.size()));
  Values all(carried);
  add(all, group.isColumn() ? combineColumns(own, combining)
                            : Values{combineAll(own.front(), combining)});
  return all;
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
  GpuMath f(b, x.getType());
  constexpr double log2OfE = 1.44269504088896341, log2 = 0.693147180559945309;
  constexpr double rounded = 1.44269502162933349609375; // as f32
  // What is far below has no part of it left: -inf would be without a number.
  x = arith::MaximumFOp::create(b, loc, x, f.num(-104.0));
  Value exponent = f.mul(x, f.num(rounded));
  Value rest = f.exactFma(x, f.num(rounded), f.neg(exponent));
  rest = f.mul(rest, f.num(log2));
  rest = f.exactFma(x, f.num((log2OfE - rounded) * log2), rest);
  Value power = f.exp2(exponent);
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

/// Each warp has a part of all columns' sums, of which each thread has some
/// that are next to each other. Every thread makes one of these whole. Those of
/// several reductions are too many for a block's memory: they take turns.
KernelWriter::Values GpuWriter::combineColumns(ValueRange own,
                                               const Combining &combining) {
  constexpr int64_t mostBytes = 32 << 10;
  int64_t columns = group.columns, warps = threadsPerBlock / warpThreads;
  int64_t bytes = warps * columns * storageBytes(combining.type);
  int64_t most = std::max<int64_t>(mostBytes / bytes, 1);
  int64_t each = std::min<int64_t>(own.size(), most), width = columns * each;
  if (own.size() > static_cast<size_t>(each)) {
    Values all = combineColumns(own.take_front(each), combining);
    llvm::append_range(all, combineColumns(own.drop_front(each), combining));
    return all;
  }
  Value parts = sharedMemory("parts", bytes * each);
  Values sums;
  for (Value x : own)
    sums.push_back(combineWarp(x, combining, warpThreads / columns, columns));
  Value lane = remIndex(thread, number(warpThreads));
  Value first = mulIndex(remIndex(thread, number(columns)), number(each));
  Value warp = divIndex(thread, number(warpThreads));
  // All have read the parts that were there before.
  meet();
  auto isFirst = scf::IfOp::create(b, loc, isLess(lane, number(columns)),
                                   /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isFirst.thenBlock());
    Value at = addIndex(mulIndex(warp, number(width)), first);
    for (auto [k, sum] : llvm::enumerate(sums))
      store(sum, parts, addIndex(at, number(k)), combining.type);
  }
  meet();
  auto ofAll = scf::ForOp::create(b, loc, thread, number(width),
                                  number(threadsPerBlock));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ofAll.getBody());
    Value at = ofAll.getInductionVar();
    Value sum = load(parts, at, combining.type);
    for (int64_t other = 1; other != warps; ++other)
      sum = combine(
          combining.kind, sum,
          load(parts, addIndex(at, number(other * width)), combining.type),
          combining.type);
    store(sum, parts, at, combining.type);
  }
  meet();
  for (auto [k, sum] : llvm::enumerate(sums))
    sum = load(parts, addIndex(first, number(k)), combining.type);
  return sums;
}

} // namespace ax::codegen
