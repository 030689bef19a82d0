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

/// Indices along a dimension of `size`, of which the first `count` places are
/// there (all of them without it), counted from its beginning; those of no
/// place are `outside`.
static Value placesOf(Emitter &b, Value indices, int64_t size, Value count,
                      int64_t outside) {
  Value index = b.cast(indices, DType::I64);
  if (!index)
    return {};
  auto number = [&](int64_t value) {
    return b.like(index, static_cast<double>(value));
  };
  auto isBelow = [&](Value index, Value limit) {
    return b.compare(CompareKind::lt, index, limit);
  };
  Value end = count ? count : number(size);
  index = b.select(isBelow(index, number(0)), b.add(index, end), index);
  index = b.select(isBelow(index, number(0)), number(outside), index);
  return b.select(isBelow(index, end), index, number(outside));
}

/// Gathers along `axis`, as `make` does it, also from results of which there
/// may be fewer than there is room for: an index behind those that there are is
/// an error of the run.
static Value gatherWith(Node &n, Value x, Value indices, int64_t axis,
                        llvm::function_ref<Value(Value, Value)> make) {
  const Bound *bound = n.b.boundOf(x);
  if (!bound || bound->dim != axis)
    return make(x, indices);
  Value count = bound->count;
  n.b.dropBounds();
  int64_t size = Emitter::shapeOf(x)[axis];
  // Where there are no results, no index is in range, nor is padding of
  // indices.
  Value index =
      n.b.cleared(placesOf(n.b, indices, size, count, /*outside=*/size));
  return make(n.b.filled(x, 0.0), index);
}

static Value gatherAlong(Node &n, Value x, Value indices, int64_t axis) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  const Bound *bound = n.b.boundOf(x);
  bool isAmong = bound && bound->dim == axis;
  // Evenly spaced known indices are a slice, which layouts understand.
  if (auto even =
          isAmong ? std::nullopt : progression(n.b, indices, shape[axis])) {
    ArrayRef<int64_t> many = Emitter::shapeOf(indices);
    Value y = n.b.sliceDim(x, axis, even->start,
                           Emitter::numElementsOf(indices), even->step);
    Shape result(shape.take_front(axis));
    result.insert(result.end(), many.begin(), many.end());
    result.insert(result.end(), shape.begin() + axis + 1, shape.end());
    return n.b.reshape(y, result);
  }
  return gatherWith(n, x, indices, axis, [&](Value x, Value indices) {
    return n.b.gather(x, indices, axis);
  });
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
  if (!x || !indices)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (n.failed())
    return;
  n.out(gatherWith(n, x, indices, axis, [&](Value x, Value indices) {
    return n.b.gatherElements(x, indices, axis);
  }));
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

/// A scatter of results of which there may be fewer than there is room for, or
/// among such, along `dim`; `areVectors`: the indices are, and their first
/// elements go along `dim`. `make` scatters what it is given.
///
/// Updates that are none change nothing (add 0 to the first place), or, where
/// they replace, go to a place more, which is cut off:
///
///   x [4], indices [1, 0 | 0], updates [a, b | ?], two of three are there:
///   x [4 + 1], indices [1, 0, 4] -> [b, a, x2, x3, ?] -> [b, a, x2, x3]
///
/// An index of no place is one behind all of them, which ends the run.
static Value
scatterResults(Node &n, ScatterKind kind, Value x, Value indices, Value updates,
               int64_t dim, bool areVectors,
               llvm::function_ref<Value(Value, Value, Value)> make) {
  Emitter &b = n.b;
  const Bound *among = b.boundOf(x), *bound = b.boundOf(updates),
              *other = b.boundOf(indices);
  bool isAmong = among && among->dim == dim;
  if (bound && other && bound->dim == other->dim)
    if (int64_t room = Emitter::shapeOf(updates)[bound->dim],
        places = Emitter::shapeOf(indices)[bound->dim];
        room < places) {
      n.unsupported("there is room for " + llvm::Twine(places) +
                    " results to go to, and for " + llvm::Twine(room) +
                    " that go there: a smaller --max gives both the same");
      return {};
    }
  int64_t last = Emitter::rankOf(indices) - 1;
  if (dim >= Emitter::rankOf(x) || last < 0)
    return make(x, indices, updates);
  int64_t width = areVectors ? Emitter::shapeOf(indices)[last] : 1;
  bool isCounted = bound && other && bound->dim == other->dim &&
                   !(areVectors && bound->dim == last) &&
                   b.hasCount(indices, bound->count);
  if ((among && !isAmong) || (!isAmong && !isCounted) ||
      (!isCounted && (bound || other)) || width == 0)
    return make(x, b.cleared(indices), updates);
  if (isCounted && !areVectors && bound->dim != dim) {
    int64_t size = Emitter::shapeOf(x)[bound->dim],
            room = Emitter::shapeOf(indices)[bound->dim];
    if (room > size) {
      n.unsupported("there is room for " + llvm::Twine(room) +
                    " results along a dimension of " + llvm::Twine(size) +
                    ": a smaller --max gives them no more");
      return {};
    }
  }
  b.dropBounds();
  Value count = isAmong ? among->count : Value();
  int64_t size = Emitter::shapeOf(x)[dim];
  bool addsPlace = isCounted && kind == ScatterKind::set;
  auto toPlaces = [&](Value index) {
    if (isAmong || addsPlace)
      index = placesOf(b, index, size, count, size + addsPlace);
    return b.filled(index, addsPlace ? static_cast<double>(size) : 0.0);
  };
  if (width == 1) {
    indices = toPlaces(indices);
  } else {
    indices = b.cast(indices, DType::I64);
    Value others = b.sliceDim(indices, last, 1, width - 1);
    indices = b.concat(
        {toPlaces(b.sliceDim(indices, last, 0, 1)), b.filled(others, 0.0)},
        last);
  }
  x = b.filled(x, 0.0);
  if (addsPlace) {
    Shape place(Emitter::shapeOf(x));
    place[dim] = 1;
    x = b.concat({x, b.splat(Emitter::typeOf(x), place, 0)}, dim);
  }
  Value nothing = kind == ScatterKind::mul   ? b.like(updates, 1)
                  : kind == ScatterKind::max ? b.extremeOf(updates, true)
                  : kind == ScatterKind::min ? b.extremeOf(updates, false)
                                             : b.like(updates, 0);
  Value y = make(x, indices, b.filled(updates, nothing));
  if (addsPlace)
    y = b.sliceDim(y, dim, 0, size);
  return isAmong ? b.bounded(y, dim, count) : y;
}

static void importScatterElements(Node &n) {
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  if (!x || !indices || !updates)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (n.failed())
    return;
  ScatterKind kind = scatterKind(n);
  auto make = [&](Value x, Value indices, Value updates) {
    return n.b.scatterElements(kind, x, indices, updates, axis);
  };
  n.out(scatterResults(n, kind, x, indices, updates, axis,
                       /*areVectors=*/false, make));
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
  auto make = [&](Value x, Value indices, Value updates) {
    return n.b.scatterND(kind, x, indices, updates);
  };
  n.out(scatterResults(n, kind, x, indices, updates, /*dim=*/0,
                       /*areVectors=*/true, make));
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
