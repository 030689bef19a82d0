//===- Slice.cpp - Parts of tensors, padding, repetition ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// Where a slice along one dimension is: from a number on that is known, or
/// that data say.
struct MovingSlice {
  int64_t axis = 0, length = 0;
  std::optional<int64_t> start;
};

/// Slices whose lengths are known whatever data are; nothing of others.
static std::optional<std::vector<MovingSlice>> findMovingSlices(Node &n,
                                                                Value x) {
  if (!x || !n.has(1) || !n.has(2) || n.b.boundOf(x))
    return std::nullopt;
  Value starts = n.in(1), ends = n.in(2);
  if (!starts || !ends || n.b.demand(starts) || Emitter::rankOf(starts) != 1 ||
      Emitter::shapeOf(starts) != Emitter::shapeOf(ends))
    return std::nullopt;
  int64_t rank = Emitter::rankOf(x);
  std::vector<MovingSlice> slices;
  for (int64_t i = 0, e = Emitter::numElementsOf(starts); i < e; ++i) {
    MovingSlice slice;
    std::optional<int64_t> axis = n.has(3) ? n.b.elementOf(n.in(3), i) : i;
    if (!axis || *axis < -rank || *axis >= rank ||
        (n.has(4) && n.b.elementOf(n.in(4), i) != 1))
      return std::nullopt;
    slice.axis = *axis < 0 ? *axis + rank : *axis;
    if (llvm::any_of(slices, [&](const MovingSlice &other) {
          return other.axis == slice.axis;
        }))
      return std::nullopt;
    int64_t size = Emitter::shapeOf(x)[slice.axis];
    slice.start = n.b.elementOf(starts, i);
    std::optional<int64_t> end = n.b.elementOf(ends, i), length;
    if (slice.start && end) {
      auto place = [&](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
      };
      slice.start = place(*slice.start);
      length = std::max<int64_t>(0, place(*end) - *slice.start);
    } else {
      length = n.b.distance(starts, ends, i);
    }
    if (!length || *length < 0 || *length > size)
      return std::nullopt;
    slice.length = *length;
    slices.push_back(slice);
  }
  return slices;
}

/// What begins where data say is looked up, place by place.
static Value lookUpSlices(Node &n, Value x, ArrayRef<MovingSlice> slices) {
  Value starts = n.in(1);
  for (auto [i, slice] : llvm::enumerate(slices)) {
    if (slice.start) {
      x = n.b.sliceDim(x, slice.axis, *slice.start, slice.length);
      continue;
    }
    Value start = n.b.cast(
        n.b.reshape(n.b.sliceDim(starts, 0, static_cast<int64_t>(i), 1), {}),
        DType::I64);
    // From the end, or in front of all: where it ends is another question.
    Value outside = n.b.scalar(
        DType::I64, static_cast<double>(Emitter::shapeOf(x)[slice.axis]));
    start = n.b.select(n.b.compare(CompareKind::lt, start, n.b.like(start, 0)),
                       outside, start);
    Value places = n.b.iota(DType::I64, {slice.length}, 0);
    x = n.b.gather(x, n.b.binary(BinaryKind::add, places, start), slice.axis);
  }
  return x;
}

/// Ends, of which one may be how many results there are: all of them.
static std::optional<std::vector<int64_t>> endsOf(Node &n, Value x) {
  Value ends = n.has(2) ? n.in(2) : Value();
  if (!x || !ends || !n.b.boundOf(x) || n.b.demand(ends) ||
      Emitter::rankOf(ends) != 1)
    return n.intsOf(2, "ends");
  std::vector<int64_t> numbers;
  for (int64_t i = 0, e = Emitter::numElementsOf(ends); i < e; ++i) {
    std::optional<int64_t> known = n.b.elementOf(ends, i);
    Value end = n.b.reshape(n.b.sliceDim(ends, 0, i, 1), {});
    // Their dimension is where it is said; along another it would be a number.
    std::optional<int64_t> axis = n.has(3) ? n.b.elementOf(n.in(3), i) : i;
    bool isTheirs = axis && (*axis < 0 ? *axis + Emitter::rankOf(x) : *axis) ==
                                n.b.boundOf(x)->dim;
    if (!known && (!isTheirs || !n.b.hasCount(x, end)))
      return n.intsOf(2, "ends");
    numbers.push_back(known.value_or(std::numeric_limits<int64_t>::max()));
  }
  return numbers;
}

