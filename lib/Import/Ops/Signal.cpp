//===- Signal.cpp - Fourier transforms ------------------------------------===//

#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {
struct Waves {
  Value cosine, sine;
};
} // namespace

/// cos and sin of 2 pi row column / length, times `factor(row)`.
static Waves waves(Node &n, int64_t rows, int64_t columns, int64_t length,
                   DType type, llvm::function_ref<double(int64_t)> factor) {
  HostTensor cosine(type, {rows, columns}), sine(type, {rows, columns});
  double unit = 2 * 3.14159265358979323846 / static_cast<double>(length);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      // The product of the indices may be large; its angle is not.
      double angle = unit * static_cast<double>(i * j % length);
      cosine.setDouble(i * columns + j, factor(i) * std::cos(angle));
      sine.setDouble(i * columns + j, factor(i) * std::sin(angle));
    }
  return {n.b.constant(std::move(cosine)), n.b.constant(std::move(sine))};
}

/// x [..., 1 or 2] along `axis` with `size` elements: cut, or filled with 0.
static Value resized(Node &n, Value x, int64_t axis, int64_t size) {
  int64_t have = Emitter::shapeOf(x)[axis];
  if (have >= size)
    return n.b.sliceDim(x, axis, 0, size);
  Shape low(Emitter::rankOf(x), 0), high(low);
  high[axis] = size - have;
  return n.b.pad(x, low, high, PadMode::constant, n.b.like(x, 0));
}

static void importDFT(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  int64_t rank = Emitter::rankOf(x);
  // An attribute until set 19, with another default.
  int64_t axis = n.intAttr("axis", n.opset < 20 ? 1 : -2);
  if (n.has(2))
    axis = n.knownInt(2, "axis").value_or(axis);
  axis = n.dim(axis, rank);
  if (n.failed())
    return;
  int64_t parts = Emitter::shapeOf(x).back();
  bool inverse = n.intAttr("inverse", 0), oneSided = n.intAttr("onesided", 0);
  if (rank < 2 || axis == rank - 1 || (parts != 1 && parts != 2)) {
    n.fail("needs a last dimension of 1 (real) or 2 (complex) elements, and "
           "another axis");
    return;
  }
  bool half = inverse && oneSided;
  int64_t have = Emitter::shapeOf(x)[axis];
  int64_t length = half ? 2 * (have - 1) : have;
  if (n.has(1))
    length = n.knownInt(1, "dft_length").value_or(0);
  if (n.failed())
    return;
  if (length < 1 || length > (1 << 11)) {
    n.unsupported("a transform of " + llvm::Twine(length) + " points");
    return;
  }
  int64_t in = half ? length / 2 + 1 : length;
  int64_t out = oneSided && !inverse ? length / 2 + 1 : length;
  // Sums of waves cancel: in single precision little but noise is left.
  DType type = Emitter::typeOf(x);
  x = n.b.cast(resized(n, x, axis, in), DType::F64);
  auto factor = [&](int64_t i) {
    if (!inverse)
      return 1.0;
    // The missing half mirrors all but the first (and middle) point.
    bool twice = half && i != 0 && 2 * i != length;
    return (twice ? 2.0 : 1.0) / static_cast<double>(length);
  };
  Waves w = waves(n, in, out, length, DType::F64, factor);
  // The transformed dimension comes last, then returns.
  std::vector<int64_t> back;
  for (int64_t i = 0; i < rank - 2; ++i)
    back.push_back(i);
  back.insert(back.begin() + axis, rank - 2);
  auto times = [&](Value part, Value matrix) {
    return n.b.transpose(n.b.dot(part, matrix, {{}, {}, {axis}, {0}}), back);
  };
  auto partOf = [&](int64_t i) {
    Value part = n.b.sliceDim(x, rank - 1, i, 1);
    return part ? n.b.reshape(part, Emitter::shapeOf(part).drop_back())
                : Value();
  };
  Value real = partOf(0), imaginary = parts == 2 ? partOf(1) : Value();
  Value realOut = times(real, w.cosine);
  Value imaginaryOut = times(real, w.sine);
  if (!inverse)
    imaginaryOut = n.b.unary(UnaryKind::neg, imaginaryOut);
  if (imaginary) {
    Value crossed = times(imaginary, w.sine);
    realOut = inverse ? n.b.sub(realOut, crossed) : n.b.add(realOut, crossed);
    imaginaryOut = n.b.add(imaginaryOut, times(imaginary, w.cosine));
  }
  auto asPart = [&](Value v) {
    if (!v)
      return Value();
    Shape shape(Emitter::shapeOf(v));
    shape.push_back(1);
    return n.b.reshape(v, shape);
  };
  Value y = half
                ? asPart(realOut)
                : n.b.concat({asPart(realOut), asPart(imaginaryOut)}, rank - 1);
  n.out(n.b.cast(y, type));
}

static const OpEntry entries[] = {
    {"DFT", importDFT},
};

OpTable ax::import::signalOps() { return entries; }
