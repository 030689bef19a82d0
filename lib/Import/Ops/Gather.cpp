//===- Gather.cpp - Reading and writing by index --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

namespace {
struct Progression {
  int64_t start = 0, step = 1;
};
} // namespace

/// `indices` as start, start + step, ..., all within a dimension of `size`.
static std::optional<Progression> progression(Emitter &b, Value indices,
                                              int64_t size) {
  // Nobody writes longer ones down, and reading them has a cost.
  if (!indices || Emitter::numElementsOf(indices) > (1 << 20))
    return std::nullopt;
  std::optional<HostTensor> tensor = b.knownValue(indices);
  if (!tensor || tensor->numElements() == 0)
    return std::nullopt;
  auto at = [&](int64_t i) {
    int64_t index = tensor->getInt(i);
    return index < 0 ? index + size : index;
  };
  int64_t count = tensor->numElements();
  Progression result{at(0), count > 1 ? at(1) - at(0) : 1};
  if (result.step == 0)
    return std::nullopt;
  for (int64_t i = 0; i < count; ++i)
    if (at(i) != result.start + i * result.step || at(i) < 0 || at(i) >= size)
      return std::nullopt;
  return result;
}

/// Gathers from results of which there may be fewer than there is room for: an
/// index behind those that there are is an error of the run.
static Value gatherResults(Node &n, Value x, Value indices) {
  Bound bound = *n.b.boundOf(x);
  n.b.dropBounds();
  Value index = n.b.cast(indices, DType::I64);
  if (!index)
    return {};
  Value zero = n.b.like(index, 0);
  auto isBelow = [&](Value a, Value b) {
    return n.b.compare(CompareKind::lt, a, b);
  };
  index = n.b.select(isBelow(index, zero), n.b.add(index, bound.count), index);
  Value size =
      n.b.like(index, static_cast<double>(Emitter::shapeOf(x)[bound.dim]));
  index = n.b.select(isBelow(index, zero), size, index);
  index = n.b.select(isBelow(index, bound.count), index, size);
  // Where there are no results, no index is in range, nor is padding of
  // indices.
  index = n.b.cleared(index);
  return n.b.gather(n.b.filled(x, 0), index, bound.dim);
}

static Value gatherAlong(Node &n, Value x, Value indices, int64_t axis) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (const Bound *bound = n.b.boundOf(x); bound && bound->dim == axis)
    return gatherResults(n, x, indices);
  // Evenly spaced known indices are a slice, which layouts understand.
  if (auto even = progression(n.b, indices, shape[axis])) {
    ArrayRef<int64_t> many = Emitter::shapeOf(indices);
    Value y = n.b.sliceDim(x, axis, even->start,
                           Emitter::numElementsOf(indices), even->step);
    Shape result(shape.take_front(axis));
    result.insert(result.end(), many.begin(), many.end());
    result.insert(result.end(), shape.begin() + axis + 1, shape.end());
    return n.b.reshape(y, result);
  }
  return n.b.gather(x, indices, axis);
}

static void importGather(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  if (!x || !indices)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (!n.failed())
    n.out(gatherAlong(n, x, indices, axis));
}

static void importGatherElements(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  if (!x)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (!n.failed())
    n.out(n.b.gatherElements(x, indices, axis));
}

/// Known index vectors [..., k] that visit the leading k dimensions of `shape`
/// in order, each place once.
static bool visitsAll(Emitter &b, Value indices, ArrayRef<int64_t> shape) {
  if (!indices || Emitter::numElementsOf(indices) > (1 << 24) ||
      Emitter::rankOf(indices) == 0)
    return false;
  int64_t width = Emitter::shapeOf(indices).back();
  if (width < 1 || width > static_cast<int64_t>(shape.size()))
    return false;
  ArrayRef<int64_t> leading = shape.take_front(width);
  std::optional<int64_t> places = checkedNumElements(leading);
  if (!places || *places == 0 ||
      *places != Emitter::numElementsOf(indices) / width)
    return false;
  std::optional<HostTensor> tensor = b.knownValue(indices);
  if (!tensor)
    return false;
  std::vector<int64_t> strides = rowMajorStrides(leading);
  for (int64_t i = 0; i < *places; ++i)
    for (int64_t d = 0; d < width; ++d) {
      int64_t index = tensor->getInt(i * width + d);
      if ((index < 0 ? index + leading[d] : index) !=
          i / strides[d] % leading[d])
        return false;
    }
  return true;
}

