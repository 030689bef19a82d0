//===- RowsByGroup.h - Rows, one group after another ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_ROWSBYGROUP_H
#define AX_RUNTIME_ROWSBYGROUP_H

#include "ax/Runtime/LibraryOps.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace ax::rt {

/// The rows of each group, in their order, in memory of the caller.
class RowsByGroup {
public:
  RowsByGroup(int64_t rows, int64_t groups) : rows(rows), groups(groups) {}

  int64_t getBytes() const {
    return (rows + groups + 1) * static_cast<int64_t>(sizeof(int64_t));
  }
  /// An error where a row is of no group.
  llvm::Error sort(const void *groupOfRow, DType type, void *memory);
  llvm::ArrayRef<int64_t> rowsOf(int64_t group) const {
    return {order + starts[group], order + starts[group + 1]};
  }

private:
  int64_t rows, groups;
  /// Where each group begins among `order`, and where the last one ends.
  int64_t *starts = nullptr, *order = nullptr;
};

/// Rows of a matrix that become a dense one, or come from it.
struct RowCopy {
  int64_t elementBytes, columns, rowStride, columnStride;

  static RowCopy of(const TensorDesc &matrix);
  int64_t rowBytes() const { return columns * elementBytes; }
  void gather(const void *from, llvm::ArrayRef<int64_t> rows, void *to) const;
  void scatter(const void *from, llvm::ArrayRef<int64_t> rows, void *to) const;
};

/// Numbers of rows, from small to large, that products are prepared for, which
/// cost at most a quarter more than those of any number up to `rows`.
std::vector<int64_t> preparedSizes(int64_t rows);

} // namespace ax::rt

#endif // AX_RUNTIME_ROWSBYGROUP_H
