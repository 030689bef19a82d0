//===- OpGenerators.cpp - Random instances of every operation -------------===//

#include "OpGenerators.h"

#include "ax/Eval/Elements.h"

#include <numeric>

using namespace mlir;

namespace ax::test {

Shape Gen::shape(int64_t minRank, int64_t maxRank) {
  Shape shape(pick(minRank, maxRank));
  int64_t elements = 1;
  for (int64_t &size : shape) {
    size = elements > 200 ? pick(1, 2) : extent();
    elements *= size;
  }
  return shape;
}

Shape Gen::broadcastable(const Shape &full) {
  Shape shape = full;
  for (int64_t &size : shape)
    if (chance(25))
      size = 1;
  if (chance(30) && !shape.empty())
    shape.erase(shape.begin(), shape.begin() + pick(0, shape.size()));
  return shape;
}

HostTensor Gen::values(DType type, const Shape &shape, int64_t low,
                       int64_t high) {
  HostTensor tensor(type, shape);
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    tensor.setInt(i, type == DType::Bool ? pick(0, 1) : pick(low, high));
  return tensor;
}

Value Gen::operand(DType dtype, const Shape &shape, int64_t low, int64_t high) {
  tensors.push_back(values(dtype, shape, low, high));
  return block.addArgument(type(dtype, shape), builder.getUnknownLoc());
}

RankedTensorType Gen::type(DType type, const Shape &shape) {
  return RankedTensorType::get(shape,
                               eval::toElementType(type, builder.getContext()));
}

template <typename OpT, typename... Args>
static Operation *make(Gen &g, Args &&...args) {
  return OpT::create(g.builder, g.builder.getUnknownLoc(),
                     std::forward<Args>(args)...);
}

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

static Operation *unary(Gen &g) {
  auto kind = static_cast<UnaryKind>(g.pick(0, getMaxEnumValForUnaryKind()));
  DType type = DType::F32;
  if (kind == UnaryKind::logical_not)
    type = DType::Bool;
  else if (kind == UnaryKind::bit_not)
    type = DType::I32;
  return make<UnaryOp>(g, kind, g.operand(type, g.shape(0, 4)));
}

static Operation *binary(Gen &g) {
  auto kind = static_cast<BinaryKind>(g.pick(0, getMaxEnumValForBinaryKind()));
  // More of those through which partial sums pass.
  if (g.chance(50))
    kind = g.oneOf(
        {BinaryKind::add, BinaryKind::sub, BinaryKind::mul, BinaryKind::div});
  DType type = g.number();
  switch (kind) {
  case BinaryKind::logical_and:
  case BinaryKind::logical_or:
  case BinaryKind::logical_xor:
    type = DType::Bool;
    break;
  case BinaryKind::bit_and:
  case BinaryKind::bit_or:
  case BinaryKind::bit_xor:
  case BinaryKind::shl:
  case BinaryKind::shr:
    type = DType::U8;
    break;
  default:
    break;
  }
  Shape full = g.shape(0, 4), lhs = full, rhs = full;
  (g.chance(50) ? lhs : rhs) = g.broadcastable(full);
  int64_t low = type == DType::U8 ? 0 : -4;
  // Addends divided by 0 are not what their sum gives.
  int64_t rhsLow = kind == BinaryKind::div ? 1 : low;
  return make<BinaryOp>(g, kind, g.operand(type, lhs, low),
                        g.operand(type, rhs, rhsLow));
}

static Operation *compare(Gen &g) {
  auto kind = static_cast<CompareKind>(g.pick(0, 5));
  DType type = g.number();
  Shape full = g.shape(0, 4);
  return make<CompareOp>(g, kind, g.operand(type, full),
                         g.operand(type, g.broadcastable(full)));
}

static Operation *select(Gen &g) {
  DType type = g.oneOf({DType::F32, DType::I64, DType::Bool});
  Shape full = g.shape(0, 4);
  return make<SelectOp>(g, g.operand(DType::Bool, g.broadcastable(full)),
                        g.operand(type, full),
                        g.operand(type, g.broadcastable(full)));
}

static Operation *cast(Gen &g) {
  auto any = [&] {
    return g.oneOf({DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32,
                    DType::U8, DType::Bool});
  };
  Shape shape = g.shape(0, 4);
  DType from = any(), to = any();
  return make<CastOp>(g, g.type(to, shape), g.operand(from, shape));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static Operation *constant(Gen &g) {
  DType type = g.oneOf({DType::F32, DType::I64, DType::Bool});
  HostTensor tensor = g.values(type, g.shape(0, 4));
  return make<ConstantOp>(g,
                          eval::toElementsAttr(tensor, g.builder.getContext()));
}

static Operation *iota(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t dim = g.pick(0, shape.size() - 1);
  return make<IotaOp>(g, g.type(g.number(), shape), dim);
}

/// A shape of as many elements: primes grouped anew, and some ones.
static Shape regroup(Gen &g, std::vector<int64_t> primes) {
  Shape shape;
  for (int64_t prime : primes) {
    if (shape.empty() || g.chance(50))
      shape.push_back(1);
    shape.back() *= prime;
  }
  if (g.chance(30))
    shape.insert(shape.begin() + g.pick(0, shape.size()), 1);
  return shape;
}

static Operation *reshape(Gen &g) {
  std::vector<int64_t> primes;
  int64_t product = 1;
  while (product < 100 && !g.chance(10)) {
    primes.push_back(g.oneOf<int64_t>({2, 2, 2, 3, 5}));
    product *= primes.back();
  }
  Shape from = regroup(g, primes);
  // Mostly digits that nest, sometimes any.
  if (g.chance(25))
    g.shuffle(primes);
  return make<ReshapeOp>(g, g.type(DType::F32, regroup(g, primes)),
                         g.operand(DType::F32, from));
}

static Operation *transpose(Gen &g) {
  Shape from = g.shape(0, 4), to;
  SmallVector<int64_t> order(from.size());
  std::iota(order.begin(), order.end(), 0);
  g.shuffle(order);
  for (int64_t dim : order)
    to.push_back(from[dim]);
  return make<TransposeOp>(g, g.type(DType::F32, to),
                           g.operand(DType::F32, from), order);
}

static Operation *broadcast(Gen &g) {
  Shape to = g.shape(0, 4);
  return make<BroadcastOp>(g, g.type(DType::F32, to),
                           g.operand(DType::F32, g.broadcastable(to)));
}

static Operation *slice(Gen &g) {
  Shape from, to;
  SmallVector<int64_t> starts, steps;
  for (int64_t i = g.pick(1, 3); i > 0; --i) {
    int64_t size = g.extent();
    if (g.chance(30)) {
      // Whole parts of an aligned dimension.
      int64_t parts = g.pick(1, 3), first = g.pick(0, parts - 1);
      from.push_back(parts * size);
      starts.push_back(first * size);
      to.push_back(g.pick(1, parts - first) * size);
      steps.push_back(1);
    } else {
      int64_t start = g.pick(0, size - 1);
      int64_t step = g.oneOf<int64_t>({1, 1, 2, -1, -2});
      int64_t room = step > 0 ? (size - 1 - start) / step : start / -step;
      from.push_back(size);
      starts.push_back(start);
      to.push_back(g.pick(1, room + 1));
      steps.push_back(step);
    }
  }
  return make<SliceOp>(g, g.type(DType::F32, to), g.operand(DType::F32, from),
                       starts, steps);
}

static Operation *dynamicSlice(Gen &g) {
  Shape from = g.shape(1, 3), to;
  Value operand = g.operand(DType::F32, from);
  SmallVector<Value> starts;
  for (int64_t size : from) {
    to.push_back(g.pick(1, size));
    starts.push_back(g.operand(DType::I64, {}, -1, size));
  }
  return make<DynamicSliceOp>(g, g.type(DType::F32, to), operand, starts);
}

static Operation *concat(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t dim = g.pick(0, shape.size() - 1);
  bool equal = g.chance(40);
  SmallVector<Value> operands;
  for (int64_t i = g.pick(1, 3); i > 0; --i) {
    if (!equal)
      shape[dim] = g.extent();
    operands.push_back(g.operand(DType::F32, shape));
  }
  return make<ConcatOp>(g, ValueRange(operands), dim);
}

static Operation *pad(Gen &g) {
  Shape shape = g.shape(1, 3);
  auto mode = static_cast<PadMode>(g.pick(0, 3));
  SmallVector<int64_t> low, high;
  for (int64_t size : shape) {
    bool padded = g.chance(40);
    low.push_back(padded ? g.pick(0, std::max<int64_t>(size - 1, 0)) : 0);
    high.push_back(padded ? g.pick(0, std::max<int64_t>(size - 1, 0)) : 0);
  }
  Value operand = g.operand(DType::F32, shape);
  Value value = mode == PadMode::constant ? g.operand(DType::F32, {}) : Value();
  return make<PadOp>(g, operand, value, low, high, mode);
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

static Operation *gather(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t axis = g.pick(0, shape.size() - 1);
  DType type = g.oneOf({DType::F32, DType::F32, DType::I64, DType::Bool});
  Value operand = g.operand(type, shape);
  Value indices = g.operand(g.oneOf({DType::I32, DType::I64}), g.shape(0, 2),
                            -shape[axis], shape[axis] - 1);
  return make<GatherOp>(g, operand, indices, axis);
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
  Value operand = g.operand(DType::F32, shape);
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
  Value operand = g.operand(DType::F32, shape);
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
  Value operand = g.operand(DType::F32, shape);
  Value indices =
      g.operand(DType::I64, indicesShape, -shape[axis], shape[axis] - 1);
  Value updates = g.operand(DType::F32, indicesShape);
  return make<ScatterElementsOp>(g, scatterKind(g), operand, indices, updates,
                                 axis);
}

static Operation *scatterND(Gen &g) {
  Shape shape = g.shape(1, 3), leading = g.shape(0, 2);
  int64_t depth = g.pick(1, shape.size());
  Shape updatesShape = leading;
  updatesShape.insert(updatesShape.end(), shape.begin() + depth, shape.end());
  Value operand = g.operand(DType::F32, shape);
  Value indices = indicesND(g, shape, 0, leading, depth);
  Value updates = g.operand(DType::F32, updatesShape);
  return make<ScatterNDOp>(g, scatterKind(g), operand, indices, updates);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static ReduceOpKind reduceKind(Gen &g) {
  return g.oneOf({ReduceOpKind::sum, ReduceOpKind::sum, ReduceOpKind::max,
                  ReduceOpKind::min, ReduceOpKind::prod});
}

static Operation *reduce(Gen &g) {
  Shape shape = g.shape(0, 4);
  SmallVector<int64_t> dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (g.chance(50))
      dims.push_back(dim);
  ReduceOpKind kind = reduceKind(g);
  bool extreme = kind == ReduceOpKind::max || kind == ReduceOpKind::min;
  DType type = extreme && g.chance(25) ? DType::Bool : g.number();
  return make<ReduceOp>(g, kind, g.operand(type, shape, -2, 2), dims,
                        g.chance(50));
}

static Operation *argReduce(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<ArgReduceOp>(g, g.operand(DType::F32, shape),
                           g.pick(0, shape.size() - 1), g.chance(50),
                           g.chance(50));
}

static Operation *cumulative(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<CumulativeOp>(
      g, reduceKind(g), g.operand(DType::F32, shape, -2, 2),
      g.pick(0, shape.size() - 1), g.chance(50), g.chance(50));
}

static Operation *topK(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t dim = g.pick(0, shape.size() - 1);
  return make<TopKOp>(g, g.operand(DType::F32, shape), g.pick(1, shape[dim]),
                      dim, g.chance(50));
}

static Operation *softmax(Gen &g) {
  Shape shape = g.shape(1, 3);
  return make<SoftmaxOp>(g, g.operand(DType::F32, shape),
                         g.pick(0, shape.size() - 1), g.chance(50));
}

template <typename OpT>
static Operation *norm(Gen &g) {
  Shape shape = g.shape(1, 3);
  int64_t axis = g.pick(0, shape.size() - 1);
  Shape inner(shape.begin() + axis, shape.end());
  Value x = g.operand(DType::F32, shape);
  Value scale = g.chance(60) ? g.operand(DType::F32, inner) : Value();
  Value bias = g.chance(60) ? g.operand(DType::F32, inner) : Value();
  return make<OpT>(g, x, scale, bias, axis, llvm::APFloat(1e-5));
}

//===----------------------------------------------------------------------===//
// Contractions and windows
//===----------------------------------------------------------------------===//

static Operation *dot(Gen &g) {
  // 0: batch, 1: contracted, 2: free.
  Shape lhs, rhs;
  struct Dim {
    int role;
    int64_t size;
    int64_t number;
  };
  std::vector<Dim> left, right;
  for (int role : {0, 1, 2})
    for (int64_t i = g.pick(0, 2); i > 0; --i) {
      Dim dim{role, g.extent(), static_cast<int64_t>(left.size())};
      left.push_back(dim);
      if (role != 2)
        right.push_back(dim);
    }
  for (int64_t i = g.pick(0, 1); i > 0; --i)
    right.push_back({2, g.extent(), -1});
  g.shuffle(left);
  g.shuffle(right);
  SmallVector<int64_t> lhsRoles[3], rhsRoles[3];
  auto indexOf = [](const std::vector<Dim> &dims, int64_t number) {
    return llvm::find_if(dims,
                         [&](const Dim &d) { return d.number == number; }) -
           dims.begin();
  };
  for (auto [i, dim] : llvm::enumerate(left)) {
    lhs.push_back(dim.size);
    if (dim.role == 2)
      continue;
    lhsRoles[dim.role].push_back(i);
    rhsRoles[dim.role].push_back(indexOf(right, dim.number));
  }
  for (const Dim &dim : right)
    rhs.push_back(dim.size);
  DType type = g.number();
  return make<DotOp>(g, g.operand(type, lhs), g.operand(type, rhs), lhsRoles[0],
                     rhsRoles[0], lhsRoles[1], rhsRoles[1]);
}

static UnaryKindAttr activation(Gen &g) {
  return g.chance(20)
             ? UnaryKindAttr::get(g.builder.getContext(), UnaryKind::relu)
             : UnaryKindAttr();
}

static Operation *linear(Gen &g) {
  Shape xShape = g.shape(1, 3), result = xShape;
  int64_t k = xShape.back(), n = g.extent();
  result.back() = n;
  bool transposed = g.chance(50);
  Value x = g.operand(DType::F32, xShape);
  Value w = g.operand(DType::F32, transposed ? Shape{n, k} : Shape{k, n});
  Value bias = g.chance(30) ? g.operand(DType::F32, {n}) : Value();
  Value residual = g.chance(20) ? g.operand(DType::F32, result) : Value();
  return make<LinearOp>(g, x, w, bias, residual, transposed, activation(g));
}

namespace {
/// Spatial attributes of a window op over `spatial` that leave at least one
/// result element.
struct Spatial {
  Shape spatial, kernel;
  SmallVector<int64_t> strides, pads, dilations;

  Spatial(Gen &g, int64_t rank) {
    SmallVector<int64_t> high;
    for (int64_t i = 0; i < rank; ++i) {
      kernel.push_back(g.pick(1, 3));
      strides.push_back(g.pick(1, 2));
      dilations.push_back(g.pick(1, 2));
      pads.push_back(g.pick(0, kernel.back() - 1));
      high.push_back(g.pick(0, kernel.back() - 1));
      spatial.push_back((kernel.back() - 1) * dilations.back() + g.pick(1, 3));
    }
    pads.append(high);
  }
  Shape withLeading(int64_t a, int64_t b, const Shape &rest) const {
    Shape shape = {a, b};
    shape.insert(shape.end(), rest.begin(), rest.end());
    return shape;
  }
};
} // namespace

static Operation *conv(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  int64_t batch = g.pick(1, 4), groups = g.oneOf<int64_t>({1, 1, 2, 4, 6});
  int64_t ins = g.pick(1, 4), outs = groups * g.pick(1, 4);
  Value x =
      g.operand(DType::F32, s.withLeading(batch, groups * ins, s.spatial));
  Value w = g.operand(DType::F32, s.withLeading(outs, ins, s.kernel));
  Value bias = g.chance(30) ? g.operand(DType::F32, {outs}) : Value();
  return make<ConvOp>(g, x, w, bias, Value(), s.strides, s.pads, s.dilations,
                      groups, activation(g));
}

static Operation *convTranspose(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  int64_t batch = g.pick(1, 4), groups = g.oneOf<int64_t>({1, 1, 2, 4});
  int64_t ins = groups * g.pick(1, 4), outs = g.pick(1, 4);
  SmallVector<int64_t> outputPads(s.spatial.size(), 0);
  Value x = g.operand(DType::F32, s.withLeading(batch, ins, s.spatial));
  Value w = g.operand(DType::F32, s.withLeading(ins, outs, s.kernel));
  Value bias = g.chance(30) ? g.operand(DType::F32, {outs * groups}) : Value();
  return make<ConvTransposeOp>(g, x, w, bias, s.strides, s.pads, s.dilations,
                               outputPads, groups);
}

static Operation *pool(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  auto kind = static_cast<PoolKind>(g.pick(0, 2));
  Value x =
      g.operand(DType::F32, s.withLeading(g.pick(1, 4), g.extent(), s.spatial));
  SmallVector<int64_t> extra(s.spatial.size(), 0);
  return make<PoolOp>(g, kind, x, s.kernel, s.strides, s.pads, s.dilations,
                      extra, g.chance(50));
}

static Operation *attention(Gen &g) {
  int64_t batch = g.pick(1, 4), kvHeads = g.pick(1, 4);
  int64_t heads = kvHeads * g.oneOf<int64_t>({1, 1, 2, 4});
  int64_t s = g.pick(1, 5), t = g.pick(1, 5), d = g.pick(1, 3);
  int64_t dv = g.pick(1, 4);
  bool causal = g.chance(30);
  Value q = g.operand(DType::F32, {batch, heads, s, d});
  Value k = g.operand(DType::F32, {batch, kvHeads, t, d});
  Value v = g.operand(DType::F32, {batch, kvHeads, t, dv});
  Value mask;
  if (g.chance(50)) {
    Shape shape = {batch, heads, s, t};
    for (int64_t &size : shape)
      if (g.chance(40))
        size = 1;
    mask = g.operand(g.oneOf({DType::Bool, DType::F32}), shape);
  }
  FloatAttr softcap =
      g.chance(20) ? g.builder.getF64FloatAttr(3.0) : FloatAttr();
  return make<AttentionOp>(g, q, k, v, mask, llvm::APFloat(0.5), causal,
                           softcap, g.chance(50));
}

static Operation *load(Gen &g) {
  return make<LoadOp>(g, g.type(g.number(), g.shape(0, 4)), "state");
}

const llvm::StringMap<Generator> &opGenerators() {
  static const auto *generators = new llvm::StringMap<Generator>{
      {"unary", unary},
      {"binary", binary},
      {"compare", compare},
      {"select", select},
      {"cast", cast},
      {"constant", constant},
      {"iota", iota},
      {"reshape", reshape},
      {"transpose", transpose},
      {"broadcast", broadcast},
      {"slice", slice},
      {"dynamic_slice", dynamicSlice},
      {"concat", concat},
      {"pad", pad},
      {"gather", gather},
      {"gather_elements", gatherElements},
      {"gather_nd", gatherND},
      {"scatter_elements", scatterElements},
      {"scatter_nd", scatterND},
      {"reduce", reduce},
      {"arg_reduce", argReduce},
      {"cumulative", cumulative},
      {"top_k", topK},
      {"softmax", softmax},
      {"layer_norm", norm<LayerNormOp>},
      {"rms_norm", norm<RMSNormOp>},
      {"dot", dot},
      {"linear", linear},
      {"conv", conv},
      {"conv_transpose", convTranspose},
      {"pool", pool},
      {"attention", attention},
      {"load", load},
  };
  return *generators;
}

} // namespace ax::test
