//===- Shape.cpp - Shapes and orders of dimensions ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

#include <numeric>

using namespace ax;
using namespace ax::import;

static void importIdentity(Node &n) {
  if (n.numInputs() == 1)
    n.out(n.entry(0));
}

static void importShape(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t rank = shape.size();
  auto clampIndex = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank);
  };
  int64_t start = clampIndex(n.intAttr("start", 0));
  int64_t end = std::max(start, clampIndex(n.intAttr("end", rank)));
  const Bound *bound = n.b.boundOf(x);
  n.b.dropBounds();
  if (!bound || bound->dim < start || bound->dim >= end)
    return n.out(n.b.ints(shape.slice(start, end - start)));
  std::vector<Value> parts;
  if (bound->dim > start)
    parts.push_back(n.b.ints(shape.slice(start, bound->dim - start)));
  parts.push_back(n.b.reshape(bound->count, {1}));
  if (bound->dim + 1 < end)
    parts.push_back(
        n.b.ints(shape.slice(bound->dim + 1, end - bound->dim - 1)));
  n.out(n.b.concat(parts, 0));
}

static void importSize(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  int64_t count = Emitter::numElementsOf(x);
  const Bound *bound = n.b.boundOf(x);
  if (!bound)
    return n.out(n.b.constant(HostTensor::scalar(count)));
  n.b.dropBounds();
  int64_t room = std::max<int64_t>(Emitter::shapeOf(x)[bound->dim], 1);
  n.out(n.b.mul(bound->count, static_cast<double>(count / room)));
}

static void refuseSize(Node &n) {
  n.unsupported("where there are results that data count, the shape says "
                "another size");
}

/// How many places of dimension `at` of `target` a result of `x` has there, if
/// each is cut into several: [n, 2, 3] as [n * 2, 3].
static std::optional<int64_t>
placesOfEach(Node &n, Value x, ArrayRef<int64_t> target, size_t at) {
  const Bound *bound = n.b.boundOf(x);
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (!bound || llvm::is_contained(shape, 0))
    return std::nullopt;
  auto product = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                           std::multiplies<>());
  };
  int64_t each = product(shape.drop_front(bound->dim + 1)),
          behind = product(target.drop_front(at + 1));
  bool isSplit =
      behind > 0 && each % behind == 0 && each > behind &&
      product(shape.take_front(bound->dim)) == product(target.take_front(at));
  return isSplit ? std::optional(each / behind) : std::nullopt;
}

/// Results of which each is `many` in dimension `at` of `target` then.
static Value splitResults(Node &n, Value x, ArrayRef<int64_t> target, size_t at,
                          int64_t many) {
  Value count = n.b.boundOf(x)->count;
  n.b.dropBounds();
  Value y = n.b.reshape(n.b.filled(x, 0.0), target);
  return n.b.bounded(y, static_cast<int64_t>(at),
                     n.b.mul(count, static_cast<double>(many)));
}

static void importReshape(Node &n) {
  Value x = n.in(0);
  std::optional<Shape> target;
  std::optional<size_t> counted;
  Value number;
  if (!n.has(1))
    target = n.intsAttr("shape");
  else if (std::optional<Sizes> sizes = n.sizes(1, "shape")) {
    // How many results there are, the operand says.
    target = std::move(sizes->most);
    counted = sizes->open;
    number = sizes->count;
  }
  if (!x || !target)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  bool allowZero = n.intAttr("allowzero", 0);
  int64_t known = 1;
  std::optional<size_t> open;
  Shape asWritten = *target;
  for (size_t i = 0; i < target->size(); ++i) {
    int64_t &size = (*target)[i];
    if (size == 0 && !allowZero) {
      if (i >= shape.size()) {
        n.fail(llvm::formatv("shape[{0}] is 0 (keep), but the input has rank "
                             "{1}",
                             i, shape.size()));
        return;
      }
      size = shape[i];
    }
    if (size == -1 && !open) {
      open = i;
      continue;
    }
    if (size < 0 || llvm::MulOverflow(known, size, known)) {
      n.fail("impossible shape [" + shapeToString(*target) + "]");
      return;
    }
  }
  if (open) {
    int64_t count = Emitter::numElementsOf(x);
    if (known == 0 || count % known) {
      n.fail(llvm::formatv("{0} elements do not divide into [{1}]", count,
                           shapeToString(*target)));
      return;
    }
    (*target)[*open] = count / known;
  }
  std::optional<size_t> at = open ? open : counted;
  std::optional<int64_t> many;
  if (at)
    many = placesOfEach(n, x, *target, *at);
  Value y =
      many ? splitResults(n, x, *target, *at, *many) : n.b.reshape(x, *target);
  if (!y)
    return;
  // Room for results is no number of theirs: where they come to lie, the shape
  // leaves it open.
  std::optional<size_t> dim;
  if (const Bound *bound = n.b.boundOf(y))
    dim = static_cast<size_t>(bound->dim);
  bool isOpen = dim && (counted == dim || asWritten[*dim] <= 0);
  // Of another number, what is left open would be another size.
  bool isOther = counted && (open || many) && !n.b.hasCount(y, number);
  if ((dim && !isOpen) || (counted && counted != dim) || isOther)
    return refuseSize(n);
  n.out(y);
}

