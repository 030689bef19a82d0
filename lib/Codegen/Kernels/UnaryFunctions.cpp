//===- UnaryFunctions.cpp - Functions of one element in kernels -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "UnaryFunctions.h"

#include "ElementOps.h"
#include "ScalarMath.h"

#include "ax/Dialect/UnaryFunctions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ax::codegen {

namespace {

/// The arithmetic of UnaryFunction.h on a kernel's scalars of one type.
class Arithmetic {
public:
  Arithmetic(OpBuilder &b, ScalarUnit unit, Type axType)
      : b(b), loc(b.getUnknownLoc()), unit(unit), axType(axType) {}

  Value number(Value x, double value) {
    if (isa<FloatType>(x.getType()))
      return arith::ConstantOp::create(b, loc,
                                       FloatAttr::get(x.getType(), value));
    return arith::ConstantOp::create(
        b, loc, IntegerAttr::get(x.getType(), static_cast<int64_t>(value)));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value add(Value x, double y) { return add(x, number(x, y)); }
  Value mul(Value x, double y) { return mul(x, number(x, y)); }
  Value neg(Value x) {
    if (isa<FloatType>(x.getType()))
      return arith::NegFOp::create(b, loc, x);
    return arith::SubIOp::create(b, loc, number(x, 0), x);
  }
  Value abs(Value x) {
    if (isa<FloatType>(x.getType()))
      return math::AbsFOp::create(b, loc, x);
    return select(compare(CompareKind::lt, x, 0), neg(x), x);
  }
  Value bitNot(Value x) {
    return arith::XOrIOp::create(b, loc, x, number(x, -1));
  }
  Value sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
  Value ceil(Value x) { return math::CeilOp::create(b, loc, x); }
  Value floor(Value x) { return math::FloorOp::create(b, loc, x); }
  Value round(Value x) { return math::RoundEvenOp::create(b, loc, x); }
  Value trunc(Value x) { return math::TruncOp::create(b, loc, x); }
  Value unary(UnaryKind kind, Value x) {
    return emitUnaryFunction(b, unit, kind, x, axType);
  }
  Value library(StringRef name, double (*)(double), Value x) {
    return emitLibraryCall(b, name, x);
  }
  Value compare(CompareKind kind, Value x, Value y) {
    return emitCompare(b, unit, kind, x, y, axType);
  }
  Value compare(CompareKind kind, Value x, double y) {
    return compare(kind, x, number(x, y));
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }

private:
  OpBuilder &b;
  Location loc;
  ScalarUnit unit;
  Type axType;
};

} // namespace

Value emitUnaryFunction(OpBuilder &b, ScalarUnit unit, UnaryKind kind, Value x,
                        Type type) {
  if (Value better = emitBetterForm(b, unit, kind, x))
    return better;
  using Emit = Value (*)(Arithmetic &, Value);
  static constexpr auto functions =
      tabulateUnary<Emit>([](auto function) -> Emit {
        return [](Arithmetic &arithmetic, Value x) -> Value {
          return decltype(function)::value(arithmetic, x);
        };
      });
  Arithmetic arithmetic(b, unit, type);
  return functions[static_cast<uint32_t>(kind)](arithmetic, x);
}

} // namespace ax::codegen
