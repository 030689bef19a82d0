//===- Selection.cpp - As many results as data decide ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the data are not known, `--max` gives results room: see Bounds.cpp.
//
//===----------------------------------------------------------------------===//

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// Where elements of `x` are not 0, padding does not count.
static Value isSet(Emitter &b, Value x) {
  if (!x)
    return {};
  Value mask = Emitter::typeOf(x) == DType::Bool
                   ? x
                   : b.compare(CompareKind::ne, x, b.like(x, 0));
  return b.filled(mask, 0);
}

static void importNonZero(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  n.b.dropBounds();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t rank = shape.size();
  std::vector<int64_t> strides = rowMajorStrides(shape);
  if (std::optional<HostTensor> known = n.b.demand(x)) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < known->numElements(); ++i)
      if (known->getDouble(i) != 0)
        positions.push_back(i);
    int64_t count = positions.size();
    HostTensor result(DType::I64, {rank, count});
    for (int64_t d = 0; d < rank; ++d)
      for (int64_t i = 0; i < count; ++i)
        result.setInt(d * count + i, positions[i] / strides[d] % shape[d]);
    n.out(n.b.constant(std::move(result)));
    return;
  }
  std::optional<int64_t> room = n.b.roomForResults();
  if (!room)
    return;
  auto [places, count] = n.b.compact(isSet(n.b, x), *room);
  std::vector<Value> rows;
  for (int64_t d = 0; places && d < rank; ++d) {
    Value along =
        n.b.div(places, n.b.like(places, static_cast<double>(strides[d])));
    Value size =
        n.b.like(places, static_cast<double>(std::max<int64_t>(shape[d], 1)));
    rows.push_back(n.b.reshape(n.b.binary(BinaryKind::trunc_mod, along, size),
                               {1, *room}));
  }
  if (rank == 0)
    n.unsupported("a scalar that is not known");
  else if (places)
    n.out(n.b.bounded(n.b.concat(rows, 0), 1, count));
}

static void importCompress(Node &n) {
  Value x = n.in(0), condition = n.in(1);
  if (!x || !condition)
    return;
  int64_t axis = 0;
  if (n.hasAttribute("axis"))
    axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  else
    x = n.b.reshape(x, {Emitter::numElementsOf(x)});
  if (n.failed())
    return;
  int64_t size = Emitter::shapeOf(x)[axis];
  if (std::optional<HostTensor> known = n.b.demand(condition)) {
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < known->numElements(); ++i)
      if (known->getInt(i))
        chosen.push_back(i);
    if (!chosen.empty() && chosen.back() >= size) {
      n.fail("the condition is longer than the dimension");
      return;
    }
    n.out(n.b.gather(x, n.b.ints(chosen), axis));
    return;
  }
  if (Emitter::rankOf(condition) != 1 ||
      Emitter::shapeOf(condition)[0] > size) {
    n.fail("the condition is longer than the dimension");
    return;
  }
  std::optional<int64_t> room = n.b.roomForResults();
  if (!room)
    return;
  n.b.dropBounds();
  if (const Bound *bound = n.b.boundOf(x); bound && bound->dim == axis)
    x = n.b.filled(x, 0);
  auto [places, count] = n.b.compact(isSet(n.b, condition), *room);
  if (size == 0)
    n.unsupported("nothing to choose from");
  else
    n.out(n.b.gather(x, n.b.bounded(places, 0, count), axis));
}

/// Finds the different ones of all elements, in order of size or as they come
/// first.
static void importUnique(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  Emitter &b = n.b;
  if (n.hasAttribute("axis") && Emitter::rankOf(x) != 1) {
    n.unsupported("slices along an axis");
    return;
  }
  int64_t size = Emitter::numElementsOf(x);
  if (size == 0 || b.boundOf(x)) {
    n.unsupported("of nothing, or of what is itself counted");
    return;
  }
  // What no input decides is worked out: as many as there can be have room.
  bool isKnown = false;
  if (std::optional<HostTensor> known = b.demand(x)) {
    x = b.constant(std::move(*known));
    isKnown = true;
  }
  std::optional<int64_t> room = isKnown ? size : b.roomForResults();
  if (!room)
    return;
  // Equal elements keep their order: the first of them came first.
  auto [values, order] = b.topK(b.reshape(x, {size}), size, 0, true);
  Value isFirst = b.scalar(DType::Bool, 1);
  isFirst = b.reshape(isFirst, {1});
  if (size > 1)
    isFirst = b.concat(
        {isFirst, b.compare(CompareKind::ne, b.sliceDim(values, 0, 1, size - 1),
                            b.sliceDim(values, 0, 0, size - 1))},
        0);
  auto [begins, count] = b.compact(isFirst, *room);
  Value group =
      b.add(b.cumulative(ReduceOpKind::sum, b.cast(isFirst, DType::I64), 0,
                         false, false),
            -1);
  if (!begins || !group)
    return;
  // What has no room ends the run.
  Value last = b.like(group, static_cast<double>(*room - 1));
  group = b.min(group, last);
  Value lengths =
      b.scatterElements(ScatterKind::add, b.splat(DType::I64, {*room}, 0),
                        group, b.splat(DType::I64, {size}, 1), 0);
  Value firsts = b.gather(order, begins, 0);
  Value found = b.gather(values, begins, 0);
  if (n.intAttr("sorted", 1) == 0) {
    Value isLive =
        b.compare(CompareKind::lt, b.iota(DType::I64, {*room}, 0), count);
    Value late = b.like(firsts, static_cast<double>(size));
    auto [ignored, by] = b.topK(b.select(isLive, firsts, late), *room, 0, true);
    Value numbers =
        b.scatterElements(ScatterKind::set, b.splat(DType::I64, {*room}, 0), by,
                          b.iota(DType::I64, {*room}, 0), 0);
    group = b.gather(numbers, group, 0);
    firsts = b.gather(firsts, by, 0);
    found = b.gather(found, by, 0);
    lengths = b.gather(lengths, by, 0);
  }
  Value inverse = b.scatterElements(
      ScatterKind::set, b.splat(DType::I64, {size}, 0), order, group, 0);
  std::optional<HostTensor> number = isKnown ? b.demand(count) : std::nullopt;
  auto give = [&, count = count](int i, Value y) {
    n.out(i, number ? b.sliceDim(y, 0, 0, number->getInt(0))
                    : b.bounded(y, 0, count));
  };
  give(0, found);
  give(1, firsts);
  n.out(2, inverse);
  give(3, lengths);
}

