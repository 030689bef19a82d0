//===- ColumnProduct.cpp - A product as cuBLASLt is asked for it ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ColumnProduct.h"

#include "ax/Runtime/MatmulView.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ax::rt::cuda {

namespace {

struct Dim {
  int64_t size, stride;
};

/// Where `rows` lie one behind another, and columns do not overlap. With
/// `mayRepeat`, all columns may be the same.
std::optional<ColumnMatrix> asItLies(DType dtype, Dim rows, Dim columns,
                                     bool mayRepeat = false) {
  if (rows.size != 1 && rows.stride != 1)
    return std::nullopt;
  int64_t leading = columns.size == 1 ? rows.size : columns.stride;
  if (leading < rows.size && !(mayRepeat && leading == 0))
    return std::nullopt;
  return ColumnMatrix{dtype, rows.size, columns.size, leading};
}

std::optional<ColumnMatrix> asFactor(DType dtype, Dim rows, Dim columns) {
  if (auto matrix = asItLies(dtype, rows, columns))
    return matrix;
  auto matrix = asItLies(dtype, columns, rows);
  if (matrix)
    matrix->isTransposed = true;
  return matrix;
}

/// Of factors of eight bits, what columns of the result and terms of a sum are
/// multiples of, and the bytes of which beginnings of rows are.
constexpr int64_t eightBitMultiple = 16;
/// Bytes of which the beginnings of columns are multiples in what an activation
/// is of.
constexpr int64_t inputAlignment = 16;

class Translator {
public:
  explicit Translator(const MatmulDesc &desc)
      : desc(desc), inner(desc.c.sizes.size() - 1), outer(inner - 1) {}

  /// Returns what cuBLASLt does not do; empty: it does it.
  std::string findObstacle() const {
    DType factor = desc.a.dtype, sum = desc.c.dtype;
    if (isFloat8(factor))
      return findObstacleOfFloat8();
    if (isOfIntegers(desc))
      return findObstacleOfIntegers();
    bool isNarrow = factor == DType::F16 || factor == DType::BF16;
    if (!isNarrow && factor != DType::F32 && factor != DType::F64)
      return "of integers it multiplies those of eight bits with a sign alone, "
             "in i32";
    if (sum != factor && !(isNarrow && sum == DType::F32))
      return "it gives no such result of these factors";
    bool isKnown = desc.activation == Activation::None ||
                   desc.activation == Activation::Relu ||
                   desc.activation == Activation::GeluTanh;
    if (!isKnown)
      return "it has no such activation";
    if (factor == DType::F64 && desc.activation == Activation::GeluTanh)
      return "its GELU has fewer digits than f64";
    if (desc.hasResidual && desc.activation != Activation::None)
      return "it adds before an activation, and not behind it";
    if (desc.hasInput() &&
        (desc.activation != Activation::GeluTanh || byteSize(sum) != 2))
      return "it keeps what is put into an activation, and has gradients, of "
             "GELU by tanh in 16 bits only";
    return findObstacleOfSizes();
  }

  /// Nothing where a matrix lies in no way that cuBLASLt knows.
  std::optional<ColumnProduct> translate() const {
    auto a = asFactor(desc.b.dtype, dim(desc.b, inner), dim(desc.b, outer));
    auto b = asFactor(desc.a.dtype, dim(desc.a, inner), dim(desc.a, outer));
    auto d = asItLies(desc.c.dtype, dim(desc.c, inner), dim(desc.c, outer));
    auto c = d;
    if (desc.hasResidual)
      c = asItLies(desc.residual.dtype, dim(desc.residual, inner),
                   dim(desc.residual, outer), /*mayRepeat=*/true);
    if (!a || !b || !c || !d)
      return std::nullopt;
    ColumnProduct product;
    if (desc.hasInput()) {
      product.input = asItLies(desc.input.dtype, dim(desc.input, inner),
                               dim(desc.input, outer));
      if (!product.input)
        return std::nullopt;
    }
    product.a = *a;
    product.b = *b;
    product.c = *c;
    product.d = *d;
    addBatches(product);
    if (hasEightBits(desc) && !areAligned(product))
      return std::nullopt;
    if (isOfIntegers(desc) &&
        (!product.a.isTransposed || product.b.isTransposed))
      return std::nullopt;
    if (product.input && !isInputAligned(product))
      return std::nullopt;
    return product;
  }

private:
  std::string findObstacleOfSizes() const {
    if (desc.a.sizes[inner] == 0)
      return "it has no sums of nothing";
    for (const TensorDesc *view : {&desc.a, &desc.b, &desc.c})
      for (int64_t size : view->sizes)
        if (size > INT32_MAX)
          return "a dimension is too large for it";
    return "";
  }
  /// In which order factors are to lie depends on the card: the library says
  /// it.
  std::string findObstacleOfFloat8() const {
    if (desc.a.dtype == DType::F8E5M2 && desc.b.dtype == DType::F8E5M2)
      return "one of two factors of eight bits is f8E4M3FN";
    if (desc.hasBias || desc.activation != Activation::None)
      return "it does neither a bias nor an activation in f32 along with "
             "factors of eight bits";
    return findObstacleOfEightBits();
  }
  std::string findObstacleOfIntegers() const {
    if (desc.hasBias || desc.hasResidual || desc.activation != Activation::None)
      return "it does nothing along with sums of integers";
    return findObstacleOfEightBits();
  }
  std::string findObstacleOfEightBits() const {
    if (desc.a.sizes[inner] % eightBitMultiple != 0 ||
        desc.b.sizes[inner] % eightBitMultiple != 0)
      return "of factors of eight bits, the columns of the result and what is "
             "summed over are multiples of 16";
    return findObstacleOfSizes();
  }
  static Dim dim(const TensorDesc &view, size_t d) {
    return {view.sizes[d], view.strides[d]};
  }
  static bool areAligned(const ColumnProduct &product) {
    auto isAligned = [](int64_t bytes) {
      return bytes % eightBitMultiple == 0;
    };
    bool result = true;
    for (const ColumnMatrix *matrix :
         {&product.a, &product.b, &product.c, &product.d})
      for (int64_t step : {matrix->leading, matrix->batchStride})
        result &= isAligned(step * byteSize(matrix->dtype));
    for (const ColumnProduct::Call &call : product.calls)
      for (int64_t bytes : {call.a, call.b, call.c, call.d})
        result &= isAligned(bytes);
    return result;
  }
  static bool isInputAligned(const ColumnProduct &product) {
    auto isAligned = [&](int64_t elements) {
      return elements * byteSize(product.input->dtype) % inputAlignment == 0;
    };
    return isAligned(product.input->leading) &&
           isAligned(product.input->batchStride) &&
           llvm::all_of(product.calls, [](const ColumnProduct::Call &call) {
             return call.input % inputAlignment == 0;
           });
  }
  static int64_t batchStride(const TensorDesc &view, size_t d) {
    return view.sizes[d] == 1 ? 0 : view.strides[d];
  }

