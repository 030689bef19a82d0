//===- DealWeights.cpp - Linears of unequal parts -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A Linear of 24 features, of which q has 16, and k and v 4 each, on 2 ranks:
//
//   y = linear(x, w)              w: rows 0..23
//   q = y[0:16]  k = y[16:20]  v = y[20:24]
//
// A layout cuts a dimension into equal pieces, so that half of y is no half of
// q. It is when the rows of w are in another order, rank by rank, and that of
// its scales and of its bias is the same:
//
//   y = linear(x, w)              w: rows 0..7 16,17 20,21, 8..15 18,19 22,23
//   z = reshape(y) to [2, 12]
//   q = reshape(z[:, 0:8])  k = reshape(z[:, 8:10])  v = reshape(z[:, 10:12])
//
// Then propagation finds that {col} splits the 2, and no rank lacks anything.
// States have that order themselves (`dealt`): ranks read only what they have.
//
//===----------------------------------------------------------------------===//
#include "../Shard/Recipe.h"
#include "../Shard/ShardAnalysis.h"

#include "ax/Dialect/Random.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/PiecedTensor.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <numeric>

namespace ax {
#define GEN_PASS_DEF_DEALWEIGHTS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

namespace {

/// Slices that together are all of a value, along one dimension.
struct Parts {
  Value whole;
  int64_t dim = -1;
  /// By where they start.
  std::map<int64_t, SmallVector<SliceOp>> slices;
  Dealt order;
  /// Numbers of parts of which each rank takes all.
  llvm::SmallSetVector<size_t, 2> taken;

  static std::optional<Parts> find(Value value);
  void rewrite();

private:
  /// What all hands have of parts that follow each other.
  Value slice(OpBuilder &builder, Location loc, Value from, int64_t start,
              int64_t size) const;
};

/// What has to be in another order for a value to be.
class Chain {
public:
  /// Gives nothing where something is not to be had in another one.
  static std::optional<Chain> find(const Parts &parts);

  /// What makes the parts' value is in it.
  bool contains(Operation *op) const {
    return op->getNumResults() == 1 && places.count(op->getResult(0));
  }
  /// Calls fn(value, order) for all of it but constants, of which there may be
  /// copies, and the value whose parts are known.
  void forEach(llvm::function_ref<void(Value, const Dealt &)> fn) const;
  /// Uses of values that have the order, by operations that give it on.
  llvm::DenseSet<OpOperand *> uses;
  void reorderConstants() const;

private:
  /// `unit`: elements of the value with the parts that stay together, as large
  /// as can be: of numbers that share a byte none goes without the others.
  Chain(const Dealt &whole, int64_t unit) : order(whole) {
    for (int64_t &part : order.parts)
      part /= unit;
  }

  /// A dimension that the parts are in: each unit of them is so many elements.
  struct Place {
    int64_t dim, unit;
    bool operator==(const Place &o) const {
      return dim == o.dim && unit == o.unit;
    }
  };
  bool visit(Value value, Place place);
  bool visitOperands(Operation *op, Place place);
  bool visitConstant(ConstantOp constant, Place place);
  Dealt orderAt(Place place) const;

  /// Parts are in units.
  Dealt order;
  /// The value that has the parts comes first.
  llvm::MapVector<Value, Place> places;
  llvm::MapVector<Operation *, ElementsAttr> constants;
};

} // namespace

/// The only dimension that a slice cuts, if it takes what lies together; -1 of
/// other slices.
static int64_t cutDim(SliceOp slice) {
  ArrayRef<int64_t> from = tensorType(slice.getOperand()).getShape(),
                    to = tensorType(slice.getResult()).getShape();
  int64_t cut = -1;
  for (int64_t dim = 0, e = from.size(); dim < e; ++dim) {
    if (from[dim] == to[dim] && slice.getSteps()[dim] == 1)
      continue;
    if (cut >= 0 || slice.getSteps()[dim] != 1)
      return -1;
    cut = dim;
  }
  return cut;
}

std::optional<Parts> Parts::find(Value value) {
  Parts found;
  found.whole = value;
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    int64_t dim = slice ? cutDim(slice) : -1;
    if (dim < 0 || (found.dim >= 0 && dim != found.dim))
      return std::nullopt;
    found.dim = dim;
    found.slices[slice.getStarts()[dim]].push_back(slice);
  }
  if (found.slices.size() < 2)
    return std::nullopt;
  found.order.dim = found.dim;
  int64_t end = 0;
  for (auto &[start, slices] : found.slices) {
    int64_t size = tensorType(slices.front()).getDimSize(found.dim);
    if (start != end || llvm::any_of(slices, [&](SliceOp slice) {
          return tensorType(slice).getDimSize(found.dim) != size;
        }))
      return std::nullopt;
    end += size;
    found.order.parts.push_back(size);
  }
  // Equal parts are a product of two factors, which layouts know.
  if (end != tensorType(value).getDimSize(found.dim) ||
      llvm::all_equal(found.order.parts))
    return std::nullopt;
  return found;
}