static void importNonMaxSuppression(Node &n) {
  Value boxes = n.in(0), scores = n.in(1);
  if (!boxes || !scores)
    return;
  Emitter &b = n.b;
  if (Emitter::rankOf(boxes) != 3 || Emitter::rankOf(scores) != 3 ||
      Emitter::shapeOf(boxes)[2] != 4) {
    n.fail("boxes are [images, n, 4], scores [images, classes, n]");
    return;
  }
  auto number = [&](int i, llvm::StringRef what, double otherwise) {
    if (!n.has(i))
      return otherwise;
    std::optional<HostTensor> known = n.known(i, what);
    if (known && known->numElements() != 1)
      n.fail("input '" + what + "' must be one number");
    return n.failed() ? otherwise : known->getDouble(0);
  };
  double most = number(2, "max_output_boxes_per_class", 0);
  double overlap = number(3, "iou_threshold", 0);
  std::optional<double> least;
  if (n.has(4))
    least = number(4, "score_threshold", 0);
  if (!n.failed() && !(overlap >= 0 && overlap <= 1))
    n.fail("iou_threshold is " + llvm::formatv("{0:f2}", overlap).str() +
           ", not 0 to 1");
  if (n.failed())
    return;
  int64_t images = Emitter::shapeOf(scores)[0];
  int64_t classes = Emitter::shapeOf(scores)[1];
  int64_t count = Emitter::shapeOf(scores)[2];
  auto each = static_cast<int64_t>(
      std::clamp<double>(most, 0, static_cast<double>(count)));
  if (images * classes * each == 0) {
    n.out(b.splat(DType::I64, {0, 3}, 0));
    b.dropBounds();
    return;
  }
  // Without more, each class may take so many.
  std::optional<int64_t> given = b.maxResults();
  int64_t room = std::min(given.value_or(images * classes * each),
                          images * classes * each);
  b.dropBounds();
  for (Value operand : {boxes, scores}) {
    const Bound *bound = b.boundOf(operand);
    if (bound && bound->dim != (operand == boxes ? 1 : 2)) {
      n.unsupported("images or classes of which there may be fewer");
      return;
    }
  }
  boxes = b.filled(boxes, 0);
  scores = b.filled(scores, NAN);
  if (n.intAttr("center_point_box", 0)) {
    // x, y, width and height; nothing is in what is negative.
    Value size = b.sliceDim(boxes, 2, 2, 2);
    Value half = b.mul(b.max(size, b.like(size, 0)), 0.5);
    Value centre = b.sliceDim(boxes, 2, 0, 2);
    boxes = b.concat({b.sub(centre, half), b.add(centre, half)}, 2);
  }
  Value taken = b.nonMaxSuppression(boxes, scores, each, overlap, least);
  if (!taken)
    return;
  Value isTaken = b.compare(CompareKind::ge, taken, b.like(taken, 0));
  Value places, found;
  std::tie(places, found) = b.compact(isTaken, room);
  if (!places)
    return;
  auto row = [&](Value value) { return b.reshape(value, {room, 1}); };
  auto part = [&](int64_t divisor, int64_t size) {
    Value whole = b.div(places, b.like(places, static_cast<double>(divisor)));
    return row(b.binary(BinaryKind::trunc_mod, whole,
                        b.like(whole, static_cast<double>(size))));
  };
  Value box = b.gather(b.reshape(taken, {images * classes * each}), places, 0);
  // Of padding, too, there is a box.
  Value isLive =
      b.compare(CompareKind::lt, b.iota(DType::I64, {room}, 0), found);
  box = b.select(isLive, box, b.like(box, 0));
  n.out(b.bounded(
      b.concat({part(each * classes, images), part(each, classes), row(box)},
               1),
      0, found));
}

static const OpEntry entries[] = {
    {"Compress", importCompress},
    {"NonMaxSuppression", importNonMaxSuppression},
    {"NonZero", importNonZero},
    {"Unique", importUnique},
};

void ax::import::addSelection(OpTable &table) { table.add(entries); }
