//===- DecomposeSplit.cpp - Rows that are split, as small exchanges -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Softmax: maximum, then sum. RMS norm: sum of squares. Layer norm: each part's
// (mean, M2), gathered and combined by Chan's formula
//   M2 = sum M2_i + n_i sum (mean_i - mean)^2
// (Chan, Golub, LeVeque 1979), since E[x^2] - E[x]^2 cancels.
//
//===----------------------------------------------------------------------===//
#include "Recipe.h"
#include "ShardAnalysis.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/Builders.h"

namespace ax {
#define GEN_PASS_DEF_DECOMPOSESPLIT
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

namespace {

/// Short names for the ops that rows are made of.
class RowBuilder {
public:
  explicit RowBuilder(Operation *op) : builder(op), loc(op->getLoc()) {}

  Value binary(BinaryKind kind, Value lhs, Value rhs) {
    return BinaryOp::create(builder, loc, kind, lhs, rhs);
  }
  Value unary(UnaryKind kind, Value operand) {
    return UnaryOp::create(builder, loc, kind, operand);
  }
  Value reduce(ReduceOpKind kind, Value operand, int64_t dim) {
    return ReduceOp::create(builder, loc, kind, operand,
                            llvm::ArrayRef<int64_t>{dim}, /*keep_dims=*/true);
  }
  Value constant(double value, Value like) {
    auto type = RankedTensorType::get({}, tensorType(like).getElementType());
    return ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(
            type, builder.getFloatAttr(type.getElementType(), value)));
  }
  Value scale(Value operand, double by) {
    return binary(BinaryKind::mul, operand, constant(by, operand));
  }
  Value cast(Value operand, Type element) {
    if (tensorType(operand).getElementType() == element)
      return operand;
    return CastOp::create(builder, loc, tensorType(operand).clone(element),
                          operand);
  }
  /// Rows of narrow floats are computed in f32.
  Value wide(Value operand) {
    bool isNarrow =
        operand && isNarrowFloat(tensorType(operand).getElementType());
    return isNarrow ? cast(operand, builder.getF32Type()) : operand;
  }
  Value reshape(Value operand, ArrayRef<int64_t> shape) {
    return ReshapeOp::create(
        builder, loc,
        RankedTensorType::get(shape, tensorType(operand).getElementType()),
        operand);
  }
  Value concat(ValueRange operands, int64_t dim) {
    return ConcatOp::create(builder, loc, operands, dim);
  }
  Value slice(Value operand, int64_t dim, int64_t start, int64_t size) {
    SmallVector<int64_t> shape(tensorType(operand).getShape());
    SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    starts[dim] = start;
    shape[dim] = size;
    return SliceOp::create(
        builder, loc,
        RankedTensorType::get(shape, tensorType(operand).getElementType()),
        operand, starts, steps);
  }
  /// `x * scale + bias`, either may be absent.
  Value affine(Value x, Value scale, Value bias) {
    if (scale)
      x = binary(BinaryKind::mul, x, scale);
    return bias ? binary(BinaryKind::add, x, bias) : x;
  }

private:
  OpBuilder builder;
  Location loc;
};

} // namespace

static Value decompose(SoftmaxOp op) {
  RowBuilder row(op);
  Value x = row.wide(op.getOperand());
  int64_t dim = op.getDim();
  Value shifted =
      row.binary(BinaryKind::sub, x, row.reduce(ReduceOpKind::max, x, dim));
  Value exp = row.unary(UnaryKind::exp, shifted);
  Value sum = row.reduce(ReduceOpKind::sum, exp, dim);
  Value y = op.getLog() ? row.binary(BinaryKind::sub, shifted,
                                     row.unary(UnaryKind::log, sum))
                        : row.binary(BinaryKind::div, exp, sum);
  return row.cast(y, tensorType(op.getOperand()).getElementType());
}

static Value decompose(RMSNormOp op) {
  RowBuilder row(op);
  Value x = row.wide(op.getX());
  int64_t dim = op.getAxis(), n = tensorType(x).getDimSize(dim);
  Value sum =
      row.reduce(ReduceOpKind::sum, row.binary(BinaryKind::mul, x, x), dim);
  Value mean = row.scale(sum, 1.0 / n);
  Value inverse = row.unary(
      UnaryKind::rsqrt,
      row.binary(BinaryKind::add, mean,
                 row.constant(op.getEpsilon().convertToDouble(), mean)));
  Value y = row.affine(row.binary(BinaryKind::mul, x, inverse),
                       row.wide(op.getScale()), row.wide(op.getBias()));
  return row.cast(y, tensorType(op.getX()).getElementType());
}

