//===- GroupedWeightGradient.cpp - Gradients of groups' matrices ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradient of a group's matrix is x^T y over the group's rows, which are
// brought together: one product along the rows, of a number that was prepared.
// Rows that there are not are zeros.
//
//===----------------------------------------------------------------------===//

#include "CpuLibrary.h"
#include "RowsByGroup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace ax::rt {

namespace {

constexpr int64_t alignment = 64;

class GroupedWeightGradient : public CpuOp {
public:
  GroupedWeightGradient(const GroupedMatmulDesc &desc,
                        std::vector<int64_t> sizesIn,
                        std::vector<std::unique_ptr<CpuOp>> productsIn)
      : x(RowCopy::of(desc.x)), y(RowCopy::of(desc.y)),
        indexType(desc.groups.dtype), groups(desc.w.sizes[0]),
        isSwapped(!desc.w.isDense()), byGroup(desc.x.sizes[0], groups),
        sizes(std::move(sizesIn)), products(std::move(productsIn)),
        matrixBytes(desc.w.sizes[1] * desc.w.sizes[2] *
                    byteSize(desc.w.dtype)) {
    int64_t most = sizes.empty() ? 0 : sizes.back(), more = 0;
    orderBytes = llvm::alignTo(byGroup.getBytes(), alignment);
    xBytes = llvm::alignTo(most * x.rowBytes(), alignment);
    yBytes = llvm::alignTo(most * y.rowBytes(), alignment);
    for (auto &product : products)
      more = std::max(more, product->getWorkspaceBytes());
    workspaceBytes = orderBytes + xBytes + yBytes + more;
  }

  llvm::Error execute(void *const *arguments, void *workspace) override {
    RowsByGroup order = byGroup;
    if (llvm::Error error = order.sort(arguments[2], indexType, workspace))
      return error;
    char *ofX = static_cast<char *>(workspace) + orderBytes;
    char *ofY = ofX + xBytes, *more = ofY + yBytes;
    for (int64_t group = 0; group < groups; ++group) {
      char *matrix = static_cast<char *>(arguments[3]) + group * matrixBytes;
      llvm::ArrayRef<int64_t> rows = order.rowsOf(group);
      if (rows.empty() || products.empty()) {
        std::memset(matrix, 0, static_cast<size_t>(matrixBytes));
        continue;
      }
      auto count = static_cast<int64_t>(rows.size());
      auto number =
          static_cast<size_t>(llvm::lower_bound(sizes, count) - sizes.begin());
      bring(x, arguments[0], rows, sizes[number], ofX);
      bring(y, arguments[1], rows, sizes[number], ofY);
      void *const factors[] = {isSwapped ? ofY : ofX, isSwapped ? ofX : ofY,
                               matrix};
      if (llvm::Error error = products[number]->execute(factors, more))
        return error;
    }
    return llvm::Error::success();
  }

private:
  static void bring(const RowCopy &copy, const void *from,
                    llvm::ArrayRef<int64_t> rows, int64_t size, char *to) {
    copy.gather(from, rows, to);
    auto count = static_cast<int64_t>(rows.size());
    std::memset(to + count * copy.rowBytes(), 0,
                static_cast<size_t>((size - count) * copy.rowBytes()));
  }

  RowCopy x, y;
  DType indexType;
  int64_t groups;
  /// Matrices are [n, k].
  bool isSwapped;
  RowsByGroup byGroup;
  std::vector<int64_t> sizes;
  std::vector<std::unique_ptr<CpuOp>> products;
  int64_t matrixBytes, orderBytes = 0, xBytes = 0, yBytes = 0;
};

} // namespace

/// left^T right over `rows` dense rows.
static MatmulDesc productOf(const TensorDesc &left, const TensorDesc &right,
                            DType result, int64_t rows) {
  int64_t m = left.sizes[1], n = right.sizes[1];
  MatmulDesc product;
  product.a = {left.dtype, {m, rows}, {1, m}};
  product.b = TensorDesc::dense(right.dtype, {rows, n});
  product.c = TensorDesc::dense(result, {m, n});
  return product;
}

ExpectedCpuOp prepareGroupedWeightGradient(const GroupedMatmulDesc &desc) {
  std::vector<int64_t> sizes;
  if (desc.w.numElements() > 0)
    sizes = preparedSizes(desc.x.sizes[0]);
  bool isSwapped = !desc.w.isDense();
  PackedWeights none;
  std::vector<std::unique_ptr<CpuOp>> products;
  for (int64_t rows : sizes) {
    ExpectedCpuOp op =
        prepareCpuOp(productOf(isSwapped ? desc.y : desc.x,
                               isSwapped ? desc.x : desc.y, desc.w.dtype, rows),
                     {}, none);
    if (!op)
      return op.takeError();
    products.push_back(std::move(*op));
  }
  return std::make_unique<GroupedWeightGradient>(desc, std::move(sizes),
                                                 std::move(products));
}

} // namespace ax::rt
