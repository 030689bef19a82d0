//===- ContribQuantize.cpp - Quantised operators of com.microsoft ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What onnxruntime's quantisers write: operators of 8-bit integers, each with
// its scale and zero point. Those that have no form of their own in integers
// are computed on the numbers that the integers stand for.
//
//===----------------------------------------------------------------------===//

#include "../Contractions.h"
#include "../OpTable.h"
#include "../Quantization.h"

#include <numeric>

using namespace ax;
using namespace ax::import;

/// Input `i`, a scale or zero point, as one number; null where it is absent.
static Value single(Node &n, int i) {
  Value x = n.optional(i);
  if (!x)
    return {};
  if (Emitter::numElementsOf(x) != 1)
    return n.unsupported("input " + llvm::Twine(i) + " of [" +
                         shapeToString(Emitter::shapeOf(x)) +
                         "] is not one number");
  return n.b.reshape(x, {});
}

/// The number for which operand `i` stands; its scale and zero point are the
/// next two inputs.
static Value numberOf(Node &n, int i) {
  // Of any number of inputs, none is asked for.
  if (!n.in(i) || !n.in(i + 1))
    return {};
  return dequantize(n, n.in(i), single(n, i + 1), single(n, i + 2));
}

/// Makes `y` the result, of the type of `like`, with the scale that is input
/// `scale`; the zero point is the next one.
static void quantizeTo(Node &n, Value y, int scale, Value like) {
  Value unit = single(n, scale), zero = single(n, scale + 1);
  if (!y || !unit || !like)
    return;
  n.out(quantize(n, n.b.div(y, unit), zero, Emitter::typeOf(like)));
}

static void importQLinearAdd(Node &n) {
  Value a = n.in(0), unit = single(n, 6);
  // Each in units of the result.
  auto term = [&](int i) {
    Value ratio = n.b.div(single(n, i + 1), unit);
    return dequantize(n, n.in(i), ratio, single(n, i + 2));
  };
  Value sum = n.b.add(term(0), term(3)), zero = single(n, 7);
  if (sum && a)
    n.out(quantize(n, sum, zero, Emitter::typeOf(a)));
}

static void importQLinearMul(Node &n) {
  Value a = n.in(0);
  auto scalar = [](Value) -> int64_t { return 0; };
  Value product = n.b.mul(centred(n, 0, 2, scalar), centred(n, 3, 5, scalar));
  Value factor = n.b.div(n.b.mul(single(n, 1), single(n, 4)), single(n, 6));
  Value y = n.b.mul(product ? n.b.cast(product, DType::F32) : product, factor);
  Value zero = single(n, 7);
  if (y && a)
    n.out(quantize(n, y, zero, Emitter::typeOf(a)));
}

static void importQLinearSigmoid(Node &n) {
  quantizeTo(n, n.b.unary(UnaryKind::sigmoid, numberOf(n, 0)), 3, n.in(0));
}

static void importQLinearLeakyRelu(Node &n) {
  Value x = numberOf(n, 0);
  Value isPositive = n.b.compare(CompareKind::ge, x, n.b.like(x, 0));
  quantizeTo(n,
             n.b.select(isPositive, x, n.b.mul(x, n.floatAttr("alpha", 0.01f))),
             3, n.in(0));
}

/// The axis counts as in that set of operators which the node names.
static void importQLinearSoftmax(Node &n) {
  Value x = numberOf(n, 0);
  if (!x)
    return;
  Shape shape(Emitter::shapeOf(x)), flat(shape);
  int64_t axis = n.dim(n.intAttr("axis", -1), shape.size());
  if (n.failed())
    return;
  if (n.intAttr("opset", 13) < 13) {
    flat.resize(axis);
    flat.push_back(std::accumulate(shape.begin() + axis, shape.end(),
                                   int64_t(1), std::multiplies<>()));
  }
  Value y = n.b.softmax(n.b.reshape(x, flat), axis, /*log=*/false);
  quantizeTo(n, n.b.reshape(y, shape), 3, n.in(0));
}