static Value decompose(LayerNormOp op, int64_t parts) {
  RowBuilder row(op);
  Value x = row.wide(op.getX());
  int64_t dim = op.getAxis(), n = tensorType(x).getDimSize(dim);
  int64_t part = n / parts;
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.back() = parts;
  shape.push_back(part);
  Value split = row.reshape(x, shape);
  Value means =
      row.scale(row.reduce(ReduceOpKind::sum, split, dim + 1), 1.0 / part);
  Value from = row.binary(BinaryKind::sub, split, means);
  Value m2s = row.reduce(ReduceOpKind::sum,
                         row.binary(BinaryKind::mul, from, from), dim + 1);
  // One exchange for both numbers.
  Value both = row.concat({means, m2s}, dim + 1);
  auto gathered = [&](Value value) {
    value.getDefiningOp()->setAttr(
        gatheredAttr, Builder(op.getContext()).getI64IntegerAttr(dim));
    return value;
  };
  auto combine = [&](Value parts) {
    return gathered(row.reduce(ReduceOpKind::sum, parts, dim));
  };
  Value totals = combine(both);
  Value mean = row.scale(row.slice(totals, dim + 1, 0, 1), 1.0 / parts);
  Value apart = row.binary(BinaryKind::sub,
                           gathered(row.slice(both, dim + 1, 0, 1)), mean);
  Value between = combine(row.binary(BinaryKind::mul, apart, apart));
  Value m2 = row.binary(BinaryKind::add, row.slice(totals, dim + 1, 1, 1),
                        row.scale(between, part));
  Value variance = row.scale(m2, 1.0 / n);
  Value inverse = row.unary(
      UnaryKind::rsqrt,
      row.binary(BinaryKind::add, variance,
                 row.constant(op.getEpsilon().convertToDouble(), variance)));
  shape.pop_back();
  shape.back() = 1;
  Value centred = row.binary(BinaryKind::sub, x, row.reshape(mean, shape));
  Value y = row.affine(
      row.binary(BinaryKind::mul, centred, row.reshape(inverse, shape)),
      row.wide(op.getScale()), row.wide(op.getBias()));
  return row.cast(y, tensorType(op.getX()).getElementType());
}

/// The dimension of which a slice takes every so many, all of them; none of
/// other slices.
static std::optional<int64_t> strideOf(SliceOp op) {
  ArrayRef<int64_t> from = tensorType(op.getOperand()).getShape(),
                    to = tensorType(op.getResult()).getShape();
  std::optional<int64_t> found;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    int64_t step = op.getSteps()[dim], start = op.getStarts()[dim];
    if (start == 0 && step == 1 && from[dim] == to[dim])
      continue;
    bool isStride = step > 1 && start < step && from[dim] == to[dim] * step;
    if (found || !isStride)
      return std::nullopt;
    found = static_cast<int64_t>(dim);
  }
  return found;
}

/// Gates and what they are for by turns, [2 n]: of [n, 2] the first or the
/// second, so that ranks may have parts of n.
static Value decompose(SliceOp op, int64_t dim) {
  RowBuilder row(op);
  SmallVector<int64_t> shape(tensorType(op.getResult()).getShape());
  shape.insert(shape.begin() + dim + 1, op.getSteps()[dim]);
  Value pairs = row.reshape(op.getOperand(), shape);
  return row.reshape(row.slice(pairs, dim + 1, op.getStarts()[dim], 1),
                     tensorType(op.getResult()).getShape());
}

/// True when it changed the program.
static bool decomposeSplitRows(const ShardGraph &graph, const Mesh &mesh) {
  std::vector<WeightOp> weightOps = findWeightOps(graph);
  Roles roles(graph, weightOps, mesh);
  // Only feature dimensions: those that some weight sums over or gives.
  llvm::DenseSet<int> features;
  for (const WeightOp &weight : weightOps) {
    const GraphOp &op = graph.graph.ops[weight.op];
    features.insert(roles.segment(op.results[0],
                                  dimOfFactor(op.rule.results[0], weight.n)));
    if (weight.x >= 0)
      features.insert(
          roles.segment(op.operands[weight.x],
                        dimOfFactor(op.rule.operands[weight.x], weight.k)));
  }
  bool changed = false;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Operation *op = graph.ops[i];
    auto parts = [&](int64_t dim) -> int64_t {
      int tensor = graph.graph.ops[i].results[0];
      if (!features.contains(roles.segment(tensor, dim)))
        return 1;
      return numParts(axesOf(roles.role(tensor, dim), mesh));
    };
    Value result;
    if (auto slice = dyn_cast<SliceOp>(op)) {
      if (std::optional<int64_t> dim = strideOf(slice); dim && parts(*dim) > 1)
        result = decompose(slice, *dim);
    } else if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
      if (parts(softmax.getDim()) > 1)
        result = decompose(softmax);
    } else if (auto norm = dyn_cast<RMSNormOp>(op)) {
      int64_t rank = tensorType(norm.getX()).getRank();
      if (int64_t(norm.getAxis()) + 1 == rank && parts(norm.getAxis()) > 1)
        result = decompose(norm);
    } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
      int64_t rank = tensorType(norm.getX()).getRank();
      if (int64_t(norm.getAxis()) + 1 != rank)
        continue;
      int64_t p = parts(norm.getAxis());
      if (p > 1 && tensorType(norm.getX()).getDimSize(rank - 1) % p == 0)
        result = decompose(norm, p);
    }
    if (!result)
      continue;
    if (op->hasAttr(kStage))
      for (Operation *made = result.getDefiningOp();
           made && !made->hasAttr(kStage) && made != op;
           made = made->getPrevNode())
        copyStageAndAction(op, made);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
    changed = true;
  }
  return changed;
}

namespace {
struct DecomposeSplit : ax::impl::DecomposeSplitBase<DecomposeSplit> {
  void runOnOperation() final {
    auto &shared = getAnalysis<ShardAnalysis>();
    bool changed = false;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      const ShardGraph *graph = shared.graphOf(program);
      if (!graph)
        return signalPassFailure();
      changed |= decomposeSplitRows(*graph, shared.getMesh());
    }
    if (!changed)
      markAllAnalysesPreserved();
  }
};
} // namespace
