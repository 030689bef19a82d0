//===- Elementwise.cpp - One element at a time ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"
#include "../Quantization.h"

using namespace ax;
using namespace ax::import;

template <UnaryKind kind>
static void importUnary(Node &n) {
  n.out(n.b.unary(kind, n.in(0)));
}

/// Imports Abs, Sign and Relu: unsigned numbers have no sign.
template <UnaryKind kind>
static void importSigned(Node &n) {
  Value x = n.in(0);
  if (!x || !isUnsigned(Emitter::typeOf(x)))
    return n.out(n.b.unary(kind, x));
  n.out(kind == UnaryKind::sign ? n.b.min(x, n.b.like(x, 1)) : x);
}

static void importIsInf(Node &n) {
  Value x = n.in(0);
  bool positive = n.intAttr("detect_positive", 1);
  bool negative = n.intAttr("detect_negative", 1);
  if (!x)
    return;
  if (!positive && !negative)
    return n.out(n.b.splat(DType::Bool, Emitter::shapeOf(x), 0));
  Value isPositive = positive ? n.b.unary(UnaryKind::is_pos_inf, x) : Value();
  Value isNegative = negative ? n.b.unary(UnaryKind::is_neg_inf, x) : Value();
  if (positive && negative)
    return n.out(n.b.binary(BinaryKind::logical_or, isPositive, isNegative));
  n.out(positive ? isPositive : isNegative);
}

template <BinaryKind kind>
static void importBinary(Node &n) {
  n.out(n.b.binary(kind, n.in(0), n.in(1)));
}

