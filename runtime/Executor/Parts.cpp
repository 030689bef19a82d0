//===- Parts.cpp - A rank's part of a global tensor -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Parts.h"

namespace ax::rt {

Part makePart(const sharding::Layout &layout, DType dtype,
              const sharding::Mesh &mesh,
              const std::vector<int64_t> &coordinates) {
  int64_t elementBytes = byteSize(dtype);
  Part part;
  part.box = StridedBox(elementBytes);
  part.localBytes = elementBytes;
  sharding::SubAxes axes;
  // Strides of all factors, minor ones first.
  struct Strides {
    int64_t global, local;
  };
  std::vector<Strides> strides;
  Strides next{elementBytes, elementBytes};
  for (size_t d = layout.dims.size(); d-- > 0;) {
    const std::vector<sharding::Factor> &factors = layout.dims[d].factors;
    for (size_t f = factors.size(); f-- > 0;) {
      strides.push_back(next);
      next.global *= factors[f].size;
      next.local *= factors[f].localSize();
    }
  }
  part.localBytes = next.local;
  size_t at = strides.size();
  for (const sharding::DimLayout &dim : layout.dims)
    for (const sharding::Factor &factor : dim.factors) {
      Strides stride = strides[--at];
      int64_t index = mesh.index(factor.axes, coordinates);
      axes.insert(axes.end(), factor.axes.begin(), factor.axes.end());
      part.box.sourceOffset += index * factor.localSize() * stride.global;
      part.box.addDim(factor.validSize(index), stride.global, stride.local);
    }
  part.box.finish();
  part.number = mesh.index(axes, coordinates);
  part.isFull = part.box.numBytes() == part.localBytes;
  if (part.isFull && part.box.isSingleRun())
    part.contiguousOffset = part.box.sourceOffset;
  return part;
}

bool hasSome(const PiecedTensor &tensor, const Part &part,
             const ElementBox &box) {
  int64_t elementBytes = byteSize(tensor.type);
  // Where in the tensor part and box have the same elements.
  const StridedBox inTensor = part.box.reversed();
  bool found = false;
  tensor.forEachRun(box, [&](int64_t at, int64_t count, int64_t) {
    inTensor.forEachRunWithin(at * elementBytes, (at + count) * elementBytes,
                              [&](int64_t, int64_t, int64_t) { found = true; });
    return !found;
  });
  return found;
}

void copyPiece(const PiecedTensor &tensor, const TensorPiece &piece,
               const Part &part, uint8_t *to) {
  DType type = tensor.type;
  int64_t elementBytes = byteSize(type);
  const StridedBox inTensor = part.box.reversed();
  tensor.forEachRun(piece.box, [&](int64_t at, int64_t count, int64_t from) {
    // What is at `begin` of the tensor's bytes is the piece's element `from`.
    int64_t begin = at * elementBytes;
    inTensor.forEachRunWithin(
        begin, begin + count * elementBytes,
        [&](int64_t inPart, int64_t place, int64_t bytes) {
          piece.copyElements(type, from + (place - begin) / elementBytes,
                             bytes / elementBytes, to + inPart);
        });
    return true;
  });
}

} // namespace ax::rt