/// Ends of `x`, which is not counted itself, of which one is a number of
/// results: the first so many are taken, as PyTorch's masked_scatter writes it.
static std::optional<Sizes> countedEnds(Node &n, Value x) {
  Value ends = x && n.has(2) && !n.b.boundOf(x) ? n.in(2) : Value();
  if (!ends || Emitter::rankOf(ends) != 1 || !n.b.countBehind(ends))
    return std::nullopt;
  // Known ends may count from behind; those that data say then would, too.
  bool isNumber =
      n.b.forNumbersOfResults({ends}, [&](ArrayRef<HostTensor> known) {
        for (int64_t i = 0; i < known[0].numElements(); ++i)
          if (known[0].getInt(i) < 0 && !n.b.isFixed(ends, i))
            return false;
        return true;
      });
  if (!isNumber)
    return std::nullopt;
  return n.openSizes(ends, "ends");
}

static void importSlice(Node &n) {
  Value x = n.in(0);
  if (auto moving = findMovingSlices(n, x))
    return n.out(lookUpSlices(n, x, *moving));
  std::optional<std::vector<int64_t>> starts = n.intsOf(1, "starts");
  std::optional<Sizes> counted = countedEnds(n, x);
  std::optional<std::vector<int64_t>> ends =
      counted ? std::optional(counted->most) : endsOf(n, x);
  std::optional<std::vector<int64_t>> axes = n.intsOf(3, "axes");
  std::optional<std::vector<int64_t>> steps = n.intsOf(4, "steps");
  if (!x || !starts || !ends || !axes || !steps)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (axes->empty())
    for (size_t i = 0; i < starts->size(); ++i)
      axes->push_back(static_cast<int64_t>(i));
  if (steps->empty())
    steps->assign(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    n.fail("starts, ends, axes and steps differ in length");
    return;
  }
  Shape from(shape.size(), 0), sizes(shape), by(shape.size(), 1);
  std::optional<Bound> bound;
  if (const Bound *found = n.b.boundOf(x))
    bound = *found;
  Value count;
  std::optional<int64_t> first;
  if (n.dims(*axes, shape.size()).size() != axes->size())
    n.fail("an axis occurs twice");
  // There may be no dimension at all.
  if (n.failed())
    return;
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t dim = n.dim((*axes)[i], shape.size());
    int64_t size = shape[dim], step = (*steps)[i];
    // Far beyond any dimension, and safe to negate and add.
    constexpr int64_t far = int64_t(1) << 62;
    step = std::clamp(step, -far, far);
    int64_t start = std::clamp((*starts)[i], -far, far);
    int64_t end = std::clamp((*ends)[i], -far, far);
    if (step == 0) {
      n.fail("a step is 0");
      return;
    }
    if (counted && counted->open == i) {
      if (start != 0 || step != 1)
        return (void)n.intsOf(2, "ends");
      first = dim;
      count = end > size
                  ? n.b.min(counted->count,
                            n.b.scalar(DType::I64, static_cast<double>(size)))
                  : counted->count;
    }
    // Results come first; what is left of them comes first, too.
    if (bound && dim == bound->dim && start >= 0 && step == 1) {
      auto number = [&](int64_t value) {
        return n.b.scalar(DType::I64, static_cast<double>(value));
      };
      count = end < 0 ? n.b.add(bound->count, static_cast<double>(end))
                      : n.b.min(bound->count, number(std::min(end, size)));
      count =
          n.b.max(n.b.add(count, static_cast<double>(-std::min(start, size))),
                  number(0));
    }
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    if (step > 0) {
      start = std::clamp<int64_t>(start, 0, size);
      end = std::clamp<int64_t>(end, 0, size);
    } else {
      start = std::clamp<int64_t>(start, -1, size - 1);
      end = std::clamp<int64_t>(end, -1, size - 1);
    }
    int64_t span = step > 0 ? end - start : start - end;
    int64_t stride = step > 0 ? step : -step;
    sizes[dim] = span > 0 ? (span - 1) / stride + 1 : 0;
    from[dim] = sizes[dim] ? start : 0;
    by[dim] = sizes[dim] > 1 ? step : 1;
  }
  if (first) {
    Value y = n.b.slice(x, from, sizes, by);
    // All that there is room for is not what was given.
    if (y == x)
      y = n.b.copied(x);
    return n.out(n.b.bounded(y, *first, count));
  }
  if (!count || sizes[bound->dim] == shape[bound->dim])
    return n.out(n.b.slice(x, from, sizes, by));
  n.out(n.b.bounded(n.b.slice(n.b.filled(x, 0), from, sizes, by), bound->dim,
                    count));
}

