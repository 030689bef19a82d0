//===- StridedCopy.cpp - Copies of strided boxes --------------------------===//

#include "StridedCopy.h"

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

void StridedBox::copy(const void *source, void *destination) const {
  const char *from = static_cast<const char *>(source);
  char *to = static_cast<char *>(destination);
  forEachRun([&](int64_t sourceAt, int64_t destinationAt, int64_t bytes) {
    switch (bytes) {
    case 4:
      std::memcpy(to + destinationAt, from + sourceAt, 4);
      break;
    case 8:
      std::memcpy(to + destinationAt, from + sourceAt, 8);
      break;
    default:
      std::memcpy(to + destinationAt, from + sourceAt,
                  static_cast<size_t>(bytes));
    }
  });
}

} // namespace ax::rt
