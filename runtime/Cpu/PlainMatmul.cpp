//===- PlainMatmul.cpp - Matrix products of any element type --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuLibrary.h"
#include "PlainMath.h"
#include "Threads.h"

#include "ax/Runtime/MatmulView.h"
#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

namespace ax::rt {

namespace {

/// Rows that one thread makes at a time.
constexpr int64_t blockRows = 16;

/// A product of A and B; R is the type of the bias, the residual and the
/// result.
template <typename A, typename R, typename B = A>
class PlainMatmul : public CpuOp {
public:
  using S = SumType<A>;

  explicit PlainMatmul(MatmulDesc descIn)
      : desc(std::move(descIn)), rank(desc.c.sizes.size()),
        m(desc.c.sizes[rank - 2]), n(desc.c.sizes[rank - 1]),
        k(desc.a.sizes[rank - 1]) {
    // b of one batch, then for every thread rows of a and of c.
    threadElements = blockRows * (k + n);
    workspaceBytes = static_cast<int64_t>(sizeof(S)) *
                     (k * n + threadElements * getNumThreads());
    threads = getNumThreads();
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const A *a = static_cast<const A *>(arguments[0]);
    const B *b = static_cast<const B *>(arguments[1]);
    int next = 2;
    const R *bias =
        desc.hasBias ? static_cast<const R *>(arguments[next++]) : nullptr;
    const R *residual =
        desc.hasResidual ? static_cast<const R *>(arguments[next++]) : nullptr;
    R *c = static_cast<R *>(arguments[next]);
    int64_t batches = 1;
    for (size_t d = 0; d + 2 < rank; ++d)
      batches *= desc.c.sizes[d];
    for (int64_t batch = 0; batch < batches; ++batch)
      runBatch(a + offset(desc.a, batch), b + offset(desc.b, batch), bias,
               residual ? residual + offset(desc.residual, batch) : nullptr,
               c + offset(desc.c, batch), static_cast<S *>(workspace));
    return llvm::Error::success();
  }

private:
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
  int64_t rowStride(const TensorDesc &view) const {
    return view.strides[rank - 2];
  }
  int64_t columnStride(const TensorDesc &view) const {
    return view.strides[rank - 1];
  }

  void runBatch(const A *a, const B *b, const R *bias, const R *residual, R *c,
                S *workspace) {
    parallelFor(k, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < n; ++j)
          workspace[i * n + j] =
              widen<S>(b[i * rowStride(desc.b) + j * columnStride(desc.b)]);
    });
    // One part of the scratch memory per range: at most one range per thread.
    int64_t blocks = llvm::divideCeil(m, blockRows);
    int64_t perRange = llvm::divideCeil(blocks, threads);
    parallelFor(llvm::divideCeil(blocks, perRange ? perRange : 1), 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t range = begin; range < end; ++range)
                    for (int64_t block = range * perRange;
                         block < std::min(blocks, (range + 1) * perRange);
                         ++block)
                      runRows(block * blockRows, a, workspace, bias, residual,
                              c, workspace + k * n + range * threadElements);
                });
  }

  void runRows(int64_t first, const A *a, const S *b, const R *bias,
               const R *residual, R *c, S *scratch) {
    int64_t rows = std::min(blockRows, m - first);
    S *wide = scratch, *sums = scratch + blockRows * k;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < k; ++i)
        wide[r * k + i] = widen<S>(
            a[(first + r) * rowStride(desc.a) + i * columnStride(desc.a)]);
    multiply(wide, b, n, sums, rows, k, n);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < n; ++j) {
        S sum = sums[r * n + j];
        if (bias)
          sum += widen<S>(bias[j]);
        sum = applyActivation(desc.activation, sum);
        if (residual)
          sum += widen<S>(residual[(first + r) * rowStride(desc.residual) +
                                   j * columnStride(desc.residual)]);
        c[(first + r) * rowStride(desc.c) + j * columnStride(desc.c)] =
            narrow<R>(sum);
      }
  }

  MatmulDesc desc;
  size_t rank;
  int64_t m, n, k;
  int64_t threadElements = 0;
  int64_t threads = 1;
};

/// What `prepareProducts` makes an operation of.
template <typename T, typename R>
using OfOneType = PlainMatmul<T, R>;

template <typename A, typename B>
ExpectedCpuOp ofFloat8(const MatmulDesc &desc) {
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

} // namespace

ExpectedCpuOp preparePlainMatmul(const MatmulDesc &desc) {
  if (!isSupported(desc.c.dtype, desc.activation))
    return makeError(ExitCode::Unsupported, "no such matrix product");
  if (isFloat8(desc.a.dtype))
    return prepareFloat8(collapse(desc));
  return prepareProducts<OfOneType>(collapse(desc), desc.a.dtype, desc.c.dtype);
}

} // namespace ax::rt