Value Parts::slice(OpBuilder &builder, Location loc, Value from, int64_t start,
                   int64_t size) const {
  RankedTensorType type = tensorType(from);
  SmallVector<int64_t> shape(type.getShape()), starts(shape.size(), 0),
      steps(shape.size(), 1);
  starts[dim + 1] = start / order.hands;
  shape[dim + 1] = size / order.hands;
  return SliceOp::create(builder, loc, type.clone(shape), from, starts, steps);
}

void Parts::rewrite() {
  OpBuilder builder(whole.getContext());
  builder.setInsertionPointAfterValue(whole);
  RankedTensorType type = tensorType(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= order.hands;
  shape.insert(shape.begin() + dim, order.hands);
  Location loc = slices.begin()->second.front().getLoc();
  Value byHand = ReshapeOp::create(builder, loc, type.clone(shape), whole);
  // What is taken is so at once.
  Value together;
  int64_t from = 0;
  for (auto [number, each] : llvm::enumerate(slices)) {
    auto &[start, all] = each;
    Location loc = all.front().getLoc();
    int64_t size = order.parts[number];
    bool isTaken = taken.contains(number);
    if (isTaken && (number == 0 || !taken.contains(number - 1))) {
      int64_t sum = 0;
      for (size_t i = number; taken.contains(i); ++i)
        sum += order.parts[i];
      together = slice(builder, loc, byHand, start, sum);
      from = start;
    }
    Value part = isTaken ? slice(builder, loc, together, start - from, size)
                         : slice(builder, loc, byHand, start, size);
    if (isTaken)
      part.getDefiningOp()->setAttr(gatheredAttr,
                                    builder.getI64IntegerAttr(dim));
    part = ReshapeOp::create(builder, loc, tensorType(all.front()), part);
    for (SliceOp slice : all)
      slice.replaceAllUsesWith(part);
  }
  for (auto &[start, all] : slices)
    for (SliceOp slice : all)
      slice.erase();
}

Dealt Chain::orderAt(Place place) const {
  Dealt result = order;
  result.dim = place.dim;
  for (int64_t &part : result.parts)
    part *= place.unit;
  return result;
}

/// Operations that do the same whatever is where along factors of their rules
/// that split freely.
static bool isWithoutOrder(Operation *op) {
  return op->getNumResults() == 1 && !isRandom(op) &&
         (isElementwise(op) || isView(op) ||
          isa<BroadcastOp, LinearOp, DotOp, GatherOp>(op));
}

/// The major factors of the dimension that hold the parts have to stay
/// together.
bool Chain::visitOperands(Operation *op, Place place) {
  Rule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  const std::vector<int> &factors = rule.results[0][place.dim];
  int64_t size = llvm::sum_of(order.parts), product = 1;
  size_t count = 0;
  for (; count < factors.size() && product < size; ++count) {
    if (rule.factors[factors[count]].kind != FactorKind::Parallel)
      return false;
    product *= rule.factors[factors[count]].size;
  }
  if (product % size != 0)
    return false;
  ArrayRef<int> ours = ArrayRef<int>(factors).take_front(count);
  auto isOurs = [&](int factor) { return llvm::is_contained(ours, factor); };
  for (auto [dim, map] : llvm::enumerate(rule.results[0]))
    if (static_cast<int64_t>(dim) != place.dim && llvm::any_of(map, isOurs))
      return false;
  for (OpOperand &operand : op->getOpOperands()) {
    const TensorMap &map = rule.operands[operand.getOperandNumber()];
    int64_t found = -1;
    for (int64_t dim = 0, e = map.size(); dim < e; ++dim) {
      if (llvm::none_of(map[dim], isOurs))
        continue;
      if (found >= 0 || ArrayRef<int>(map[dim]).take_front(count) != ours)
        return false;
      found = dim;
    }
    if (found < 0)
      continue;
    uses.insert(&operand);
    int64_t whole = tensorType(operand.get()).getDimSize(found);
    if (!visit(operand.get(), {found, whole / size}))
      return false;
  }
  return true;
}

bool Chain::visitConstant(ConstantOp constant, Place place) {
  ElementsAttr value = constant.getValue();
  if (value.isSplat())
    return true;
  auto known = interpreter::toHostTensor(value);
  if (!known) {
    llvm::consumeError(known.takeError());
    return false;
  }
  PiecedTensor tensor = PiecedTensor::of(std::move(*known));
  tensor.wanted = orderAt(place);
  auto dealt = tensor.assemble();
  if (!dealt) {
    llvm::consumeError(dealt.takeError());
    return false;
  }
  constants[constant] =
      interpreter::toElementsAttr(*dealt, constant.getContext());
  return true;
}

bool Chain::visit(Value value, Place place) {
  auto [at, isNew] = places.insert({value, place});
  if (!isNew)
    return at->second == place;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<LoadOp>(op))
    return true;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return visitConstant(constant, place);
  return isWithoutOrder(op) && visitOperands(op, place);
}

