//===- TopK.cpp - The largest or smallest elements ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuLibrary.h"
#include "Threads.h"

#include "ax/Support/Error.h"

#include <algorithm>
#include <numeric>

namespace ax::rt {

namespace {

template <typename T>
class TopK : public CpuOp {
public:
  explicit TopK(TopKDesc descIn)
      : desc(std::move(descIn)), size(desc.x.sizes[dimension()]) {
    for (size_t d = 0; d < desc.x.sizes.size(); ++d)
      (d < dimension() ? outer : inner) *=
          d == dimension() ? 1 : desc.x.sizes[d];
    threads = getNumThreads();
    workspaceBytes = threads * size * static_cast<int64_t>(sizeof(int64_t));
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    const T *x = static_cast<const T *>(arguments[0]);
    T *values = static_cast<T *>(arguments[1]);
    auto *indices = static_cast<int64_t *>(arguments[2]);
    parallelUnits(outer * inner, threads, [&](int64_t row, int64_t part) {
      runRow(row, x, values, indices,
             static_cast<int64_t *>(workspace) + part * size);
    });
    return llvm::Error::success();
  }

private:
  size_t dimension() const { return static_cast<size_t>(desc.dim); }

  static bool isNan(T value) { return value != value; }
  /// a comes before b in the result.
  bool before(T a, T b) const {
    if (isNan(a) || isNan(b))
      return desc.smallest ? isNan(b) && !isNan(a) : isNan(a) && !isNan(b);
    return desc.smallest ? a < b : a > b;
  }

  void runRow(int64_t row, const T *x, T *values, int64_t *indices,
              int64_t *order) const {
    int64_t place = row / inner * inner * size + row % inner;
    const T *from = x + place;
    std::iota(order, order + size, 0);
    std::partial_sort(order, order + desc.k, order + size,
                      [&](int64_t a, int64_t b) {
                        T left = from[a * inner], right = from[b * inner];
                        if (before(left, right))
                          return true;
                        return !before(right, left) && a < b;
                      });
    int64_t to = row / inner * inner * desc.k + row % inner;
    for (int64_t i = 0; i < desc.k; ++i) {
      values[to + i * inner] = from[order[i] * inner];
      indices[to + i * inner] = order[i];
    }
  }

  TopKDesc desc;
  int64_t size, outer = 1, inner = 1, threads = 1;
};

} // namespace

ExpectedCpuOp prepareTopK(const TopKDesc &desc) {
  if (!desc.x.isDense() || desc.k < 0 ||
      desc.k > desc.x.sizes[static_cast<size_t>(desc.dim)])
    return makeError(ExitCode::Unsupported, "impossible k or strides");
  return visitDType(desc.x.dtype, [&](auto tag) -> ExpectedCpuOp {
    return std::make_unique<TopK<typename decltype(tag)::type>>(desc);
  });
}

} // namespace ax::rt
