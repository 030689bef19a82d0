//===- Signal.cpp - Fourier transforms ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transform of few points is a product with a matrix. One of a b points is b
// transforms of a points, a factor for each place, and a transforms of b points
// (Cooley and Tukey, "An algorithm for the machine calculation of complex
// Fourier series", 1965). All of it is in f64: sums of waves cancel, and in
// single precision little but noise would be left.
//
//===----------------------------------------------------------------------===//

#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

namespace {

/// Null where all imaginary parts are 0.
struct Complex {
  Value real, imaginary;
};

} // namespace

/// Beyond this a product costs more than two smaller ones.
static constexpr int64_t fewPoints = 64;
static constexpr int64_t maxPrime = 1 << 11;
static constexpr int64_t maxPoints = 1 << 24;

/// cos and sign sin of 2 pi row column / length.
static Complex waves(Emitter &b, int64_t rows, int64_t columns, int64_t length,
                     int sign) {
  HostTensor cosine(DType::F64, {rows, columns}), sine(cosine);
  double unit = 2 * 3.14159265358979323846 / static_cast<double>(length);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      // The product of the indices may be large; its angle is not.
      double angle = unit * static_cast<double>(i * j % length);
      cosine.setDouble(i * columns + j, std::cos(angle));
      sine.setDouble(i * columns + j, sign * std::sin(angle));
    }
  return {b.constant(std::move(cosine)), b.constant(std::move(sine))};
}

/// `times` of both parts, which is linear.
template <typename Fn>
static Complex product(Emitter &b, const Complex &x, const Complex &y,
                       Fn times) {
  Complex result{times(x.real, y.real), times(x.real, y.imaginary)};
  if (!x.imaginary)
    return result;
  return {b.sub(result.real, times(x.imaginary, y.imaginary)),
          b.add(result.imaginary, times(x.imaginary, y.real))};
}

template <typename Fn>
static Complex both(const Complex &x, Fn move) {
  return {move(x.real), x.imaginary ? move(x.imaginary) : Value()};
}

/// The divisor with which as few products as may be, of nearly as many points
/// each, make up the transform (16384 = 32 * 32 * 16); 1 of a prime.
static int64_t divisorOf(int64_t length) {
  double digits = std::log(static_cast<double>(length));
  double products = std::ceil(digits / std::log(fewPoints) - 1e-9);
  auto distance = [&](int64_t divisor) {
    return std::abs(std::log(static_cast<double>(divisor)) - digits / products);
  };
  int64_t best = 1;
  for (int64_t i = 2; i * i <= length; ++i)
    for (int64_t divisor : {i, length / i})
      if (length % i == 0 && (best == 1 || distance(divisor) < distance(best)))
        best = divisor;
  return best;
}

static int64_t largestPrime(int64_t length) {
  int64_t largest = 1;
  for (int64_t i = 2; i * i <= length; ++i)
    while (length % i == 0) {
      largest = i;
      length /= i;
    }
  return std::max(largest, length);
}