static void importFlatten(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t rank = shape.size(), axis = n.intAttr("axis", 1);
  if (axis != rank)
    axis = n.dim(axis, rank);
  if (n.failed())
    return;
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? rows : columns) *= shape[i];
  for (size_t at : {0, 1})
    if (std::optional<int64_t> many = placesOfEach(n, x, {rows, columns}, at))
      return n.out(splitResults(n, x, {rows, columns}, at, *many));
  n.out(n.b.reshape(x, {rows, columns}));
}

static void importSqueeze(Node &n) {
  Value x = n.in(0);
  std::optional<std::vector<int64_t>> axes = n.intsOf(1, "axes");
  if (!x || !axes)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  bool all = !n.has(1) && !n.hasAttribute("axes");
  std::vector<int64_t> dims = n.dims(*axes, shape.size());
  if (n.failed())
    return;
  Shape result;
  for (auto [i, size] : llvm::enumerate(shape)) {
    bool named = llvm::is_contained(dims, static_cast<int64_t>(i));
    if (named && size != 1) {
      n.fail(llvm::formatv("dimension {0} of {1} elements cannot be dropped", i,
                           size));
      return;
    }
    if (!named && !(all && size == 1))
      result.push_back(size);
  }
  n.out(n.b.reshape(x, result));
}

static void importUnsqueeze(Node &n) {
  Value x = n.in(0);
  std::optional<std::vector<int64_t>> axes = n.intsOf(1, "axes");
  if (!x || !axes)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  std::vector<int64_t> dims = n.dims(*axes, shape.size() + axes->size());
  if (n.failed())
    return;
  if (dims.size() != axes->size()) {
    n.fail("an axis occurs twice");
    return;
  }
  Shape result(shape);
  for (int64_t dim : dims)
    result.insert(result.begin() + dim, 1);
  n.out(n.b.reshape(x, result));
}

static void importTranspose(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  int64_t rank = Emitter::rankOf(x);
  std::vector<int64_t> permutation = n.intsAttr("perm");
  if (!n.hasAttribute("perm"))
    for (int64_t i = rank - 1; i >= 0; --i)
      permutation.push_back(i);
  for (int64_t &dim : permutation)
    dim = n.dim(dim, rank);
  std::vector<int64_t> sorted = permutation;
  llvm::sort(sorted);
  for (int64_t i = 0; i < rank && !n.failed(); ++i)
    if (static_cast<int64_t>(sorted.size()) != rank || sorted[i] != i)
      n.fail("perm is no permutation of the dimensions");
  n.out(n.b.transpose(x, permutation));
}

static void importExpand(Node &n) {
  Value x = n.in(0);
  std::optional<Sizes> sizes = n.sizes(1, "shape");
  if (!x || !sizes)
    return;
  Shape *target = &sizes->most;
  // Both ways: sizes 1 of the target keep the input's.
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  size_t before = target->size();
  if (target->size() < shape.size())
    target->insert(target->begin(), shape.size() - target->size(), 1);
  size_t shift = target->size() - shape.size();
  std::optional<size_t> open, dim;
  if (sizes->open)
    open = *sizes->open + target->size() - before;
  if (const Bound *bound = n.b.boundOf(x))
    dim = static_cast<size_t>(bound->dim) + shift;
  // How many there are has a place of its own, or is that of the operand.
  bool isNew = open && (*open < shift || shape[*open - shift] == 1);
  bool isOwn = open ? open == dim && n.b.hasCount(x, sizes->count)
                    : dim && (*target)[*dim] == 1;
  if (dim ? !isOwn : open && !isNew)
    return refuseSize(n);
  for (size_t i = 0; i < shape.size(); ++i)
    if ((*target)[i + shift] == 1)
      (*target)[i + shift] = shape[i];
  Value y = n.b.broadcast(x, *target);
  if (open && !dim) {
    // What has room for one is not the operand, of which there is one.
    if (y == x)
      y = n.b.copied(x);
    y = n.b.bounded(y, static_cast<int64_t>(*open), sizes->count);
  }
  n.out(y);
}

/// Concatenates along a dimension of which some have fewer results than room:
/// those of all, then padding.
static Value concatResults(Node &n, ArrayRef<Value> values, int64_t axis) {
  n.b.dropBounds();
  std::vector<Value> parts, live;
  // Written as models write it who add it up themselves: the numbers, and what
  // is there anyway behind them.
  Value counted;
  int64_t others = 0;
  for (Value value : values) {
    int64_t size = Emitter::shapeOf(value)[axis];
    const Bound *bound = n.b.boundOf(value);
    if (bound && bound->dim != axis)
      return n.unsupported("results along several dimensions");
    if (!bound)
      others += size;
    else
      counted = counted ? n.b.binary(BinaryKind::add, counted, bound->count)
                        : bound->count;
    live.push_back(bound ? n.b.compare(CompareKind::lt,
                                       n.b.iota(DType::I64, {size}, 0),
                                       bound->count)
                         : n.b.broadcast(n.b.scalar(DType::Bool, 1), {size}));
    parts.push_back(n.b.filled(value, 0));
  }
  Value all = n.b.concat(parts, axis), mask = n.b.concat(live, 0);
  if (!all || !mask)
    return {};
  if (others > 0)
    counted = n.b.add(counted, static_cast<double>(others));
  int64_t room = Emitter::shapeOf(all)[axis];
  Value places = n.b.compact(mask, room).first;
  return n.b.gather(all, n.b.bounded(places, 0, n.b.atMost(counted, room)),
                    axis);
}

