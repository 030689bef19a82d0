//===- Quantize.cpp - Integers that stand for numbers ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"
#include "../Quantization.h"
#include "../Types.h"

#include <limits>

using namespace ax;
using namespace ax::import;

/// A scale or zero point shaped to broadcast with `x`: one number as it is, a
/// vector along `axis`, blocks repeated.
static Value spread(Node &n, Value parameter, Value x, int64_t axis,
                    int64_t block) {
  if (!parameter || !x)
    return {};
  if (block == 0 && Emitter::numElementsOf(parameter) == 1)
    return n.b.reshape(parameter, {});
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  axis = n.dim(axis, shape.size());
  if (n.failed())
    return {};
  ArrayRef<int64_t> blocks = Emitter::shapeOf(parameter);
  if (block == 0) {
    if (blocks.size() != 1 || blocks[0] != shape[axis])
      return n.fail("a scale or zero point of [" + shapeToString(blocks) +
                    "] is neither one number nor a vector of [" +
                    llvm::Twine(shape[axis]) + "], for axis " +
                    llvm::Twine(axis));
    Shape line(shape.size(), 1);
    line[axis] = shape[axis];
    return n.b.reshape(parameter, line);
  }
  // The last one of an axis may reach beyond it, and so may the only one.
  block = std::min(block, std::max<int64_t>(shape[axis], 1));
  Shape wanted(shape);
  if (block > 0)
    wanted[axis] = (shape[axis] + block - 1) / block;
  if (block < 1 || blocks != ArrayRef<int64_t>(wanted))
    return n.fail("block_size does not fit the shapes: a scale or zero point "
                  "is [" +
                  shapeToString(blocks) + "]");
  Shape open(blocks), wide(blocks), whole(blocks);
  open.insert(open.begin() + axis + 1, 1);
  wide.insert(wide.begin() + axis + 1, block);
  whole[axis] *= block;
  Value y =
      n.b.reshape(n.b.broadcast(n.b.reshape(parameter, open), wide), whole);
  return n.b.sliceDim(y, axis, 0, shape[axis]);
}

Value ax::import::castTo(Node &n, Value x, DType type) {
  if (!x || !isFloat8(type) || n.intAttr("saturate", 1))
    return n.b.cast(x, type);
  // Half of the last digit above the largest number, which is even in one
  // format and odd in the other.
  bool hasInfinity = type == DType::F8E5M2;
  double limit = hasInfinity ? 61440 : 464;
  if (!isFloat(Emitter::typeOf(x)))
    x = n.b.cast(x, DType::F64);
  Value size = n.b.unary(UnaryKind::abs, x);
  Value isBeyond = n.b.compare(hasInfinity ? CompareKind::ge : CompareKind::gt,
                               size, n.b.like(size, limit));
  if (!hasInfinity)
    return n.b.cast(
        n.b.select(isBeyond,
                   n.b.like(x, std::numeric_limits<double>::quiet_NaN()), x),
        type);
  auto infinity = [&](uint8_t bits) {
    return n.b.constant(HostTensor::scalar(Float8E5M2::fromBits(bits)));
  };
  Value isNegative = n.b.compare(CompareKind::lt, x, n.b.like(x, 0));
  return n.b.select(isBeyond,
                    n.b.select(isNegative, infinity(0xfc), infinity(0x7c)),
                    n.b.cast(x, type));
}

/// A zero point of floats, if it is not known to be nothing, as ONNX wants it.
static Value zeroOf(Node &n, Value zero) {
  std::optional<HostTensor> known = zero ? n.b.knownValue(zero) : std::nullopt;
  auto isZero = [&](int64_t i) { return known->getDouble(i) == 0; };
  bool isNothing =
      known &&
      llvm::all_of(llvm::seq<int64_t>(0, known->numElements()), isZero);
  return isNothing ? Value() : zero;
}

Value ax::import::quantize(Node &n, Value x, Value zero, DType type) {
  if (isFloat8(type)) {
    if (Value shift = zeroOf(n, zero); shift && x)
      x = n.b.add(x, n.b.cast(shift, Emitter::typeOf(x)));
    return castTo(n, x, type);
  }
  double low = 0, high = 0;
  switch (type) {
  case DType::I8:
    low = -128, high = 127;
    break;
  case DType::U8:
    high = 255;
    break;
  case DType::I16:
    low = -32768, high = 32767;
    break;
  case DType::U16:
    high = 65535;
    break;
  default:
    return n.unsupported("quantized elements of type " +
                         llvm::Twine(toString(type)));
  }
  Value y = n.b.unary(UnaryKind::round, x);
  // The sum needs more digits than f16 has.
  y = n.b.cast(y, DType::F32);
  if (zero)
    y = n.b.add(y, n.b.cast(zero, DType::F32));
  y = n.b.min(n.b.max(y, n.b.like(y, low)), n.b.like(y, high));
  return n.b.cast(y, type);
}

