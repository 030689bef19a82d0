//===- Parts.h - A rank's part of a global tensor ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_PARTS_H
#define AX_RUNTIME_PARTS_H

#include "ax/Runtime/StridedCopy.h"

#include "ax/Sharding/Layout.h"
#include "ax/Support/PiecedTensor.h"

namespace ax::rt {

/// Where the valid elements of one part lie in the global tensor (the box's
/// source) and in the part (its destination), both dense and row-major.
struct Part {
  StridedBox box;
  int64_t localBytes = 0;
  /// The part has no padding.
  bool isFull = false;
  /// Where in the global tensor's bytes the part is, if it is one run of them;
  /// -1 for other parts.
  int64_t contiguousOffset = -1;
  /// The same number for coordinates that hold the same part.
  int64_t number = 0;

  bool isContiguous() const { return contiguousOffset >= 0; }
};

/// Whether the part of a tensor, of which nothing but its pieces is known, has
/// any of these elements.
bool hasSome(const PiecedTensor &tensor, const Part &part,
             const ElementBox &box);
/// Copies what a piece of the tensor has of the part, whose memory is at `to`.
void copyPiece(const PiecedTensor &tensor, const TensorPiece &piece,
               const Part &part, uint8_t *to);

Part makePart(const sharding::Layout &layout, DType dtype,
              const sharding::Mesh &mesh,
              const std::vector<int64_t> &coordinates);

} // namespace ax::rt

#endif // AX_RUNTIME_PARTS_H
