//===- Float8Ops.cpp - Floats of eight bits in kernels --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Float8Ops.h"

#include "ax/Support/Float8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace ax::codegen {
namespace {

/// 32-bit words and what they are as floats.
struct Words {
  explicit Words(OpBuilder &b) : b(b), loc(b.getUnknownLoc()) {}

  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value word(uint32_t value) {
    return arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value bitAnd(Value x, uint32_t y) { return make<arith::AndIOp>(x, word(y)); }
  Value bitOr(Value x, Value y) { return make<arith::OrIOp>(x, y); }
  Value left(Value x, uint32_t by) { return make<arith::ShLIOp>(x, word(by)); }
  Value right(Value x, uint32_t by) {
    return make<arith::ShRUIOp>(x, word(by));
  }
  Value add(Value x, uint32_t y) { return make<arith::AddIOp>(x, word(y)); }
  Value sub(Value x, uint32_t y) { return make<arith::SubIOp>(x, word(y)); }
  /// Both without a sign.
  Value isAbove(Value x, uint32_t y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, x, word(y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value asFloat(Value bits) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  }
  Value asBits(Value number) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), number);
  }

  OpBuilder &b;
  Location loc;
};

const Float8Format &formatOf(Type type) {
  return isa<Float8E5M2Type>(type) ? f8E5M2 : f8E4M3FN;
}

} // namespace

Value widenFloat8(OpBuilder &b, Value bits, Type type) {
  const Float8Format &format = formatOf(type);
  Words w(b);
  Value wide = arith::ExtUIOp::create(b, w.loc, b.getI32Type(), bits);
  Value magnitude = w.bitAnd(wide, 0x7f);
  Value sign = w.left(w.bitAnd(wide, 0x80), 24);
  Value moved = w.left(magnitude, format.dropped());
  Value number = w.add(moved, format.rebase());
  Value units = arith::UIToFPOp::create(b, w.loc, b.getF32Type(), magnitude);
  Value subnormal = w.asBits(
      w.make<arith::MulFOp>(units, w.asFloat(w.word(format.unitF32()))));
  number = w.select(w.isAbove(magnitude, (1u << format.mantissaBits) - 1),
                    number, subnormal);
  Value special = format.hasInfinity ? w.bitOr(moved, w.word(0x7f800000u))
                                     : w.word(0x7fc00000u);
  number = w.select(w.isAbove(magnitude, format.largest), special, number);
  return w.asFloat(w.bitOr(number, sign));
}

Value narrowToFloat8(OpBuilder &b, Value x, Type type) {
  const Float8Format &format = formatOf(type);
  Words w(b);
  Value bits = w.asBits(x);
  Value sign = w.bitAnd(w.right(bits, 24), 0x80);
  Value whole = w.bitAnd(bits, 0x7fffffffu);
  Value magnitude = w.make<arith::MinUIOp>(whole, w.word(format.largestF32()));
  // The sum's last bit is the subnormal numbers' unit.
  Value aligned = w.make<arith::AddFOp>(w.asFloat(magnitude),
                                        w.asFloat(w.word(format.alignerF32())));
  Value subnormal = w.sub(w.asBits(aligned), format.alignerF32());
  Value rebased = w.sub(magnitude, format.rebase());
  Value last = w.bitAnd(w.right(rebased, format.dropped()), 1);
  uint32_t belowHalf = (1u << (format.dropped() - 1)) - 1;
  Value normal = w.right(w.make<arith::AddIOp>(w.add(rebased, belowHalf), last),
                         format.dropped());
  Value number =
      w.select(w.isAbove(magnitude, format.normalF32() - 1), normal, subnormal);
  number = w.select(w.isAbove(whole, 0x7f800000u), w.word(format.nan), number);
  return arith::TruncIOp::create(b, w.loc, b.getI8Type(),
                                 w.bitOr(number, sign));
}

} // namespace ax::codegen
