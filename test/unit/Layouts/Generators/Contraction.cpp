//===- Contraction.cpp - Random sums of products --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpGenerators.h"

using namespace mlir;

namespace ax::test {

using Factors = std::pair<DType, DType>;

/// Of `type`, or of eight bits in any combination.
static Factors factors(Gen &g, DType type) {
  if (!g.chance(25))
    return {type, type};
  auto any = [&] { return g.oneOf({DType::F8E4M3FN, DType::F8E5M2}); };
  DType lhs = any();
  return {lhs, any()};
}

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
  Factors types = factors(g, g.number());
  return make<DotOp>(g, g.operand(types.first, lhs),
                     g.operand(types.second, rhs), lhsRoles[0], rhsRoles[0],
                     lhsRoles[1], rhsRoles[1]);
}

static Operation *linear(Gen &g) {
  Shape xShape = g.shape(1, 3);
  int64_t k = xShape.back(), n = g.extent();
  bool transposed = g.chance(50);
  Factors types = factors(g, g.real);
  Value x = g.operand(types.first, xShape);
  Value w = g.operand(types.second, transposed ? Shape{n, k} : Shape{k, n});
  return make<LinearOp>(g, x, w, transposed);
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
  /// How many windows there are.
  Shape windows() const {
    Shape counts;
    for (size_t i = 0; i < spatial.size(); ++i)
      counts.push_back((spatial[i] + pads[i] + pads[i + spatial.size()] -
                        (kernel[i] - 1) * dilations[i] - 1) /
                           strides[i] +
                       1);
    return counts;
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
  Value x = g.operand(g.real, s.withLeading(batch, groups * ins, s.spatial));
  Value w = g.operand(g.real, s.withLeading(outs, ins, s.kernel));
  return make<ConvOp>(g, x, w, s.strides, s.pads, s.dilations, groups);
}

static Operation *convTranspose(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  int64_t batch = g.pick(1, 4), groups = g.oneOf<int64_t>({1, 1, 2, 4});
  int64_t ins = groups * g.pick(1, 4), outs = g.pick(1, 4);
  SmallVector<int64_t> outputPads(s.spatial.size(), 0);
  Value x = g.operand(g.real, s.withLeading(batch, ins, s.spatial));
  Value w = g.operand(g.real, s.withLeading(ins, outs, s.kernel));
  return make<ConvTransposeOp>(g, x, w, s.strides, s.pads, s.dilations,
                               outputPads, groups);
}

static Operation *convWeightGradient(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  int64_t batch = g.pick(1, 4), groups = g.oneOf<int64_t>({1, 1, 2, 4, 6});
  int64_t ins = groups * g.pick(1, 4), outs = groups * g.pick(1, 4);
  Shape windows = s.windows();
  Value x = g.operand(g.real, s.withLeading(batch, ins, s.spatial));
  Value gradient = g.operand(g.real, s.withLeading(batch, outs, windows));
  return make<ConvWeightGradientOp>(g, x, gradient, s.kernel, s.strides, s.pads,
                                    s.dilations, groups);
}

static Operation *maxPoolGradient(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  int64_t batch = g.pick(1, 4), channels = g.extent();
  Value x = g.operand(g.real, s.withLeading(batch, channels, s.spatial));
  Value gradient =
      g.operand(g.real, s.withLeading(batch, channels, s.windows()));
  SmallVector<int64_t> extra(s.spatial.size(), 0);
  return make<MaxPoolGradientOp>(g, x, gradient, s.kernel, s.strides, s.pads,
                                 s.dilations, extra);
}

static Operation *pool(Gen &g) {
  Spatial s(g, g.pick(1, 2));
  auto kind = static_cast<PoolKind>(g.pick(0, 2));
  Value x =
      g.operand(g.real, s.withLeading(g.pick(1, 4), g.extent(), s.spatial));
  SmallVector<int64_t> extra(s.spatial.size(), 0);
  return make<PoolOp>(g, kind, x, s.kernel, s.strides, s.pads, s.dilations,
                      extra, g.chance(50));
}

namespace {
/// What attention and its gradient take.
struct Heads {
  explicit Heads(Gen &g)
      : batch(g.pick(1, 4)), kvHeads(g.pick(1, 4)),
        heads(kvHeads * g.oneOf<int64_t>({1, 1, 2, 4})), s(g.pick(1, 5)),
        t(g.pick(1, 5)), d(g.pick(1, 3)), dv(g.pick(1, 4)),
        causal(g.chance(30)), q(g.operand(g.real, {batch, heads, s, d})),
        k(g.operand(g.real, {batch, kvHeads, t, d})),
        v(g.operand(g.real, {batch, kvHeads, t, dv})) {
    if (g.chance(20))
      softcap = g.builder.getF64FloatAttr(3.0);
  }
  Value mask(Gen &g) {
    Value made = makeMask(g);
    bool hasEnd = causal || (made && getElementTypeOrSelf(made).isInteger(64));
    if (hasEnd && g.chance(40))
      window = g.builder.getI64IntegerAttr(g.pick(1, 4));
    return made;
  }
  Value makeMask(Gen &g) const {
    if (g.chance(50))
      return {};
    Shape shape = {batch, heads, s, t};
    for (int64_t &size : shape)
      if (g.chance(40))
        size = 1;
    if (g.chance(30)) {
      shape[2] = 1;
      return g.operand(DType::I64, shape);
    }
    return g.operand(g.oneOf({DType::Bool, g.real}), shape);
  }

  int64_t batch, kvHeads, heads, s, t, d, dv;
  bool causal;
  Value q, k, v;
  FloatAttr softcap;
  /// Of the mask that was made last.
  IntegerAttr window;
};
} // namespace

static Operation *attention(Gen &g) {
  Heads h(g);
  int64_t empty = g.pick(0, 2);
  Value mask = h.mask(g);
  return make<AttentionOp>(g, h.q, h.k, h.v, mask, llvm::APFloat(0.5), h.causal,
                           h.window, h.softcap, empty == 1, empty == 2,
                           /*product_type=*/TypeAttr());
}

static Operation *attentionGradient(Gen &g) {
  Heads h(g);
  Shape shape = {h.batch, h.heads, h.s, h.dv};
  Value result = g.operand(g.real, shape), gradient = g.operand(g.real, shape);
  int64_t empty = g.pick(0, 4);
  Value mask = h.mask(g);
  return make<AttentionGradientOp>(
      g, h.q, h.k, h.v, result, gradient, mask, llvm::APFloat(0.5), h.causal,
      h.window, h.softcap, empty > 2, empty == 2 || empty == 1,
      /*product_type=*/TypeAttr());
}

void addContractionGenerators(llvm::StringMap<Generator> &to) {
  to["dot"] = dot;
  to["linear"] = linear;
  to["conv"] = conv;
  to["conv_transpose"] = convTranspose;
  to["conv_weight_gradient"] = convWeightGradient;
  to["max_pool_gradient"] = maxPoolGradient;
  to["pool"] = pool;
  to["attention"] = attention;
  to["attention_gradient"] = attentionGradient;
}

} // namespace ax::test