std::optional<Chain> Chain::find(const Parts &parts) {
  int64_t unit = 0;
  for (int64_t part : parts.order.parts)
    unit = std::gcd(unit, part / parts.order.hands);
  Chain chain(parts.order, unit);
  if (!chain.visit(parts.whole, {parts.dim, unit}))
    return std::nullopt;
  return chain;
}

void Chain::forEach(llvm::function_ref<void(Value, const Dealt &)> fn) const {
  for (const auto &[value, place] : llvm::drop_begin(places))
    if (!value.getDefiningOp<ConstantOp>())
      fn(value, orderAt(place));
}

/// One that nothing reads any more goes with what is trivially dead.
void Chain::reorderConstants() const {
  for (const auto &[constant, value] : constants) {
    OpBuilder builder(constant);
    auto made = ConstantOp::create(builder, constant->getLoc(), value);
    constant->getResult(0).replaceUsesWithIf(
        made.getResult(), [&](OpOperand &use) { return uses.contains(&use); });
  }
}

namespace {

/// Parts, and what makes them.
struct Dealing {
  Parts parts;
  Chain chain;
};

struct DealWeights : ax::impl::DealWeightsBase<DealWeights> {
  void runOnOperation() final;

private:
  void collect(ProgramOp program, const ShardGraph &graph, const Mesh &mesh);
  void dropUnshared();
  void setOrders();

  std::vector<Dealing> dealings;
};

} // namespace

/// Deals to as many as the recipe will split a dimension into, and fewer where
/// attention has fewer heads. Keys and values of fewer heads than that each
/// rank takes.
static void setHands(Parts &parts, const ShardGraph &graph, Roles &roles,
                     const Mesh &mesh) {
  int tensor = graph.tensorOf.lookup(parts.whole);
  int segment = roles.segment(tensor, parts.dim);
  int64_t &hands = parts.order.hands;
  hands = numParts(axesOf(roles.role(tensor, parts.dim), mesh));
  for (int64_t part : parts.order.parts)
    hands = std::gcd(hands, part);
  SmallVector<AttentionOp> attentions;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    int dim = dimOfHeads(graph.ops[i]);
    int q = dim < 0 ? 0 : graph.graph.ops[i].operands[0];
    if (dim < 0 || roles.segment(q, dim) != segment)
      continue;
    hands = std::gcd(hands, graph.graph.tensors[q].shape[dim]);
    if (auto attention = dyn_cast<AttentionOp>(graph.ops[i]))
      attentions.push_back(attention);
  }
  for (AttentionOp attention : attentions)
    for (Value value : {attention.getK(), attention.getV()}) {
      ArrayRef<int64_t> shape = tensorType(value).getShape();
      for (auto [number, size] : llvm::enumerate(parts.order.parts))
        if (shape[1] % hands != 0 && size == shape[1] * shape.back())
          parts.taken.insert(number);
    }
}

