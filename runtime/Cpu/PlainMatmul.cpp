//===- PlainMatmul.cpp - Matrix products of any element type --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "ax/Runtime/MatmulView.h"
#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// Rows that one thread makes at a time.
constexpr int64_t blockRows = 24;

/// Fewer columns are not worth a vector, most of which would be zeros.
constexpr int64_t fewColumns = 4;

/// A product of A and B; R is the type of the bias, the residual and the
/// result.
template <typename A, typename R, typename B = A>
class PlainMatmul : public CpuOp {
public:
  using S = SumType<A>;

  explicit PlainMatmul(MatmulDesc descIn)
      : desc(std::move(descIn)), rank(desc.c.sizes.size()),
        m(desc.c.sizes[rank - 2]), n(desc.c.sizes[rank - 1]),
        k(desc.a.sizes[rank - 1]),
        width(n < fewColumns ? n : llvm::alignTo(n, wholeVectors<S>())) {
    // b of one batch, then for every thread rows of a and of c.
    threadElements = blockRows * (k + width);
    workspaceBytes = static_cast<int64_t>(sizeof(S)) *
                     (k * width + threadElements * getNumThreads());
    threads = getNumThreads();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    Places places;
    places.a = static_cast<const A *>(arguments[0]);
    places.b = static_cast<const B *>(arguments[1]);
    int next = 2;
    if (desc.hasBias)
      places.bias = static_cast<const R *>(arguments[next++]);
    if (desc.hasResidual)
      places.residual = static_cast<const R *>(arguments[next++]);
    if (desc.form == ActivationForm::Gradient)
      places.input = static_cast<R *>(arguments[next++]);
    places.c = static_cast<R *>(arguments[next++]);
    if (desc.form == ActivationForm::ValueAndInput)
      places.input = static_cast<R *>(arguments[next]);
    int64_t batches = 1;
    bool isOneMatrix = true;
    for (size_t d = 0; d + 2 < rank; ++d) {
      batches *= desc.c.sizes[d];
      isOneMatrix &= desc.b.sizes[d] == 1;
    }
    // Rows of all batches meet the one b.
    int64_t together = isOneMatrix ? batches : 1;
    for (int64_t batch = 0; batch < batches; batch += together)
      runBatches(batch, together, places, static_cast<S *>(workspace));
    return llvm::Error::success();
  }

private:
  /// Null where the product has no such.
  struct Places {
    const A *a = nullptr;
    const B *b = nullptr;
    const R *bias = nullptr, *residual = nullptr;
    R *input = nullptr, *c = nullptr;
  };

  Places ofBatch(Places places, int64_t batch) const {
    places.a += offset(desc.a, batch);
    places.b += offset(desc.b, batch);
    places.c += offset(desc.c, batch);
    if (places.residual)
      places.residual += offset(desc.residual, batch);
    if (places.input)
      places.input += offset(desc.input, batch);
    return places;
  }
  /// Start of batch `batch` of the result in `view`.
  int64_t offset(const TensorDesc &view, int64_t batch) const {
    int64_t result = 0;
    for (size_t d = rank - 2; d-- > 0;) {
      int64_t index = batch % desc.c.sizes[d];
      batch /= desc.c.sizes[d];
      if (view.sizes[d] != 1)
        result += index * view.strides[d];
    }
    return result;
  }
  /// Of element (i, j) of a matrix.
  int64_t place(const TensorDesc &view, int64_t i, int64_t j) const {
    return i * view.strides[rank - 2] + j * view.strides[rank - 1];
  }