/// Pads that fill results up to one size, however many there are; nothing of
/// others.
static std::optional<std::vector<int64_t>> padsToOneSize(Node &n, Value x) {
  const Bound *bound = n.b.boundOf(x);
  if (!bound || !n.has(1) || n.has(3) || !n.b.countBehind(n.in(1)))
    return std::nullopt;
  size_t rank = Emitter::rankOf(x), behind = rank + bound->dim;
  std::vector<int64_t> wanted;
  bool isOne = n.b.forNumbersOfResults(
      {n.in(1), bound->count}, [&](ArrayRef<HostTensor> known) {
        std::vector<int64_t> numbers = known[0].toInts();
        if (numbers.size() != 2 * rank)
          return false;
        // How long it is then.
        numbers[behind] += known[1].getInt(0);
        if (wanted.empty())
          wanted = numbers;
        return numbers == wanted;
      });
  if (!isOne || wanted[bound->dim] != 0)
    return std::nullopt;
  wanted[behind] -= Emitter::shapeOf(x)[bound->dim];
  return wanted;
}

static Value padNumber(Node &n, Value x) {
  return n.has(2) ? n.b.reshape(n.in(2), {})
                  : n.b.like(x, n.floatAttr("value", 0));
}

static void importPad(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  bool isConstant = n.stringAttr("mode", "constant") == "constant";
  std::optional<std::vector<int64_t>> pads =
      isConstant ? padsToOneSize(n, x) : std::nullopt;
  if (pads) {
    n.b.dropBounds();
    x = n.b.filled(x, padNumber(n, x));
  } else {
    pads = n.intsOf(1, "pads");
  }
  std::optional<std::vector<int64_t>> axes;
  if (n.has(3))
    axes = n.knownInts(3, "axes");
  if (!x || !pads || n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t rank = shape.size();
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < rank; ++i)
      axes->push_back(i);
  }
  if (pads->size() != 2 * axes->size()) {
    n.fail("pads has not two numbers an axis");
    return;
  }
  constexpr int64_t maxPad = int64_t(1) << 40;
  Shape low(rank, 0), high(rank, 0), starts(rank, 0), sizes(shape);
  for (size_t i = 0; i < axes->size(); ++i) {
    int64_t dim = n.dim((*axes)[i], rank);
    if (n.failed())
      return;
    low[dim] = (*pads)[i];
    high[dim] = (*pads)[i + axes->size()];
  }
  // Negative pads cut.
  for (int64_t i = 0; i < rank; ++i) {
    auto isSane = [](int64_t pad) { return pad >= -maxPad && pad <= maxPad; };
    if (!isSane(low[i]) || !isSane(high[i])) {
      n.fail("pads are out of range");
      return;
    }
    starts[i] = std::max<int64_t>(0, -low[i]);
    sizes[i] -= starts[i] + std::max<int64_t>(0, -high[i]);
    low[i] = std::max<int64_t>(0, low[i]);
    high[i] = std::max<int64_t>(0, high[i]);
    if (sizes[i] < 0) {
      n.fail("negative pads cut more than dimension " + llvm::Twine(i) +
             " has");
      return;
    }
  }
  PadMode mode = *symbolizePadMode(n.stringAttr("mode", "constant"));
  Value value;
  if (mode == PadMode::constant)
    value = padNumber(n, x);
  x = n.b.slice(x, starts, sizes);
  const Bound *bound = n.b.boundOf(x);
  int64_t added = bound ? low[bound->dim] + high[bound->dim] : 0;
  if (added == 0 || mode != PadMode::constant)
    return n.out(n.b.pad(x, low, high, mode, value));
  // Behind those in front and the results there is nothing but this value.
  Bound results = *bound;
  n.b.dropBounds();
  Value y = n.b.pad(n.b.filled(x, value), low, high, mode, value);
  n.out(n.b.bounded(y, results.dim,
                    n.b.add(results.count, static_cast<double>(added))));
}