/// A pool of the numbers, channels where the node says.
template <Value (*pool)(Node &, Value)>
static void importQLinearPool(Node &n) {
  Value x = numberOf(n, 0);
  if (!x)
    return;
  int64_t rank = Emitter::rankOf(x);
  if (rank < 3) {
    n.fail("the input has rank " + llvm::Twine(rank) + ", not 3 or more");
    return;
  }
  if (!n.intAttr("channels_last", 0))
    return quantizeTo(n, pool(n, x), 3, n.in(0));
  std::vector<int64_t> first(rank), last(rank);
  std::iota(first.begin(), first.end(), 0);
  last = first;
  std::rotate(first.begin() + 1, first.end() - 1, first.end());
  std::rotate(last.begin() + 1, last.begin() + 2, last.end());
  Value y = n.b.transpose(pool(n, n.b.transpose(x, first)), last);
  quantizeTo(n, y, 3, n.in(0));
}

static void importQLinearConcat(Node &n) {
  if (n.numInputs() < 5 || n.numInputs() % 3 != 2) {
    n.fail("inputs are not a scale, a zero point, and three for each tensor");
    return;
  }
  std::vector<Value> parts;
  for (int i = 2; i < n.numInputs(); i += 3)
    parts.push_back(numberOf(n, i));
  if (n.failed())
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(parts.front()));
  if (!n.failed())
    quantizeTo(n, n.b.concat(parts, axis), 0, n.in(1));
}

static void importQLinearWhere(Node &n) {
  quantizeTo(n, n.b.select(n.in(0), numberOf(n, 1), numberOf(n, 4)), 7,
             n.in(1));
}

#define AX_UNARY                                                               \
  "X:T=bytes X_scale:float X_zero_point?:T Y_scale:float Y_zero_point?:T"
#define AX_BINARY                                                              \
  "A:T=bytes A_scale:float A_zero_point?:T B:T B_scale:float "                 \
  "B_zero_point?:T C_scale:float C_zero_point?:T"

static const OpEntry entries[] = {
    {"DequantizeLinear",
     importDequantizeLinear,
     1,
     {"x:T=int8|uint8|int16|uint16|int32 x_scale:S=floats x_zero_point?:T",
      "y:S", "axis:int"}},
    {"QLinearAdd", importQLinearAdd, 1, {AX_BINARY, "C:T"}},
    {"QLinearAveragePool",
     importQLinearPool<importAverage>,
     1,
     {AX_UNARY, "Y:T",
      "auto_pad:string ceil_mode:int channels_last:int count_include_pad:int "
      "kernel_shape!:ints pads:ints strides:ints"}},
    {"QLinearConcat",
     importQLinearConcat,
     1,
     {"Y_scale:float Y_zero_point:T=bytes inputs*:V=int8|uint8|float", "Y:T",
      "axis!:int"}},
    {"QLinearGlobalAveragePool",
     importQLinearPool<globalAverage>,
     1,
     {AX_UNARY, "Y:T", "channels_last:int"}},
    {"QLinearLeakyRelu",
     importQLinearLeakyRelu,
     1,
     {AX_UNARY, "Y:T", "alpha:float"}},
    {"QLinearMul", importQLinearMul, 1, {AX_BINARY, "C:T"}},
    {"QLinearSigmoid", importQLinearSigmoid, 1, {AX_UNARY, "Y:T"}},
    {"QLinearSoftmax",
     importQLinearSoftmax,
     1,
     {AX_UNARY, "Y:T", "axis:int opset!:int"}},
    {"QLinearWhere",
     importQLinearWhere,
     1,
     {"condition:bool X:T=bytes x_scale:float x_zero_point:T Y:T y_scale:float "
      "y_zero_point:T z_scale:float z_zero_point:T",
      "Z:T"}},
    {"QuantizeLinear",
     importQuantizeLinear,
     1,
     {"x:S=floats y_scale:S y_zero_point?:T=int8|uint8|int16|uint16", "y:T",
      "axis:int"}},
};

#undef AX_UNARY
#undef AX_BINARY

void ax::import::addContribQuantize(OpTable &table) {
  table.add(entries, contribDomain);
}
