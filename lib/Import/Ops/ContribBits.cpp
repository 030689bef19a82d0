//===- ContribBits.cpp - Weights of a few bits ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They become floats where they are multiplied with, or, of a table, those rows
// that are read.
//
//===----------------------------------------------------------------------===//

#include "../Bits.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

Value ax::import::unpackBits(Emitter &b, Value bytes, int64_t bits, int64_t n) {
  if (!bytes)
    return {};
  Shape column(Emitter::shapeOf(bytes)), all(column);
  column.push_back(1);
  std::vector<uint8_t> shifts;
  for (int64_t shift = 0; shift < 8; shift += bits)
    shifts.push_back(static_cast<uint8_t>(shift));
  Value y = bytes;
  if (int64_t count = shifts.size(); count > 1) {
    y = b.binary(BinaryKind::shr, b.reshape(bytes, column),
                 b.constant(HostTensor::fromValues<uint8_t>({count}, shifts)));
    y = b.binary(BinaryKind::bit_and, y,
                 b.like(y, static_cast<double>((1 << bits) - 1)));
    all.back() *= count;
  }
  return b.sliceDim(b.reshape(y, all), static_cast<int64_t>(all.size()) - 1, 0,
                    n);
}

/// Numbers of E2M1, of I8 that their bits are as integers. By size they are 0,
/// 0.5, 1, 1.5, 2, 3, 4 and 6: halves, of which there are more from the fifth
/// on, and still more from the seventh on.
static Value floatsOfFourBits(Emitter &b, Value bits) {
  Value number =
      b.cast(b.binary(BinaryKind::bit_and, bits, b.like(bits, 7)), DType::F32);
  auto beyond = [&](double start) {
    return b.max(b.add(number, -start), b.like(number, 0));
  };
  Value size = b.add(b.mul(b.add(number, beyond(4)), 0.5), beyond(6));
  Value isNegative = b.compare(CompareKind::gt, bits, b.like(bits, 7));
  return b.castExactly(
      b.select(isNegative, b.unary(UnaryKind::neg, size), size),
      DType::F8E4M3FN);
}

Value ax::import::unpackFourBits(Emitter &b, Value bytes,
                                 const FourBits &fourBits) {
  const Shape &shape = fourBits.shape;
  bool isRow = Emitter::rankOf(bytes) == 1;
  int64_t last = isRow ? checkedNumElements(shape).value_or(0) : shape.back();
  Value y = b.reshape(unpackBits(b, bytes, 4, last), shape);
  if (fourBits.kind == FourBits::Kind::Unsigned || !y)
    return y;
  y = b.cast(y, DType::I8);
  if (fourBits.kind == FourBits::Kind::Float)
    return floatsOfFourBits(b, y);
  // The upper half stands for -8 to -1.
  return b.sub(b.binary(BinaryKind::bit_xor, y, b.like(y, 8)), b.like(y, 8));
}

Value ax::import::roundBlocks(Emitter &b, Value x, int64_t size) {
  if (!x)
    return {};
  Shape shape(Emitter::shapeOf(x)), low(shape.size(), 0), high(low);
  int64_t count = (shape.back() + size - 1) / size;
  high.back() = count * size - shape.back();
  shape.back() = count * size;
  Shape apart(shape);
  apart.back() = count;
  apart.push_back(size);
  x = b.pad(x, low, high, PadMode::constant, b.like(x, 0));
  return b.reshape(b.fakeQuantize(b.reshape(x, apart)), shape);
}

static bool checkBits(Node &n, int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8)
    return true;
  n.unsupported("attribute 'bits' is " + llvm::Twine(bits) + ", not 2, 4 or 8");
  return false;
}