static void importTile(Node &n) {
  Value x = n.in(0);
  std::optional<std::vector<int64_t>> repeats = n.knownInts(1, "repeats");
  if (!x || !repeats)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (repeats->size() != shape.size()) {
    n.fail("repeats has not one number a dimension");
    return;
  }
  // [a, b] -> [1, a, 1, b] -> [r0, a, r1, b] -> [r0 a, r1 b]
  Shape open, wide, result;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t size;
    if ((*repeats)[i] < 0 || llvm::MulOverflow((*repeats)[i], shape[i], size)) {
      n.fail("repeats are out of range");
      return;
    }
    open.insert(open.end(), {1, shape[i]});
    wide.insert(wide.end(), {(*repeats)[i], shape[i]});
    result.push_back(size);
  }
  n.out(n.b.reshape(n.b.broadcast(n.b.reshape(x, open), wide), result));
}

static void importTrilu(Node &n) {
  Value x = n.in(0);
  int64_t k = 0;
  if (n.has(1))
    k = n.knownInt(1, "k").value_or(0);
  if (!x || n.failed())
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() < 2) {
    n.fail("needs at least two dimensions");
    return;
  }
  Shape line = {shape[shape.size() - 2], shape.back()};
  Value row = n.b.iota(DType::I64, {line[0], 1}, 0);
  Value column = n.b.iota(DType::I64, {1, line[1]}, 1);
  Value diagonal = n.b.add(row, n.b.like(row, static_cast<double>(k)));
  Value kept =
      n.b.compare(n.intAttr("upper", 1) ? CompareKind::ge : CompareKind::le,
                  column, diagonal);
  n.out(n.b.select(kept, x, n.b.like(x, 0)));
}

static void importReverseSequence(Node &n) {
  Value x = n.in(0), lengths = n.in(1);
  if (!x || !lengths)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t rank = shape.size();
  int64_t time = n.dim(n.intAttr("time_axis", 0), rank);
  int64_t batch = n.dim(n.intAttr("batch_axis", 1), rank);
  if (n.failed())
    return;
  // Index along time: length - 1 - i below the length, i from there.
  Shape timeLine(rank, 1), batchLine(rank, 1);
  timeLine[time] = shape[time];
  batchLine[batch] = shape[batch];
  Value i = n.b.iota(DType::I64, timeLine, time);
  Value length = n.b.reshape(n.b.cast(lengths, DType::I64), batchLine);
  Value mirrored = n.b.sub(n.b.sub(length, n.b.like(length, 1)), i);
  Value index =
      n.b.select(n.b.compare(CompareKind::lt, i, length), mirrored, i);
  n.out(n.b.gatherElements(x, n.b.broadcast(index, shape), time));
}

static const OpEntry entries[] = {
    {"Pad", importPad},     {"ReverseSequence", importReverseSequence},
    {"Slice", importSlice}, {"Tile", importTile},
    {"Trilu", importTrilu},
};

void ax::import::addSlice(OpTable &table) { table.add(entries); }
