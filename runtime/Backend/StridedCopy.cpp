//===- StridedCopy.cpp - Copies of strided boxes --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/StridedCopy.h"

#include "ax/Runtime/Program.h"

#include <utility>

namespace ax::rt {

void StridedBox::addDim(int64_t size, int64_t sourceStride,
                        int64_t destinationStride) {
  if (size == 0)
    empty = true;
  if (size == 1)
    return;
  if (!dims.empty() && dims.back().sourceStride == size * sourceStride &&
      dims.back().destinationStride == size * destinationStride)
    dims.back() = {dims.back().size * size, sourceStride, destinationStride};
  else
    dims.push_back({size, sourceStride, destinationStride});
}

void StridedBox::finish() {
  if (!dims.empty() && dims.back().sourceStride == runBytes &&
      dims.back().destinationStride == runBytes)
    runBytes *= dims.pop_back_val().size;
}

int64_t StridedBox::numBytes() const {
  int64_t bytes = empty ? 0 : runBytes;
  for (const Dim &dim : dims)
    bytes *= dim.size;
  return bytes;
}

StridedBox StridedBox::withDenseSource() const {
  StridedBox dense = *this;
  dense.sourceOffset = 0;
  int64_t stride = runBytes;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d].size)
    dense.dims[d].sourceStride = stride;
  return dense;
}

StridedBox StridedBox::reversed() const {
  StridedBox box = *this;
  std::swap(box.sourceOffset, box.destinationOffset);
  for (Dim &dim : box.dims)
    std::swap(dim.sourceStride, dim.destinationStride);
  return box;
}

StridedBox boxOf(const CopyCommand &command) {
  StridedBox box(command.elementBytes);
  for (size_t d = 0; d < command.sizes.size(); ++d)
    box.addDim(command.sizes[d],
               command.sourceStrides[d] * command.elementBytes,
               command.destinationStrides[d] * command.elementBytes);
  box.finish();
  return box;
}

CopyCommand copyOf(const StridedBox &box) {
  CopyCommand copy;
  copy.elementBytes = 1;
  for (const StridedBox::Dim &dim : box.getDims()) {
    copy.sizes.push_back(dim.size);
    copy.sourceStrides.push_back(dim.sourceStride);
    copy.destinationStrides.push_back(dim.destinationStride);
  }
  copy.sizes.push_back(box.getRunBytes());
  copy.sourceStrides.push_back(1);
  copy.destinationStrides.push_back(1);
  return copy;
}

namespace {

/// Copies by single instructions where sizes are constants.
void copyRun(char *to, const char *from, int64_t bytes) {
  switch (bytes) {
  case 1:
    *to = *from;
    break;
  case 2:
    std::memcpy(to, from, 2);
    break;
  case 4:
    std::memcpy(to, from, 4);
    break;
  case 8:
    std::memcpy(to, from, 8);
    break;
  default:
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

} // namespace

void StridedBox::copy(const void *source, void *destination) const {
  const char *from = static_cast<const char *>(source);
  char *to = static_cast<char *>(destination);
  forEachRun([&](int64_t sourceAt, int64_t destinationAt, int64_t bytes) {
    copyRun(to + destinationAt, from + sourceAt, bytes);
  });
}

void StridedBox::copyBack(void *source, const void *destination) const {
  char *to = static_cast<char *>(source);
  const char *from = static_cast<const char *>(destination);
  forEachRun([&](int64_t sourceAt, int64_t destinationAt, int64_t bytes) {
    copyRun(to + sourceAt, from + destinationAt, bytes);
  });
}

} // namespace ax::rt
