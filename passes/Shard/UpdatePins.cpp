//===- UpdatePins.cpp - Where the optimizer works -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PinLists.h"
#include "ShardAnalysis.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace ax {
#define GEN_PASS_DEF_UPDATEPINS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

static bool isUpdate(Operation *op) {
  return markedAction(op) == Action::Update;
}

/// What the backward pass gives to the update that makes `value`, and has its
/// shape: the gradient.
static Value gradientBehind(Value value) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op || isSource(op) || shapeOf(seen[i]) != shapeOf(value))
      continue;
    if (!isUpdate(op))
      return seen[i];
    seen.insert(op->operand_begin(), op->operand_end());
  }
  return {};
}

/// A use of a weight, as it is or rounded to what a product multiplies.
struct WeightUse {
  OpOperand *operand;
  /// What rounds it; null where nothing does.
  CastOp rounding;
};

static SmallVector<WeightUse> usesOf(LoadOp load) {
  SmallVector<WeightUse> uses;
  for (OpOperand &use : load.getResult().getUses()) {
    auto cast = dyn_cast<CastOp>(use.getOwner());
    if (!cast || !isNarrowFloat(elementType(cast.getResult()))) {
      uses.push_back({&use, {}});
      continue;
    }
    for (OpOperand &ofRounded : cast.getResult().getUses())
      uses.push_back({&ofRounded, cast});
  }
  return uses;
}

/// All of its shape that the update makes of `gradient`, element by element,
/// and the states that it reads for that.
static llvm::SetVector<Value> updatesOf(Value gradient) {
  llvm::SetVector<Value> found;
  SmallVector<Value> open{gradient};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (!isUpdate(user))
        continue;
      for (Value operand : user->getOperands())
        if (auto load = operand.getDefiningOp<LoadOp>();
            load && shapeOf(operand) == shapeOf(gradient) &&
            llvm::all_of(load->getUsers(), isUpdate))
          found.insert(operand);
      for (Value result : user->getResults())
        if (shapeOf(result) == shapeOf(gradient) && found.insert(result))
          open.push_back(result);
    }
  return found;
}

/// `layout` with one dimension split over `data` too, the outermost that it
/// divides.
static std::optional<Layout> splitOverData(const Layout &layout,
                                           const SubAxes &data) {
  for (size_t dim = 0; dim < layout.dims.size(); ++dim)
    if (layout.dims[dim].localSize() % numParts(data) == 0)
      if (std::optional<Layout> split = allSlice(layout, dim, data))
        return split;
  return std::nullopt;
}

static int64_t partsOf(const Layout &layout) {
  int64_t parts = 1;
  for (const DimLayout &dim : layout.dims)
    parts *= numParts(dim.axes());
  return parts;
}

namespace {

/// A weight that the program changes, and the gradient that it is changed by.
struct UpdatedWeight {
  LoadOp load;
  Value gradient;
};

class UpdatePinner {
public:
  UpdatePinner(const ShardGraph &graph, const Shardings &found,
               const Mesh &mesh, int64_t zero)
      : graph(graph), found(found), zero(zero),
        cause(zero > 0 ? "--zero=" + std::to_string(zero)
                       : "weights are updated there") {
    for (const char *axis : {meshAxis::data, meshAxis::context})
      if (zero > 0 && mesh.axisSize(axis) > 1)
        data.push_back(mesh.whole(axis));
    for (auto [i, op] : llvm::enumerate(graph.ops))
      numbers[op] = i;
  }

  void pin(const UpdatedWeight &weight);

  Pins pins;

private:
  void pinTensor(Value value, const Layout &layout, bool spreads);
  void pinOperand(OpOperand &operand, const Layout &layout);
  const Layout &layoutOf(Value value) const {
    return found.tensor(graph.tensorOf.lookup(value));
  }

  const ShardGraph &graph;
  const Shardings &found;
  int64_t zero;
  std::string cause;
  /// Ranks along these have the same weights, and other tokens.
  SubAxes data;
  llvm::DenseMap<Operation *, int> numbers;
};

} // namespace