void DealWeights::collect(ProgramOp program, const ShardGraph &graph,
                          const Mesh &mesh) {
  std::vector<WeightOp> weightOps = findWeightOps(graph);
  Roles roles(graph, weightOps, mesh);
  for (Operation &op : program.getBody().front()) {
    if (op.getNumResults() != 1)
      continue;
    std::optional<Parts> parts = Parts::find(op.getResult(0));
    if (!parts)
      continue;
    setHands(*parts, graph, roles, mesh);
    if (parts->order.hands == 1)
      continue;
    std::optional<Chain> chain = Chain::find(*parts);
    if (chain && llvm::any_of(weightOps, [&](const WeightOp &weight) {
          return chain->contains(graph.ops[weight.op]);
        }))
      dealings.push_back({std::move(*parts), std::move(*chain)});
  }
}

namespace {

/// What all chains say of values, which have one order each, and of their uses.
struct Orders {
  explicit Orders(ArrayRef<Dealing> dealings) {
    for (const Dealing &dealing : dealings) {
      dealing.chain.forEach([&](Value value, const Dealt &order) {
        ofValue.try_emplace(value, order);
      });
      uses.insert_range(dealing.chain.uses);
    }
  }
  bool has(Value value, const Dealt &order) const {
    auto found = ofValue.find(value);
    return found != ofValue.end() && found->second == order;
  }
  bool hasUsesOf(Value value) const {
    return llvm::all_of(value.getUses(),
                        [&](OpOperand &use) { return uses.contains(&use); });
  }

  llvm::DenseMap<Value, Dealt> ofValue;
  llvm::DenseSet<OpOperand *> uses;
};

} // namespace

/// Drops dealings that something else would notice: who reads a value in the
/// model's order, or another load of a state.
void DealWeights::dropUnshared() {
  llvm::DenseMap<Attribute, SmallVector<LoadOp>> loads;
  getOperation().walk([&](LoadOp load) {
    loads[load.getStateAttr().getAttr()].push_back(load);
  });
  for (bool changed = true; changed;) {
    Orders orders(dealings);
    size_t before = dealings.size();
    llvm::erase_if(dealings, [&](const Dealing &dealing) {
      bool isShared = true;
      dealing.chain.forEach([&](Value value, const Dealt &order) {
        isShared &= orders.has(value, order) && orders.hasUsesOf(value);
        if (auto load = value.getDefiningOp<LoadOp>())
          isShared &= llvm::all_of(
              loads[load.getStateAttr().getAttr()], [&](LoadOp other) {
                return orders.has(other.getResult(), order);
              });
      });
      return !isShared;
    });
    changed = dealings.size() < before;
  }
}

void DealWeights::setOrders() {
  SymbolTable states(getOperation());
  for (const Dealing &dealing : dealings)
    dealing.chain.forEach([&](Value value, const Dealt &order) {
      if (auto load = value.getDefiningOp<LoadOp>())
        states.lookup<StateOp>(load.getState())
            .setDealtAttr(DealtAttr::get(&getContext(), order.parts,
                                         order.hands, order.dim));
    });
}

void DealWeights::runOnOperation() {
  auto &shared = getAnalysis<ShardAnalysis>();
  const Mesh &mesh = shared.getMesh();
  if (axesOf(Role::Row, mesh).empty() && axesOf(Role::Col, mesh).empty())
    return markAllAnalysesPreserved();
  PlanOp plan = getOperation();
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>()) {
    const ShardGraph *graph = shared.graphOf(program);
    if (!graph)
      return signalPassFailure();
    collect(program, *graph, mesh);
  }
  dropUnshared();
  if (dealings.empty())
    return markAllAnalysesPreserved();
  setOrders();
  for (Dealing &dealing : dealings) {
    dealing.chain.reorderConstants();
    dealing.parts.rewrite();
  }
  plan.needVersion(PlanOp::dealtVersion);
}