/// Transforms along the last dimension, without dividing by the number of
/// points.
static Complex transform(Emitter &b, const Complex &x, int sign) {
  if (!x.real)
    return {};
  Shape shape(Emitter::shapeOf(x.real));
  auto rank = static_cast<int64_t>(shape.size());
  int64_t length = shape.back();
  int64_t rows = divisorOf(length), columns = length / rows;
  if (length <= fewPoints || rows == 1)
    return product(b, x, waves(b, length, length, length, sign),
                   [&](Value part, Value matrix) {
                     return b.dot(part, matrix, {{}, {}, {rank - 1}, {0}});
                   });
  // Point i is in row i / columns.
  Shape grid(shape);
  grid.back() = rows;
  grid.push_back(columns);
  std::vector<int64_t> exchange;
  for (int64_t i = 0; i < rank - 1; ++i)
    exchange.push_back(i);
  exchange.push_back(rank);
  exchange.push_back(rank - 1);
  auto turned = [&](Value part) { return b.transpose(part, exchange); };
  Complex y = transform(
      b, both(x, [&](Value part) { return turned(b.reshape(part, grid)); }),
      sign);
  // [.., columns, rows]
  y = product(b, y, waves(b, columns, rows, length, sign),
              [&](Value part, Value wave) { return b.mul(part, wave); });
  y = transform(b, both(y, turned), sign);
  // [.., rows, columns]: element k of row r is number k rows + r.
  return both(y, [&](Value part) { return b.reshape(turned(part), shape); });
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

static bool checkLength(Node &n, int64_t length) {
  if (length < 1 || length > maxPoints)
    n.unsupported("a transform of " + llvm::Twine(length) + " points");
  else if (int64_t prime = largestPrime(length); prime > maxPrime)
    n.unsupported("a transform of " + llvm::Twine(length) +
                  " points, of which " + llvm::Twine(prime) + " is prime");
  return !n.failed();
}

/// The last dimension, of 1 or 2 elements, as parts.
static Complex partsOf(Emitter &b, Value x) {
  if (!x)
    return {};
  int64_t rank = Emitter::rankOf(x);
  auto part = [&](int64_t i) {
    return b.reshape(b.sliceDim(x, rank - 1, i, 1),
                     Emitter::shapeOf(x).drop_back());
  };
  return {part(0), Emitter::shapeOf(x).back() == 2 ? part(1) : Value()};
}

static Value fromParts(Emitter &b, const Complex &x) {
  if (!x.real)
    return {};
  Shape shape(Emitter::shapeOf(x.real));
  shape.push_back(1);
  Value imaginary = x.imaginary
                        ? x.imaginary
                        : b.splat(DType::F64, Emitter::shapeOf(x.real), 0);
  return b.concat({b.reshape(x.real, shape), b.reshape(imaginary, shape)},
                  static_cast<int64_t>(shape.size()) - 1);
}

/// The whole of what `length / 2 + 1` points begin: the others mirror them.
static Complex mirrored(Emitter &b, const Complex &x, int64_t length) {
  int64_t dim = x.real ? Emitter::rankOf(x.real) - 1 : 0;
  int64_t more = length - (length / 2 + 1);
  auto whole = [&](Value part, bool conjugate) {
    if (!part || more == 0)
      return part;
    Value tail = b.sliceDim(part, dim, more, more, -1);
    if (conjugate)
      tail = b.unary(UnaryKind::neg, tail);
    return b.concat({part, tail}, dim);
  };
  return {whole(x.real, false), whole(x.imaginary, true)};
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
  if (n.failed() || !checkLength(n, length))
    return;
  DType type = Emitter::typeOf(x);
  Value points = resized(n, x, axis, half ? length / 2 + 1 : length);
  // The transformed dimension comes last, then returns.
  std::vector<int64_t> last, back;
  for (int64_t i = 0; i < rank - 1; ++i)
    if (i != axis)
      last.push_back(i);
  last.push_back(axis);
  for (int64_t i = 0; i < rank - 2; ++i)
    back.push_back(i);
  back.insert(back.begin() + axis, rank - 2);
  Complex y = both(partsOf(n.b, n.b.cast(points, DType::F64)),
                   [&](Value part) { return n.b.transpose(part, last); });
  if (half)
    y = mirrored(n.b, y, length);
  y = transform(n.b, y, inverse ? 1 : -1);
  y = both(y, [&](Value part) {
    if (oneSided && !inverse)
      part = n.b.sliceDim(part, rank - 2, 0, length / 2 + 1);
    if (inverse)
      part = n.b.mul(part, 1 / static_cast<double>(length));
    return n.b.transpose(part, back);
  });
  Value result = fromParts(n.b, y);
  if (half)
    result = n.b.sliceDim(result, rank - 1, 0, 1);
  n.out(n.b.cast(result, type));
}

static void importSTFT(Node &n) {
  Value x = n.in(0), window = n.optional(2);
  std::optional<int64_t> step = n.knownInt(1, "frame_step");
  if (!x || !step || n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t length = 0;
  if (n.has(3))
    length = n.knownInt(3, "frame_length").value_or(0);
  else if (window)
    length = Emitter::numElementsOf(window);
  if (n.failed())
    return;
  bool fits = (shape.size() == 2 || shape.size() == 3) && *step >= 1 &&
              length >= 1 && shape[1] >= length &&
              (shape.size() == 2 || shape[2] == 1 || shape[2] == 2) &&
              (!window || (Emitter::rankOf(window) == 1 &&
                           Emitter::shapeOf(window)[0] == length));
  if (!fits) {
    n.fail("signal [" + shapeToString(shape) + "], frame_step " +
           llvm::Twine(*step) + ", frame_length " + llvm::Twine(length) +
           " and window do not fit");
    return;
  }
  if (!checkLength(n, length))
    return;
  bool oneSided = n.intAttr("onesided", 1);
  int64_t frames = (shape[1] - length) / *step + 1;
  DType type = Emitter::typeOf(x);
  Value signal = n.b.cast(x, DType::F64);
  if (shape.size() == 2)
    signal = n.b.reshape(signal, {shape[0], shape[1], 1});
  Value index = n.b.add(
      n.b.mul(n.b.iota(DType::I64, {frames, 1}, 0), static_cast<double>(*step)),
      n.b.iota(DType::I64, {1, length}, 1));
  Complex y = both(partsOf(n.b, signal), [&](Value part) {
    Value framed = n.b.gather(part, index, 1);
    return window ? n.b.mul(framed, n.b.cast(window, DType::F64)) : framed;
  });
  y = both(transform(n.b, y, -1), [&](Value part) {
    return oneSided ? n.b.sliceDim(part, 2, 0, length / 2 + 1) : part;
  });
  n.out(n.b.cast(fromParts(n.b, y), type));
}

static const OpEntry entries[] = {
    {"DFT", importDFT},
    {"STFT", importSTFT},
};

void ax::import::addSignal(OpTable &table) { table.add(entries); }