Value ax::import::dequantize(Node &n, Value x, Value scale, Value zero) {
  if (!scale)
    return {};
  DType type = Emitter::typeOf(scale);
  if (byteSize(type) < byteSize(DType::F32))
    type = DType::F32;
  if (x && isFloat(Emitter::typeOf(x))) {
    Value y = n.b.cast(x, type);
    if (Value shift = zeroOf(n, zero))
      y = n.b.sub(y, n.b.cast(shift, type));
    return n.b.mul(y, n.b.cast(scale, type));
  }
  // In i32, where differences of 8- and 16-bit numbers are exact.
  Value y = n.b.cast(x, DType::I32);
  if (zero)
    y = n.b.sub(y, n.b.cast(zero, DType::I32));
  return n.b.mul(n.b.cast(y, type), n.b.cast(scale, type));
}

/// The attribute's type, where it is there and not 0 (UNDEFINED).
static DType typeOr(Node &n, llvm::StringRef attribute, DType otherwise) {
  return n.intAttr(attribute, 0) ? n.typeAttr(attribute, otherwise) : otherwise;
}

/// Divides in the type of the scale, unless `precision` names another one:
/// whole numbers by whole numbers in f64, as ONNX's reference does.
void ax::import::importQuantizeLinear(Node &n) {
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!x || !scale || n.failed())
    return;
  DType type = typeOr(n, "output_dtype", DType::U8);
  if (zero)
    type = Emitter::typeOf(zero);
  DType ofScale = Emitter::typeOf(scale);
  DType precision =
      typeOr(n, "precision", isFloat(ofScale) ? ofScale : DType::F64);
  if (!isFloat(precision)) {
    n.fail("precision is " + llvm::Twine(toString(precision)) +
           ", which is no type of fractions");
    return;
  }
  int64_t axis = n.intAttr("axis", 1), block = n.intAttr("block_size", 0);
  scale = n.b.cast(spread(n, scale, x, axis, block), precision);
  Value units = n.b.div(n.b.cast(x, precision), scale);
  n.out(quantize(n, units, spread(n, zero, x, axis, block), type));
}

void ax::import::importDequantizeLinear(Node &n) {
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!x || !scale || n.failed())
    return;
  int64_t axis = n.intAttr("axis", 1), block = n.intAttr("block_size", 0);
  Value y = dequantize(n, x, spread(n, scale, x, axis, block),
                       spread(n, zero, x, axis, block));
  n.out(n.b.cast(y, typeOr(n, "output_dtype", Emitter::typeOf(scale))));
}

Value ax::import::spreadOver(Node &n, Value parameter, Value x, int64_t along) {
  if (!parameter || !x)
    return {};
  if (Emitter::numElementsOf(parameter) == 1)
    return n.b.reshape(parameter, {});
  ArrayRef<int64_t> given = Emitter::shapeOf(parameter),
                    shape = Emitter::shapeOf(x);
  int64_t rank = shape.size(), numGiven = given.size();
  int64_t first = numGiven == 1 ? along : rank - numGiven;
  bool fits = first >= 0 && first < rank;
  Shape wide(rank, 1);
  for (int64_t i = 0; i < numGiven && fits; ++i) {
    wide[first + i] = given[i];
    fits = given[i] == shape[first + i] || (given[i] == 1 && numGiven > 1);
  }
  if (!fits)
    return n.unsupported("a scale or zero point of [" + shapeToString(given) +
                         "] beside [" + shapeToString(shape) +
                         "]: one number, a vector of rows or columns, and what "
                         "broadcasts with it");
  return n.b.reshape(parameter, wide);
}

int64_t ax::import::rowsOf(Value x) {
  return std::max<int64_t>(Emitter::rankOf(x), 1) - 2;
}
int64_t ax::import::columnsOf(Value x) {
  return Emitter::rankOf(x) > 1 ? Emitter::rankOf(x) - 1 : -1;
}

Value ax::import::centred(Node &n, int input, int zeroInput,
                          llvm::function_ref<int64_t(Value)> along) {
  Value x = n.in(input), zero = n.optional(zeroInput);
  if (!x)
    return {};
  DType type = isFloat(Emitter::typeOf(x)) ? DType::F32 : DType::I32;
  Value y = n.b.cast(x, type);
  if (!zero)
    return y;
  return n.b.sub(y, n.b.cast(spreadOver(n, zero, x, along(x)), type));
}

