//===- Quantize.cpp - Integers that stand for numbers ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"
#include "../Types.h"

using namespace ax;
using namespace ax::import;

/// A scale or zero point shaped to broadcast with `x`: a scalar as it is, a
/// vector along `axis`, blocks repeated.
static Value spread(Node &n, Value parameter, Value x, int64_t axis,
                    int64_t block) {
  if (!parameter || !x || Emitter::numElementsOf(parameter) == 1)
    return parameter ? n.b.reshape(parameter, {}) : Value();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  axis = n.dim(axis, shape.size());
  if (n.failed())
    return {};
  if (block == 0) {
    Shape line(shape.size(), 1);
    line[axis] = shape[axis];
    return n.b.reshape(parameter, line);
  }
  ArrayRef<int64_t> blocks = Emitter::shapeOf(parameter);
  if (block < 1 || block > shape[axis] || blocks.size() != shape.size() ||
      blocks[axis] != (shape[axis] + block - 1) / block)
    return n.fail("block_size does not fit the shapes");
  Shape open(blocks), wide(blocks), whole(blocks);
  open.insert(open.begin() + axis + 1, 1);
  wide.insert(wide.begin() + axis + 1, block);
  whole[axis] *= block;
  Value y =
      n.b.reshape(n.b.broadcast(n.b.reshape(parameter, open), wide), whole);
  return n.b.sliceDim(y, axis, 0, shape[axis]);
}

/// `x`, in units of its scale, rounded, shifted and cut to the range of `type`.
static Value quantize(Node &n, Value x, Value zero, DType type) {
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

/// In f32 for narrow scales, too: what is in units of them may be beyond f16,
/// and has more digits.
static Value dequantize(Node &n, Value x, Value scale, Value zero) {
  if (!scale)
    return {};
  // In i32, where differences of 8- and 16-bit numbers are exact.
  Value y = n.b.cast(x, DType::I32);
  if (zero)
    y = n.b.sub(y, n.b.cast(zero, DType::I32));
  DType type = Emitter::typeOf(scale);
  if (byteSize(type) < byteSize(DType::F32))
    type = DType::F32;
  return n.b.mul(n.b.cast(y, type), n.b.cast(scale, type));
}

/// The attribute's type, where it is there and not 0 (UNDEFINED).
static DType typeOr(Node &n, llvm::StringRef attribute, DType otherwise) {
  return n.intAttr(attribute, 0) ? n.typeAttr(attribute, otherwise) : otherwise;
}

/// Divides in the type of the scale, unless `precision` names another one:
/// whole numbers by whole numbers in f64, as ONNX's reference does.
static void importQuantizeLinear(Node &n) {
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

static void importDequantizeLinear(Node &n) {
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!x || !scale || n.failed())
    return;
  int64_t axis = n.intAttr("axis", 1), block = n.intAttr("block_size", 0);
  Value y = dequantize(n, x, spread(n, scale, x, axis, block),
                       spread(n, zero, x, axis, block));
  n.out(n.b.cast(y, typeOr(n, "output_dtype", Emitter::typeOf(scale))));
}

/// An integer operand of a product, its zero point taken off, in i32. A vector
/// of zero points belongs to dimension `dim`.
static Value centred(Node &n, int input, int zeroInput, int64_t dim) {
  Value x = n.in(input), zero = n.optional(zeroInput);
  if (!x)
    return {};
  Value y = n.b.cast(x, DType::I32);
  if (!zero)
    return y;
  if (Emitter::numElementsOf(zero) == 1)
    zero = n.b.reshape(zero, {});
  else if (Emitter::rankOf(zero) == 1)
    zero = spread(n, zero, x, dim, 0);
  return n.b.sub(y, n.b.cast(zero, DType::I32));
}

static void importMatMulInteger(Node &n) {
  n.out(matmul(n.b, centred(n, 0, 2, -2), centred(n, 1, 3, -1)));
}

/// Integers as floating point, exact for these sizes, for operations that have
/// no integer form.
static Value asFloat(Node &n, Value x) { return n.b.cast(x, DType::F64); }

static void importConvInteger(Node &n) {
  Value y = importConvolution(n, asFloat(n, centred(n, 0, 2, 1)),
                              asFloat(n, centred(n, 1, 3, 0)), {});
  n.out(n.b.cast(y, DType::I32));
}

/// A sum of products of integers, times `scaleA` and `scaleB` and in units of
/// the scale of the result: by one factor, as ONNX's reference and onnxruntime
/// do, since whatever rounds elsewhere rounds ties otherwise. In f32 whichever
/// type scales have, for sums are beyond f16.
static Value requantize(Node &n, Value sum, Value scaleA, Value scaleB,
                        Value scaleY, Value zero) {
  if (!sum || !scaleA || !scaleB || !scaleY || !zero)
    return {};
  Value factor = n.b.div(
      n.b.mul(n.b.cast(scaleA, DType::F32), n.b.cast(scaleB, DType::F32)),
      n.b.cast(scaleY, DType::F32));
  return quantize(n, n.b.mul(n.b.cast(sum, DType::F32), factor), zero,
                  Emitter::typeOf(zero));
}

static void importQLinearMatMul(Node &n) {
  Value a = n.in(0), b = n.in(3), yScale = n.in(6), zero = n.in(7);
  if (n.failed())
    return;
  Value product = matmul(n.b, centred(n, 0, 2, -2), centred(n, 3, 5, -1));
  if (product)
    n.out(requantize(
        n, product, spread(n, n.in(1), a, -2, 0), spread(n, n.in(4), b, -1, 0),
        spread(n, yScale, product, -2, 0), spread(n, zero, product, -2, 0)));
}

static void importQLinearConv(Node &n) {
  Value yScale = n.in(6), zero = n.in(7), bias = n.optional(8);
  if (n.failed())
    return;
  Value sum = importConvolution(n, asFloat(n, centred(n, 0, 2, 1)),
                                asFloat(n, centred(n, 3, 5, 0)),
                                bias ? asFloat(n, bias) : Value());
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

OpTable ax::import::quantizeOps() { return entries; }