static void importConcat(Node &n) {
  std::vector<Value> values = n.allInputs();
  if (n.failed() || values.empty())
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(values[0]));
  if (n.failed())
    return;
  bool counts = values.size() > 1 && llvm::any_of(values, [&](Value value) {
                  const Bound *bound = n.b.boundOf(value);
                  return bound && bound->dim == axis;
                });
  n.out(counts ? concatResults(n, values, axis) : n.b.concat(values, axis));
}

/// A dimension of `size` in pieces; `sizes` when the node says them.
static void importSplit(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  int64_t axis = n.dim(n.intAttr("axis", 0), shape.size());
  std::optional<std::vector<int64_t>> sizes = n.intsOf(1, "split");
  if (n.failed() || !sizes)
    return;
  int64_t count = n.intAttr("num_outputs", n.numOutputs());
  if (sizes->empty()) {
    if (count < 1 || count > n.numOutputs()) {
      n.fail("num_outputs does not fit the outputs");
      return;
    }
    if (n.opset < 18 && shape[axis] % count) {
      n.fail(llvm::formatv("dimension {0} of {1} does not divide into {2} "
                           "equal pieces",
                           axis, shape[axis], count));
      return;
    }
    int64_t size = (shape[axis] + count - 1) / count, left = shape[axis];
    for (int64_t i = 0; i < count; ++i, left -= sizes->back())
      sizes->push_back(std::min(size, left));
  }
  int64_t start = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    int64_t size = (*sizes)[i];
    if (size < 0 || size > shape[axis] - start) {
      n.fail("the pieces do not fit dimension " + llvm::Twine(axis) + " of " +
             llvm::Twine(shape[axis]));
      return;
    }
    n.out(static_cast<int>(i), n.b.sliceDim(x, axis, start, size));
    start += size;
  }
  if (start != shape[axis])
    n.fail("the pieces leave a rest of dimension " + llvm::Twine(axis));
}

static void importDepthToSpace(Node &n) {
  Value x = n.in(0);
  int64_t block = n.intAttr("blocksize", 0);
  if (!x)
    return;
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (s.size() != 4 || block < 1 || block > (1 << 15) ||
      s[1] % (block * block)) {
    n.fail("channels do not divide into blocks");
    return;
  }
  int64_t channels = s[1] / (block * block);
  std::string mode = n.stringAttr("mode", "DCR");
  if (mode == "DCR")
    x = n.b.transpose(
        n.b.reshape(x, {s[0], block, block, channels, s[2], s[3]}),
        {0, 3, 4, 1, 5, 2});
  else
    x = n.b.transpose(
        n.b.reshape(x, {s[0], channels, block, block, s[2], s[3]}),
        {0, 1, 4, 2, 5, 3});
  n.out(n.b.reshape(x, {s[0], channels, s[2] * block, s[3] * block}));
}

static void importSpaceToDepth(Node &n) {
  Value x = n.in(0);
  int64_t block = n.intAttr("blocksize", 0);
  if (!x)
    return;
  ArrayRef<int64_t> s = Emitter::shapeOf(x);
  if (s.size() != 4 || block < 1 || block > (1 << 15) || s[2] % block ||
      s[3] % block) {
    n.fail("height and width do not divide into blocks");
    return;
  }
  int64_t h = s[2] / block, w = s[3] / block;
  x = n.b.reshape(x, {s[0], s[1], h, block, w, block});
  x = n.stringAttr("mode", "DCR") == "DCR"
          ? n.b.transpose(x, {0, 3, 5, 1, 2, 4})
          : n.b.transpose(x, {0, 1, 3, 5, 2, 4});
  n.out(n.b.reshape(x, {s[0], s[1] * block * block, h, w}));
}

static const OpEntry entries[] = {
    {"Concat", importConcat},
    {"DepthToSpace", importDepthToSpace},
    {"Expand", importExpand},
    {"Flatten", importFlatten},
    {"Identity", importIdentity},
    {"Reshape", importReshape},
    {"Shape", importShape},
    {"Size", importSize},
    {"SpaceToDepth", importSpaceToDepth},
    {"Split", importSplit},
    {"Squeeze", importSqueeze},
    {"Transpose", importTranspose},
    {"Unsqueeze", importUnsqueeze},
};

void ax::import::addShape(OpTable &table) { table.add(entries); }