static int64_t channelsOf(Value) { return 1; }
static int64_t filtersOf(Value) { return 0; }

static void importMatMulInteger(Node &n) {
  n.out(matmul(n.b, centred(n, 0, 2, rowsOf), centred(n, 1, 3, columnsOf)));
}

/// Integers as floating point, exact for these sizes, for operations that have
/// no integer form.
static Value asFloat(Node &n, Value x) { return n.b.cast(x, DType::F64); }

/// The convolution of integers, in i32; null after an error.
static Value convolution(Node &n, Value x, Value w) {
  Value y = importConvolution(n, asFloat(n, x), asFloat(n, w), {});
  return y ? n.b.cast(y, DType::I32) : Value();
}

static void importConvInteger(Node &n) {
  n.out(convolution(n, centred(n, 0, 2, channelsOf),
                    centred(n, 1, 3, filtersOf)));
}

Value ax::import::requantize(Node &n, Value sum, Value scaleA, Value scaleB,
                             Value scaleY, Value zero) {
  if (!sum || !scaleA || !scaleB || !scaleY || !zero)
    return {};
  Value factor = n.b.div(
      n.b.mul(n.b.cast(scaleA, DType::F32), n.b.cast(scaleB, DType::F32)),
      n.b.cast(scaleY, DType::F32));
  return quantize(n, n.b.mul(n.b.cast(sum, DType::F32), factor), zero,
                  Emitter::typeOf(zero));
}

/// The scale of an operand `x` as it broadcasts with the product: dimension
/// `summed` of it is gone, or, where the other operand `hasOther` in its place,
/// 1.
static Value scaleOfProduct(Node &n, Value scale, Value x, int64_t along,
                            int64_t summed, bool hasOther) {
  Value y = spreadOver(n, scale, x, along);
  if (!y || Emitter::rankOf(y) == 0)
    return y;
  Shape shape(Emitter::shapeOf(y));
  if (shape[summed] != 1)
    return n.unsupported("a scale of [" +
                         shapeToString(Emitter::shapeOf(scale)) + "] beside [" +
                         shapeToString(Emitter::shapeOf(x)) +
                         "] differs along the dimension that is summed");
  if (!hasOther)
    shape.erase(shape.begin() + summed);
  return n.b.reshape(y, shape);
}

static void importQLinearMatMul(Node &n) {
  Value a = n.in(0), b = n.in(3), yScale = n.in(6), zero = n.in(7);
  if (n.failed())
    return;
  Value product =
      matmul(n.b, centred(n, 0, 2, rowsOf), centred(n, 3, 5, columnsOf));
  if (!product)
    return;
  int64_t rankA = Emitter::rankOf(a), rankB = Emitter::rankOf(b);
  // Its rows are those of `a`, of which a vector has none.
  int64_t rows =
      rankA > 1 ? Emitter::rankOf(product) - (rankB > 1 ? 2 : 1) : -1;
  n.out(requantize(
      n, product,
      scaleOfProduct(n, n.in(1), a, rowsOf(a), rankA - 1, rankB > 1),
      scaleOfProduct(n, n.in(4), b, columnsOf(b), rankB - 2, rankA > 1),
      spreadOver(n, yScale, product, rows),
      spreadOver(n, zero, product, rows)));
}

static void importQLinearConv(Node &n) {
  Value yScale = n.in(6), zero = n.in(7), bias = n.optional(8);
  if (n.failed())
    return;
  Value sum =
      convolution(n, centred(n, 0, 2, channelsOf), centred(n, 3, 5, filtersOf));
  if (sum && bias)
    sum = n.b.add(sum, spread(n, n.b.cast(bias, DType::I32), sum, 1, 0));
  if (sum)
    n.out(requantize(n, sum, spread(n, n.in(1), sum, 1, 0),
                     spread(n, n.in(4), sum, 1, 0), n.b.reshape(yScale, {}),
                     n.b.reshape(zero, {})));
}

static const OpEntry entries[] = {
    {"ConvInteger", importConvInteger},
    {"DequantizeLinear", importDequantizeLinear},
    {"MatMulInteger", importMatMulInteger},
    {"QLinearConv", importQLinearConv},
    {"QLinearMatMul", importQLinearMatMul},
    {"QuantizeLinear", importQuantizeLinear},
};

void ax::import::addQuantize(OpTable &table) { table.add(entries); }