  void runBatches(int64_t first, int64_t count, const Places &places,
                  S *workspace) {
    const B *b = places.b + offset(desc.b, first);
    parallelFor(k, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        S *row = workspace + i * width;
        for (int64_t j = 0; j < n; ++j)
          row[j] = widen<S>(b[place(desc.b, i, j)]);
        std::fill(row + n, row + width, S(0));
      }
    });
    int64_t rows = count * m;
    parallelUnits(llvm::divideCeil(rows, blockRows), threads,
                  [&](int64_t block, int64_t part) {
                    int64_t row = block * blockRows;
                    runRows(first * m + row, std::min(blockRows, rows - row),
                            places, workspace,
                            workspace + k * width + part * threadElements);
                  });
  }

  /// Calls fn(r, row, places) for `count` rows from number `first` of all
  /// batches on: r from 0, its row in the batch, and where that batch is.
  template <typename Fn>
  void forEachRow(int64_t first, int64_t count, const Places &places, Fn fn) {
    int64_t batch = first / m, row = first % m;
    for (int64_t r = 0; r < count; row = 0, ++batch) {
      Places here = ofBatch(places, batch);
      for (; r < count && row < m; ++r, ++row)
        fn(r, row, here);
    }
  }

  void runRows(int64_t first, int64_t rows, const Places &places, const S *b,
               S *scratch) {
    S *wide = scratch, *sums = scratch + blockRows * k;
    forEachRow(first, rows, places,
               [&](int64_t r, int64_t row, const Places &here) {
                 const A *from = here.a + place(desc.a, row, 0);
                 int64_t step = desc.a.strides[rank - 1];
                 for (int64_t i = 0; i < k; ++i)
                   wide[r * k + i] = widen<S>(from[i * step]);
               });
    if (n < fewColumns)
      multiply(wide, b, width, sums, rows, k, width);
    else
      multiplyWide(wide, b, sums, rows, k, width);
    forEachRow(first, rows, places,
               [&](int64_t r, int64_t row, const Places &here) {
                 finishRow(sums + r * width, row, here);
               });
  }

  /// Most have nothing but a residual, which is added in vectors.
  void finishRow(const S *sums, int64_t row, const Places &places) {
    R *c = places.c + place(desc.c, row, 0);
    int64_t step = desc.c.strides[rank - 1];
    bool isPlain = !places.bias && !places.input &&
                   desc.activation == Activation::None && step == 1;
    if (!isPlain) {
      for (int64_t j = 0; j < n; ++j)
        c[j * step] = narrow<R>(finish(sums[j], row, j, places));
    } else if (!places.residual) {
      for (int64_t j = 0; j < n; ++j)
        c[j] = narrow<R>(sums[j]);
    } else {
      const R *residual = places.residual + place(desc.residual, row, 0);
      int64_t apart = desc.residual.strides[rank - 1];
      for (int64_t j = 0; j < n; ++j)
        c[j] = narrow<R>(sums[j] + widen<S>(residual[j * apart]));
    }
  }

  /// What becomes of a sum of products.
  S finish(S sum, int64_t i, int64_t j, const Places &places) {
    if (places.bias)
      sum += widen<S>(places.bias[j]);
    if (places.input) {
      R &input = places.input[place(desc.input, i, j)];
      if (desc.form == ActivationForm::ValueAndInput)
        input = narrow<R>(sum);
      else if constexpr (!std::is_integral_v<S>)
        return sum * activationDerivative(desc.activation, widen<S>(input));
    }
    sum = applyActivation(desc.activation, sum);
    if (places.residual)
      sum += widen<S>(places.residual[place(desc.residual, i, j)]);
    return sum;
  }

  MatmulDesc desc;
  size_t rank;
  int64_t m, n, k;
  /// Columns of b and of the sums in the workspace.
  int64_t width;
  int64_t threadElements = 0;
  int64_t threads = 1;
};

/// What `prepareProducts` makes an operation of.
template <typename T, typename R>
using OfOneType = PlainMatmul<T, R>;

template <typename A, typename B>
ExpectedCpuOp ofFloat8(const MatmulDesc &desc) {
  if (desc.c.dtype == DType::BF16)
    return std::make_unique<PlainMatmul<A, BFloat16, B>>(desc);
  return std::make_unique<PlainMatmul<A, float, B>>(desc);
}

/// Factors of eight bits, whose types may differ.
ExpectedCpuOp prepareFloat8(const MatmulDesc &desc) {
  bool isWideA = desc.a.dtype == DType::F8E5M2;
  if (desc.b.dtype == DType::F8E5M2)
    return isWideA ? ofFloat8<Float8E5M2, Float8E5M2>(desc)
                   : ofFloat8<Float8E4M3FN, Float8E5M2>(desc);
  return isWideA ? ofFloat8<Float8E5M2, Float8E4M3FN>(desc)
                 : ofFloat8<Float8E4M3FN, Float8E4M3FN>(desc);
}

/// Integers of eight bits, whose types may differ, in i32.
template <typename A>
ExpectedCpuOp ofIntegers(const MatmulDesc &desc) {
  if (desc.b.dtype == DType::I8)
    return std::make_unique<PlainMatmul<A, int32_t, int8_t>>(desc);
  return std::make_unique<PlainMatmul<A, int32_t, uint8_t>>(desc);
}

} // namespace

ExpectedCpuOp preparePlainMatmul(const MatmulDesc &desc) {
  if (!isSupported(desc.c.dtype, desc.activation))
    return makeError(ExitCode::Unsupported, "no such matrix product");
  if (isFloat8(desc.a.dtype))
    return prepareFloat8(collapse(desc));
  if (byteSize(desc.a.dtype) == 1 && desc.c.dtype == DType::I32)
    return desc.a.dtype == DType::I8 ? ofIntegers<int8_t>(collapse(desc))
                                     : ofIntegers<uint8_t>(collapse(desc));
  return prepareProducts<OfOneType>(collapse(desc), desc.a.dtype, desc.c.dtype);
}

} // namespace ax::rt