static void importGatherND(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  int64_t batchDims = n.intAttr("batch_dims", 0);
  if (!x || !indices)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (batchDims == 0 && visitsAll(n.b, indices, shape)) {
    ArrayRef<int64_t> many = Emitter::shapeOf(indices);
    Shape result(many.drop_back());
    result.insert(result.end(), shape.begin() + many.back(), shape.end());
    return n.out(n.b.reshape(x, result));
  }
  // One index each is what a Gather takes, as of PyTorch's `table[positions]`;
  // of that a table may be split, and gradients come from parts of a batch.
  ArrayRef<int64_t> many = Emitter::shapeOf(indices);
  if (batchDims == 0 && many.size() > 1 && many.back() == 1 &&
      Emitter::numElementsOf(indices) > 0)
    return n.out(gatherAlong(n, x, n.b.reshape(indices, many.drop_back()), 0));
  n.out(n.b.gatherND(x, indices, batchDims));
}

static ScatterKind scatterKind(Node &n) {
  std::string name = n.stringAttr("reduction", "none");
  return name == "none" ? ScatterKind::set : *symbolizeScatterKind(name);
}

/// Puts updates that change nothing behind those of which data decide how many
/// there are; of none that replace what is there.
static void fillUpdates(Node &n, ScatterKind kind, Value &indices,
                        Value &updates) {
  const Bound *bound = n.b.boundOf(updates), *other = n.b.boundOf(indices);
  if (!bound || !other || bound->dim != other->dim ||
      kind == ScatterKind::set || !n.b.hasCount(indices, bound->count))
    return;
  n.b.dropBounds();
  Value nothing = kind == ScatterKind::add ? n.b.like(updates, 0)
                  : kind == ScatterKind::mul
                      ? n.b.like(updates, 1)
                      : n.b.extremeOf(updates, kind == ScatterKind::max);
  updates = n.b.filled(updates, nothing);
  indices = n.b.filled(indices, 0.0);
}

static void importScatterElements(Node &n) {
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  if (!x || !indices || !updates)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (n.failed())
    return;
  ScatterKind kind = scatterKind(n);
  fillUpdates(n, kind, indices, updates);
  n.out(n.b.scatterElements(kind, x, indices, updates, axis));
}

static void importScatterND(Node &n) {
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  ScatterKind kind = scatterKind(n);
  if (!x || !indices || !updates)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (kind == ScatterKind::set && visitsAll(n.b, indices, shape) &&
      Emitter::typeOf(updates) == Emitter::typeOf(x))
    return n.out(n.b.reshape(updates, shape));
  fillUpdates(n, kind, indices, updates);
  n.out(n.b.scatterND(kind, x, indices, updates));
}

/// New keys or values written into a cache, each sequence at its own place.
static void importTensorScatter(Node &n) {
  Value cache = n.in(0), update = n.in(1), places = n.optional(2);
  if (!cache || !update || n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(cache);
  int64_t rank = shape.size();
  int64_t axis = n.dim(n.intAttr("axis", -2), rank);
  std::string mode = n.stringAttr("mode", "linear");
  if (n.failed())
    return;
  if (Emitter::rankOf(update) != rank || rank < 2 || axis == 0) {
    n.fail("cache, update and axis do not fit");
    return;
  }
  int64_t size = shape[axis], added = Emitter::shapeOf(update)[axis];
  Shape line(rank, 1), batch(rank, 1), wide(shape);
  line[axis] = size;
  batch[0] = shape[0];
  wide[axis] = size;
  // Which element of the update each place of the cache gets.
  Value index = n.b.iota(DType::I64, line, axis);
  if (places)
    index = n.b.sub(index, n.b.reshape(n.b.cast(places, DType::I64), batch));
  if (mode == "circular")
    index = n.b.binary(BinaryKind::floor_mod, index,
                       n.b.like(index, static_cast<double>(size)));
  Value zero = n.b.like(index, 0);
  Value isNew = n.b.binary(
      BinaryKind::logical_and, n.b.compare(CompareKind::ge, index, zero),
      n.b.compare(CompareKind::lt, index,
                  n.b.like(index, static_cast<double>(added))));
  Value from = n.b.broadcast(n.b.select(isNew, index, zero), wide);
  n.out(n.b.select(isNew, n.b.gatherElements(update, from, axis), cache));
}

static const OpEntry entries[] = {
    {"Gather", importGather},
    {"GatherElements", importGatherElements},
    {"GatherND", importGatherND},
    {"Scatter", importScatterElements},
    {"ScatterElements", importScatterElements},
    {"ScatterND", importScatterND},
    {"TensorScatter", importTensorScatter},
};

void ax::import::addGather(OpTable &table) { table.add(entries); }
