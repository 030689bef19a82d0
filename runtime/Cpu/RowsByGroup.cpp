//===- RowsByGroup.cpp - Rows, one group after another --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RowsByGroup.h"

#include "Threads.h"
#include "ax/Support/Error.h"

#include <cstring>
#include <numeric>

namespace ax::rt {

template <typename Index>
static llvm::Error sortRows(const Index *groupOfRow, int64_t rows,
                            int64_t groups, int64_t *starts, int64_t *order) {
  std::fill_n(starts, groups + 1, 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t group = groupOfRow[row];
    if (group < 0 || group >= groups)
      return makeError(ExitCode::Internal,
                       "row " + llvm::Twine(row) + " is of group " +
                           llvm::Twine(group) + ", of which there are " +
                           llvm::Twine(groups));
    ++starts[group + 1];
  }
  std::partial_sum(starts, starts + groups + 1, starts);
  // Each begins where its next row goes, and so ends where the next begins.
  for (int64_t row = 0; row < rows; ++row)
    order[starts[groupOfRow[row]]++] = row;
  std::move_backward(starts, starts + groups, starts + groups + 1);
  starts[0] = 0;
  return llvm::Error::success();
}

llvm::Error RowsByGroup::sort(const void *groupOfRow, DType type,
                              void *memory) {
  starts = static_cast<int64_t *>(memory);
  order = starts + groups + 1;
  if (type == DType::I32)
    return sortRows(static_cast<const int32_t *>(groupOfRow), rows, groups,
                    starts, order);
  return sortRows(static_cast<const int64_t *>(groupOfRow), rows, groups,
                  starts, order);
}

RowCopy RowCopy::of(const TensorDesc &matrix) {
  return {byteSize(matrix.dtype), matrix.sizes[1], matrix.strides[0],
          matrix.strides[1]};
}

/// Calls fn(i) for rows i below `count`, with all threads.
template <typename Fn>
static void forEachRow(int64_t count, int64_t rowBytes, Fn &&fn) {
  constexpr int64_t grainBytes = 1 << 16;
  parallelFor(count, std::max<int64_t>(1, grainBytes / (rowBytes + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                  fn(i);
              });
}

void RowCopy::gather(const void *from, llvm::ArrayRef<int64_t> rows,
                     void *to) const {
  const char *base = static_cast<const char *>(from);
  forEachRow(static_cast<int64_t>(rows.size()), rowBytes(), [&](int64_t i) {
    const char *row =
        base + rows[static_cast<size_t>(i)] * rowStride * elementBytes;
    char *place = static_cast<char *>(to) + i * rowBytes();
    if (columnStride == 1) {
      std::memcpy(place, row, static_cast<size_t>(rowBytes()));
      return;
    }
    for (int64_t j = 0; j < columns; ++j)
      std::memcpy(place + j * elementBytes,
                  row + j * columnStride * elementBytes,
                  static_cast<size_t>(elementBytes));
  });
}

void RowCopy::scatter(const void *from, llvm::ArrayRef<int64_t> rows,
                      void *to) const {
  const char *base = static_cast<const char *>(from);
  forEachRow(static_cast<int64_t>(rows.size()), rowBytes(), [&](int64_t i) {
    std::memcpy(static_cast<char *>(to) +
                    rows[static_cast<size_t>(i)] * rowStride * elementBytes,
                base + i * rowBytes(), static_cast<size_t>(rowBytes()));
  });
}

std::vector<int64_t> preparedSizes(int64_t rows) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; rows > 0; size += std::max<int64_t>(1, size / 4)) {
    sizes.push_back(size);
    if (size >= rows)
      break;
  }
  return sizes;
}

} // namespace ax::rt
