//===- Contraction.cpp - Interpreting dot and linear ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Kernels.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace ax::interpreter {

template <typename W>
static std::vector<W> widen(const HostTensor &tensor) {
  std::vector<W> result(tensor.numElements());
  visitDType(tensor.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    llvm::transform(tensor.values<T>(), result.begin(),
                    [](T value) { return static_cast<W>(load(value)); });
  });
  return result;
}

/// c[b, i, j] += sum over k of x[b, i, k] y[b, k, j].
template <typename W>
static void multiply(const W *x, const W *y, W *c, int64_t batches, int64_t m,
                     int64_t k, int64_t n) {
  for (int64_t row = 0; row < batches * m; ++row)
    for (int64_t i = 0; i < k; ++i) {
      W factor = x[row * k + i];
      const W *from = y + (row / m * k + i) * n;
      W *to = c + row * n;
      for (int64_t j = 0; j < n; ++j)
        to[j] += factor * from[j];
    }
}

/// Extents of the dimensions in `dims`, multiplied.
static int64_t extent(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims)
    result *= shape[dim];
  return result;
}

static HostTensor dot(DotOp op, Operands in) {
  ArrayRef<int64_t> lhsBatch = op.getLhsBatch(), rhsBatch = op.getRhsBatch();
  ArrayRef<int64_t> lhsContract = op.getLhsContract();
  ArrayRef<int64_t> rhsContract = op.getRhsContract();
  auto isFree = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    return [=](int64_t dim) {
      return !llvm::is_contained(batch, dim) &&
             !llvm::is_contained(contract, dim);
    };
  };
  auto ordered = [&](const HostTensor &x, ArrayRef<int64_t> first,
                     ArrayRef<int64_t> second, auto free, bool freeLast) {
    SmallVector<int64_t> order(first), rest;
    for (int64_t dim = 0; dim < x.getRank(); ++dim)
      if (free(dim))
        rest.push_back(dim);
    order.append(freeLast ? SmallVector<int64_t>(second) : rest);
    order.append(freeLast ? rest : SmallVector<int64_t>(second));
    return transposed(x, order);
  };
  HostTensor lhs = ordered(in[0], lhsBatch, lhsContract,
                           isFree(lhsBatch, lhsContract), false);
  HostTensor rhs = ordered(in[1], rhsBatch, rhsContract,
                           isFree(rhsBatch, rhsContract), true);
  int64_t batches = extent(in[0].getShape(), lhsBatch);
  int64_t k = extent(in[0].getShape(), lhsContract);
  HostTensor to = emptyLike(op.getResult());
  if (to.numElements() == 0 || k == 0)
    return to;
  int64_t m = lhs.numElements() / (batches * k);
  int64_t n = rhs.numElements() / (batches * k);
  if (isFloat(to.getType())) {
    std::vector<double> sums(to.numElements());
    multiply(toDoubles(lhs).data(), toDoubles(rhs).data(), sums.data(), batches,
             m, k, n);
    storeDoubles(sums, to);
    return to;
  }
  std::vector<uint64_t> sums(to.numElements());
  multiply(widen<uint64_t>(lhs).data(), widen<uint64_t>(rhs).data(),
           sums.data(), batches, m, k, n);
  for (auto [i, sum] : llvm::enumerate(sums))
    to.setInt(i, static_cast<int64_t>(sum));
  return to;
}

static HostTensor linear(LinearOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  HostTensor w = op.getTransposeW() ? transposed(in[1], {1, 0}) : in[1];
  int64_t k = w.getShape()[0], n = w.getShape()[1];
  std::vector<double> sums(to.numElements());
  if (!sums.empty())
    multiply(toDoubles(in[0]).data(), toDoubles(w).data(), sums.data(), 1,
             to.numElements() / n, k, n);
  storeDoubles(sums, to);
  return to;
}

std::optional<Results> interpretContraction(Operation *op, Operands in) {
  return llvm::TypeSwitch<Operation *, std::optional<Results>>(op)
      .Case([&](DotOp o) { return Results{dot(o, in)}; })
      .Case([&](LinearOp o) { return Results{linear(o, in)}; })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