/// And, Or: of two bools one that is known may decide, as whether a loop goes
/// on that has come to its last step.
template <BinaryKind kind, bool decides>
static void importLogical(Node &n) {
  Value a = n.in(0), b = n.in(1);
  if (n.failed())
    return;
  for (auto [x, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (Emitter::numElementsOf(x) != 1 || Emitter::numElementsOf(other) != 1)
      break;
    std::optional<HostTensor> known = n.b.knownValue(x);
    if (!known || (known->getInt(0) != 0) != decides)
      continue;
    int64_t rank = std::max(Emitter::rankOf(a), Emitter::rankOf(b));
    n.out(n.b.reshape(x, Shape(rank, 1)));
    return;
  }
  n.out(n.b.binary(kind, a, b));
}

template <CompareKind kind>
static void importCompare(Node &n) {
  n.out(n.b.compare(kind, n.in(0), n.in(1)));
}

/// Imports Sum, Max and Min of any number of operands.
template <BinaryKind kind>
static void importVariadic(Node &n) {
  Value result = n.in(0);
  for (int i = 1; i < n.numInputs(); ++i)
    result = n.b.binary(kind, result, n.in(i));
  n.out(result);
}

static void importMean(Node &n) {
  Value first = n.in(0), sum = n.b.wide(first);
  for (int i = 1; i < n.numInputs(); ++i)
    sum = n.b.add(sum, n.b.wide(n.in(i)));
  if (sum)
    n.out(n.b.cast(n.b.div(sum, n.b.like(sum, n.numInputs())),
                   Emitter::typeOf(first)));
}

static void importPow(Node &n) {
  Value base = n.in(0), exponent = n.in(1);
  if (!base || !exponent)
    return;
  DType type = Emitter::typeOf(base);
  // An integer to a fractional power is computed in floating point.
  DType wide =
      isFloat(type) || !isFloat(Emitter::typeOf(exponent)) ? type : DType::F64;
  Value power = n.b.binary(BinaryKind::pow, n.b.cast(base, wide),
                           n.b.cast(exponent, wide));
  n.out(n.b.cast(power, type));
}

static void importMod(Node &n) {
  n.out(n.b.binary(n.intAttr("fmod", 0) ? BinaryKind::trunc_mod
                                        : BinaryKind::floor_mod,
                   n.in(0), n.in(1)));
}

static void importBitShift(Node &n) {
  bool isLeft = n.stringAttr("direction", "") == "LEFT";
  n.out(
      n.b.binary(isLeft ? BinaryKind::shl : BinaryKind::shr, n.in(0), n.in(1)));
}

static void importWhere(Node &n) {
  n.out(n.b.select(n.in(0), n.in(1), n.in(2)));
}

static void importCast(Node &n) {
  Value x = n.in(0);
  n.out(castTo(n, x, n.typeAttr("to", DType::F32)));
}

static void importCastLike(Node &n) {
  Value x = n.in(0), like = n.in(1);
  // Of that the type counts alone.
  if (x && !n.b.boundOf(x))
    n.b.dropBounds();
  if (like)
    n.out(castTo(n, x, Emitter::typeOf(like)));
}

static const OpEntry entries[] = {
    {"Abs", importSigned<UnaryKind::abs>},
    {"Acos", importUnary<UnaryKind::acos>},
    {"Acosh", importUnary<UnaryKind::acosh>},
    {"Add", importBinary<BinaryKind::add>},
    {"And", importLogical<BinaryKind::logical_and, false>},
    {"Asin", importUnary<UnaryKind::asin>},
    {"Asinh", importUnary<UnaryKind::asinh>},
    {"Atan", importUnary<UnaryKind::atan>},
    {"Atanh", importUnary<UnaryKind::atanh>},
    {"BitShift", importBitShift},
    {"BitwiseAnd", importBinary<BinaryKind::bit_and>},
    {"BitwiseNot", importUnary<UnaryKind::bit_not>},
    {"BitwiseOr", importBinary<BinaryKind::bit_or>},
    {"BitwiseXor", importBinary<BinaryKind::bit_xor>},
    {"Cast", importCast},
    {"CastLike", importCastLike},
    {"Ceil", importUnary<UnaryKind::ceil>},
    {"Cos", importUnary<UnaryKind::cos>},
    {"Cosh", importUnary<UnaryKind::cosh>},
    {"Div", importBinary<BinaryKind::div>},
    {"Equal", importCompare<CompareKind::eq>},
    {"Erf", importUnary<UnaryKind::erf>},
    {"Exp", importUnary<UnaryKind::exp>},
    {"Floor", importUnary<UnaryKind::floor>},
    {"Greater", importCompare<CompareKind::gt>},
    {"GreaterOrEqual", importCompare<CompareKind::ge>},
    {"IsInf", importIsInf},
    {"IsNaN", importUnary<UnaryKind::is_nan>},
    {"Less", importCompare<CompareKind::lt>},
    {"LessOrEqual", importCompare<CompareKind::le>},
    {"Log", importUnary<UnaryKind::log>},
    {"Max", importVariadic<BinaryKind::max>},
    {"Mean", importMean},
    {"Min", importVariadic<BinaryKind::min>},
    {"Mod", importMod},
    {"Mul", importBinary<BinaryKind::mul>},
    {"Neg", importUnary<UnaryKind::neg>},
    {"Not", importUnary<UnaryKind::logical_not>},
    {"Or", importLogical<BinaryKind::logical_or, true>},
    {"Pow", importPow},
    {"Reciprocal", importUnary<UnaryKind::reciprocal>},
    {"Round", importUnary<UnaryKind::round>},
    {"Sigmoid", importUnary<UnaryKind::sigmoid>},
    {"Sign", importSigned<UnaryKind::sign>},
    {"Sin", importUnary<UnaryKind::sin>},
    {"Sinh", importUnary<UnaryKind::sinh>},
    {"Sqrt", importUnary<UnaryKind::sqrt>},
    {"Sub", importBinary<BinaryKind::sub>},
    {"Sum", importVariadic<BinaryKind::add>},
    {"Tan", importUnary<UnaryKind::tan>},
    {"Tanh", importUnary<UnaryKind::tanh>},
    {"Where", importWhere},
    {"Xor", importBinary<BinaryKind::logical_xor>},
};

void ax::import::addElementwise(OpTable &table) { table.add(entries); }
