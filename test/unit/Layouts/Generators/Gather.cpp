//===- Gather.cpp - Random gathers and scatters ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpGenerators.h"

#include "ax/Interpreter/Elements.h"

#include <numeric>

using namespace mlir;

namespace ax::test {

static Operation *gather(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t axis = g.pick(0, shape.size() - 1);
  DType type = g.oneOf({g.real, g.real, DType::I64, DType::Bool});
  Value operand = g.operand(type, shape);
  Value indices = g.operand(g.oneOf({DType::I32, DType::I64}), g.shape(0, 2),
                            -shape[axis], shape[axis] - 1);
  return make<GatherOp>(g, operand, indices, axis);
}

static Operation *gatherGradient(Gen &g) {
  Shape leading = g.shape(0, 1), indices = g.shape(0, 2),
        trailing = g.shape(0, 1);
  int64_t size = g.extent();
  Shape updates = leading;
  updates.insert(updates.end(), indices.begin(), indices.end());
  updates.insert(updates.end(), trailing.begin(), trailing.end());
  Value operand = g.operand(g.oneOf({g.real, DType::I64}), updates);
  Value at =
      g.operand(g.oneOf({DType::I32, DType::I64}), indices, -size, size - 1);
  return make<GatherGradientOp>(g, operand, at, leading.size(), size);
}

/// A shape that fits into `shape`.
static Shape smaller(Gen &g, const Shape &shape, int64_t axis) {
  Shape result = shape;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (static_cast<int64_t>(dim) == axis || g.chance(30))
      result[dim] = g.pick(1, shape[dim]);
  return result;
}

static Operation *gatherElements(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t axis = g.pick(0, shape.size() - 1);
  Value operand = g.operand(g.real, shape);
  Value indices = g.operand(DType::I64, smaller(g, shape, axis), -shape[axis],
                            shape[axis] - 1);
  return make<GatherElementsOp>(g, operand, indices, axis);
}

/// Indices of the elements or slices of the dimensions of `shape` from
/// `first` on, in tensors of the leading dimensions `leading`.
static Value indicesND(Gen &g, const Shape &shape, int64_t first,
                       const Shape &leading, int64_t depth) {
  int64_t least =
      *std::min_element(shape.begin() + first, shape.begin() + first + depth);
  Shape indices = leading;
  indices.push_back(depth);
  return g.operand(DType::I64, indices, -least, least - 1);
}

static Operation *gatherND(Gen &g) {
  Shape shape = g.shape(1, 4);
  int64_t rank = shape.size(),
          numBatch = g.pick(0, std::min<int64_t>(rank - 1, 2));
  Shape leading(shape.begin(), shape.begin() + numBatch);
  for (int64_t size : g.shape(0, 1))
    leading.push_back(size);
  Value operand = g.operand(g.real, shape);
  Value indices =
      indicesND(g, shape, numBatch, leading, g.pick(1, rank - numBatch));
  return make<GatherNDOp>(g, operand, indices, numBatch);
}

static ScatterKind scatterKind(Gen &g) {
  return static_cast<ScatterKind>(g.pick(0, getMaxEnumValForScatterKind()));
}

static Operation *scatterElements(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t axis = g.pick(0, shape.size() - 1);
  Shape indicesShape = smaller(g, shape, axis);
  Value operand = g.operand(g.real, shape);
  Value indices =
      g.operand(DType::I64, indicesShape, -shape[axis], shape[axis] - 1);
  Value updates = g.operand(g.real, indicesShape);
  return make<ScatterElementsOp>(g, scatterKind(g), operand, indices, updates,
                                 axis);
}

static Operation *scatterND(Gen &g) {
  Shape shape = g.shape(1, 3), leading = g.shape(0, 2);
  int64_t depth = g.pick(1, shape.size());
  Shape updatesShape = leading;
  updatesShape.insert(updatesShape.end(), shape.begin() + depth, shape.end());
  Value operand = g.operand(g.real, shape);
  Value indices = indicesND(g, shape, 0, leading, depth);
  Value updates = g.operand(g.real, updatesShape);
  return make<ScatterNDOp>(g, scatterKind(g), operand, indices, updates);
}

void addGatherGenerators(llvm::StringMap<Generator> &to) {
  to["gather"] = gather;
  to["gather_elements"] = gatherElements;
  to["gather_gradient"] = gatherGradient;
  to["gather_nd"] = gatherND;
  to["scatter_elements"] = scatterElements;
  to["scatter_nd"] = scatterND;
}

} // namespace ax::test