  /// The longest dimension of the batch is done by one call.
  void addBatches(ColumnProduct &product) const {
    const std::vector<int64_t> &sizes = desc.c.sizes;
    const TensorDesc &residual = desc.hasResidual ? desc.residual : desc.c;
    const TensorDesc &input = desc.hasInput() ? desc.input : desc.c;
    auto end = sizes.begin() + static_cast<ptrdiff_t>(outer);
    size_t strided = static_cast<size_t>(std::max_element(sizes.begin(), end) -
                                         sizes.begin());
    if (outer > 0) {
      product.batch = sizes[strided];
      product.a.batchStride = batchStride(desc.b, strided);
      product.b.batchStride = batchStride(desc.a, strided);
      product.c.batchStride = batchStride(residual, strided);
      product.d.batchStride = batchStride(desc.c, strided);
      if (product.input)
        product.input->batchStride = batchStride(input, strided);
    }
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
      return;
    product.calls.emplace_back();
    for (size_t d = 0; d < outer; ++d) {
      if (d == strided)
        continue;
      std::vector<ColumnProduct::Call> calls;
      for (ColumnProduct::Call call : product.calls)
        for (int64_t i = 0; i < sizes[d]; ++i) {
          calls.push_back(call);
          call.a += batchStride(desc.b, d) * byteSize(desc.b.dtype);
          call.b += batchStride(desc.a, d) * byteSize(desc.a.dtype);
          call.c += batchStride(residual, d) * byteSize(residual.dtype);
          call.d += batchStride(desc.c, d) * byteSize(desc.c.dtype);
          call.input += batchStride(input, d) * byteSize(input.dtype);
        }
      product.calls = std::move(calls);
    }
  }

  const MatmulDesc &desc;
  /// The last two dimensions.
  size_t inner, outer;
};

} // namespace

bool hasEightBits(const MatmulDesc &desc) {
  return byteSize(desc.a.dtype) == 1;
}

bool isOfIntegers(const MatmulDesc &desc) {
  return desc.a.dtype == DType::I8 && desc.b.dtype == DType::I8 &&
         desc.c.dtype == DType::I32;
}

llvm::Expected<ColumnProduct> toColumns(const MatmulDesc &desc) {
  const MatmulDesc simple = collapse(desc);
  std::string obstacle = Translator(simple).findObstacle();
  if (obstacle.empty()) {
    // A batch that became rows may be what has no columns any more.
    for (const MatmulDesc *form : {&simple, &desc})
      if (std::optional<ColumnProduct> product = Translator(*form).translate())
        return *product;
    obstacle = "neither rows nor columns of a matrix lie one behind another";
    if (isOfIntegers(desc))
      obstacle = "what is summed over does not lie innermost in both factors";
    if (hasEightBits(desc) || desc.hasInput())
      obstacle += ", or they do not begin at multiples of 16 bytes";
  }
  return makeErrorf(ExitCode::Unsupported, "cuBLASLt: {0}", obstacle);
}

std::string toText(const ColumnProduct &product) {
  std::string text = std::to_string(product.batch) + " of";
  auto add = [&](const ColumnMatrix &matrix) {
    text += llvm::formatv(" {0} {1}x{2}{3} by {4} and {5}",
                          toString(matrix.dtype), matrix.rows, matrix.columns,
                          matrix.isTransposed ? "^T" : "", matrix.leading,
                          matrix.batchStride);
  };
  for (const ColumnMatrix *matrix :
       {&product.a, &product.b, &product.c, &product.d})
    add(*matrix);
  if (product.input)
    add(*product.input);
  return text;
}

} // namespace ax::rt::cuda