/// (x - zero) scale, computed in f32, as `type`: [rows.., columns] from one
/// scale and zero point a block of columns, [rows.., blocks].
static Value dequantize(Node &n, Value x, Value scale, Value zero,
                        int64_t block, DType type) {
  if (!x || !scale || !zero)
    return {};
  Shape shape(Emitter::shapeOf(x)), blocks(Emitter::shapeOf(scale));
  Shape wide(blocks), column(blocks);
  wide.push_back(block);
  column.push_back(1);
  Value y = n.b.sub(n.b.cast(n.b.reshape(x, wide), DType::F32),
                    n.b.reshape(n.b.cast(zero, DType::F32), column));
  y = n.b.mul(y, n.b.reshape(n.b.cast(scale, DType::F32), column));
  return n.b.cast(n.b.reshape(y, shape), type);
}

namespace {
/// What the attributes of MatMulNBits say.
struct Blocks {
  int64_t bits, rows, columns, size;
  int64_t count() const { return (columns + size - 1) / size; }
  int64_t padded() const { return count() * size; }
  /// Bytes of a row of zero points.
  int64_t zeroBytes() const { return (count() * bits + 7) / 8; }
};
} // namespace

/// Input `i`, whatever its dimensions are, with `shape`; null, and a failure,
/// where it has another number of elements.
static Value inputAs(Node &n, int i, llvm::StringRef name,
                     ArrayRef<int64_t> shape) {
  Value x = n.in(i);
  if (!x)
    return {};
  if (Emitter::numElementsOf(x) != checkedNumElements(shape).value_or(-1))
    return n.fail("'" + name + "' of [" + shapeToString(Emitter::shapeOf(x)) +
                  "] is not [" + shapeToString(shape) + "]");
  return n.b.reshape(x, shape);
}

/// Zero points [rows, blocks]: packed as the weights are, or as numbers, or the
/// middle of the range.
static Value zeroPoints(Node &n, const Blocks &blocks) {
  if (!n.has(3))
    return n.b.splat(DType::F32, {blocks.rows, blocks.count()},
                     static_cast<double>(int64_t(1) << (blocks.bits - 1)));
  Value given = n.in(3);
  if (!given)
    return {};
  if (Emitter::typeOf(given) != DType::U8)
    return inputAs(n, 3, "zero_points", {blocks.rows, blocks.count()});
  return unpackBits(
      n.b, inputAs(n, 3, "zero_points", {blocks.rows, blocks.zeroBytes()}),
      blocks.bits, blocks.count());
}

/// What is multiplied may be rounded to integers of eight bits.
constexpr int64_t roundedLevel = 4;

/// Whether onnxruntime rounds what it multiplies by such weights at that level:
/// not with zero points of floats, and of two bits by some blocks.
static bool isRounded(Node &n, const Blocks &blocks) {
  if (n.intAttr("accuracy_level", 0) != roundedLevel ||
      (n.has(3) && Emitter::typeOf(n.in(3)) != DType::U8))
    return false;
  return blocks.bits > 2 || blocks.size == 32 || blocks.size == 64 ||
         blocks.size == 128;
}

static void importMatMulNBits(Node &n) {
  Value x = n.in(0), bias = n.optional(5);
  Blocks blocks{n.intAttr("bits", 4), n.intAttr("N", 0), n.intAttr("K", 0),
                n.intAttr("block_size", 0)};
  if (n.failed() || !checkBits(n, blocks.bits))
    return;
  if (n.has(4))
    return (void)n.unsupported("input 'g_idx' is not supported");
  if (n.intAttr("weight_prepacked", 0))
    return (void)n.unsupported("attribute 'weight_prepacked' is not 0");
  int64_t bitsOfBlock = blocks.size * blocks.bits;
  if (blocks.size < 1 || bitsOfBlock % 8) {
    n.fail("attribute 'block_size' is " + llvm::Twine(blocks.size));
    return;
  }
  if (Emitter::rankOf(x) < 1 || Emitter::shapeOf(x).back() != blocks.columns) {
    n.fail("'A' of [" + shapeToString(Emitter::shapeOf(x)) +
           "] has no rows of 'K' = " + llvm::Twine(blocks.columns));
    return;
  }
  DType type = Emitter::typeOf(x);
  Value bytes =
      inputAs(n, 1, "B", {blocks.rows, blocks.count() * (bitsOfBlock / 8)});
  Value w = dequantize(n, unpackBits(n.b, bytes, blocks.bits, blocks.padded()),
                       inputAs(n, 2, "scales", {blocks.rows, blocks.count()}),
                       zeroPoints(n, blocks), blocks.size, type);
  if (isRounded(n, blocks))
    x = roundBlocks(n.b, x, blocks.size);
  else
    w = w ? n.b.sliceDim(w, 1, 0, blocks.columns) : w;
  Value y = n.b.dot(x, w, {{}, {}, {Emitter::rankOf(x) - 1}, {1}});
  n.out(bias ? n.b.add(y, bias) : y);
}