/// The weights of `program` that it updates. Moments come with their weight.
static std::vector<UpdatedWeight> findUpdated(ProgramOp program) {
  llvm::StringMap<LoadOp> loads;
  for (auto load : program.getBody().getOps<LoadOp>())
    loads.try_emplace(load.getState(), load);
  std::vector<UpdatedWeight> updated;
  for (auto store : program.getBody().getOps<StoreOp>()) {
    LoadOp load = loads.lookup(store.getState());
    Value gradient = gradientBehind(store.getOperand());
    if (gradient && load && !llvm::all_of(load->getUsers(), isUpdate))
      updated.push_back({load, gradient});
  }
  return updated;
}

void UpdatePinner::pinTensor(Value value, const Layout &layout, bool spreads) {
  for (auto [dim, split] : llvm::enumerate(layout.dims))
    pins.tensors.push_back({graph.tensorOf.lookup(value), static_cast<int>(dim),
                            split, PinLevel::Recipe, cause, /*open=*/false,
                            spreads});
}

void UpdatePinner::pinOperand(OpOperand &operand, const Layout &layout) {
  int op = numbers.lookup(operand.getOwner());
  const TensorMap &map = graph.rule(op).operands[operand.getOperandNumber()];
  for (auto [dim, split] : llvm::enumerate(layout.dims))
    if (map[dim].size() == 1)
      pins.factors.push_back(
          {op, map[dim].front(), split, PinLevel::Recipe, cause});
}

void UpdatePinner::pin(const UpdatedWeight &weight) {
  // As the forward pass has it, not as some update would like it; and so the
  // backward pass finds it.
  std::optional<Layout> used;
  SmallVector<OpOperand *> backward;
  llvm::SetVector<Operation *> roundings;
  LoadOp load = weight.load;
  for (const WeightUse &use : usesOf(load)) {
    Operation *user = use.operand->getOwner();
    if (use.rounding)
      roundings.insert(use.rounding);
    Action action = markedAction(user);
    if (action == Action::Backward)
      backward.push_back(use.operand);
    if (action != Action::Forward)
      continue;
    const Layout &wanted =
        found.operand(numbers.lookup(user), use.operand->getOperandNumber());
    if (!used || partsOf(wanted) > partsOf(*used))
      used = wanted;
  }
  Layout stored = layoutOf(load);
  if (used && partsOf(*used) > partsOf(stored))
    stored = *used;
  if (used)
    for (OpOperand *use : backward)
      pinOperand(*use, *used);
  Layout updated = stored;
  if (!data.empty())
    updated = splitOverData(stored, data).value_or(stored);
  const Layout &kept = zero == 3 ? updated : stored;
  pinTensor(load, kept, /*spreads=*/false);
  // Ranks give each other what is rounded, which is less.
  for (Operation *rounding : roundings) {
    pinOperand(rounding->getOpOperand(0), kept);
    pinTensor(rounding->getResult(0), kept, /*spreads=*/false);
  }
  // The backward pass computes it as before; it is summed to where it is
  // needed. What is widened is so where it was made, to be summed as a wide
  // one.
  pinTensor(weight.gradient, updated, /*spreads=*/false);
  if (auto widening = weight.gradient.getDefiningOp<CastOp>())
    pinOperand(widening->getOpOperand(0), layoutOf(widening.getOperand()));
  for (Value update : updatesOf(weight.gradient)) {
    pinTensor(update, updated, /*spreads=*/true);
    // A norm is summed up where its parts are, however small they are.
    for (Operation *user : update.getUsers())
      if (auto reduce = dyn_cast<ReduceOp>(user); reduce && isUpdate(user))
        pinOperand(reduce->getOpOperand(0), updated);
  }
}

namespace {
struct UpdatePins : ax::impl::UpdatePinsBase<UpdatePins> {
  using UpdatePinsBase::UpdatePinsBase;

  void runOnOperation() final {
    auto &shared = getAnalysis<ShardAnalysis>();
    const Mesh &mesh = shared.getMesh();
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      std::vector<UpdatedWeight> updated = findUpdated(program);
      if (updated.empty())
        continue;
      const ShardGraph *graph = shared.graphOf(program);
      if (!graph)
        return signalPassFailure();
      // Where weights are without that is known only to propagation.
      Decided decided =
          shared.getPropagator().decide(graph->graph, readPins(*graph, mesh));
      UpdatePinner pinner(*graph, decided.shardings, mesh, zero);
      for (const UpdatedWeight &weight : updated)
        pinner.pin(weight);
      addPins(*graph, pinner.pins, mesh);
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