//===----------------------------------------------------------------------===//
// GatherBlockQuantized
//===----------------------------------------------------------------------===//

/// A table of ONNX's own numbers of four bits, or of bytes, each with one
/// number or several of a row.
static void importGatherBlockQuantized(Node &n) {
  Value data = n.in(0), indices = n.in(1), scales = n.in(2),
        zeros = n.optional(3);
  int64_t bits = n.intAttr("bits", 4), block = n.intAttr("block_size", 128);
  if (n.failed() || !checkBits(n, bits))
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(data),
                    blocks = Emitter::shapeOf(scales);
  int64_t rank = shape.size();
  int64_t gathered = n.dim(n.intAttr("gather_axis", 0), rank),
          quantized = n.dim(n.intAttr("quantize_axis", 1), rank);
  if (n.failed())
    return;
  if (gathered != 0 || quantized == 0 || quantized != rank - 1) {
    n.unsupported("rows are gathered along the first dimension, of numbers "
                  "that are quantized along the last");
    return;
  }
  // ONNX's own numbers of four bits have come apart.
  bool isApart = n.b.isOfFourBits(data);
  if (!isApart && Emitter::typeOf(data) != DType::U8)
    return (void)n.fail("'data' is of numbers with a sign");
  int64_t columns = shape.back() * (isApart ? 1 : 8 / bits);
  bool fits = block >= 1 && columns % block == 0 &&
              static_cast<int64_t>(blocks.size()) == rank &&
              blocks.back() == columns / block &&
              blocks.drop_back() == shape.drop_back();
  Shape ofZeros(blocks);
  if (fits) {
    if (!isApart)
      ofZeros.back() = (blocks.back() * bits + 7) / 8;
    fits = !zeros || Emitter::shapeOf(zeros) == ArrayRef<int64_t>(ofZeros);
  }
  if (!fits) {
    n.fail("'scales' or 'zero_points' do not go with 'data' of [" +
           shapeToString(shape) + "] and 'block_size' = " + llvm::Twine(block));
    return;
  }
  auto rowsOf = [&](Value table, int64_t count) {
    Value y = n.b.gather(table, indices, 0);
    return isApart ? y : unpackBits(n.b, y, bits, count);
  };
  Value rows = rowsOf(data, columns), scale = n.b.gather(scales, indices, 0);
  if (!scale)
    return;
  double middle = isApart ? 0 : static_cast<double>(int64_t(1) << (bits - 1));
  Value zero = zeros ? rowsOf(zeros, blocks.back())
                     : n.b.splat(DType::F32, Emitter::shapeOf(scale), middle);
  n.out(dequantize(n, rows, scale, zero, block, Emitter::typeOf(scales)));
}

static const OpEntry entries[] = {
    {"GatherBlockQuantized",
     importGatherBlockQuantized,
     1,
     // Numbers of four bits are bytes here.
     {"data:D=bytes indices:I=int32|int64 scales:T=floats "
      "zero_points?:D",
      "output:T", "bits:int block_size:int gather_axis:int quantize_axis:int"}},
    {"MatMulNBits",
     importMatMulNBits,
     1,
     {"A:T=floats B:uint8 scales:T "
      "zero_points?:Z=uint8|float|float16|bfloat16|double g_idx?:int32 bias?:T",
      "Y:T",
      "K!:int N!:int bits:int block_size!:int accuracy_level:int "
      "weight_prepacked:int"}},
};

void ax::import::addContribBits(OpTable &table) {
  table.add(entries, contribDomain);
}
