//===- Zero.cpp - State split over data -----------------------------------===//
#include "Zero.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

/// `layout` with one dimension split over `data` too, and which; the outermost
/// that it divides.
static std::optional<std::pair<int, DimLayout>>
splitOverData(const Layout &layout, const SubAxes &data) {
  for (size_t dim = 0; dim < layout.dims.size(); ++dim)
    if (layout.dims[dim].localSize() % numParts(data) == 0)
      if (auto split = allSlice(layout, dim, data))
        return std::pair(static_cast<int>(dim), split->dims[dim]);
  return std::nullopt;
}

static bool isUpdate(Operation *op) {
  auto action = op->getAttrOfType<StringAttr>("ax.action");
  return action && action == "U";
}

/// Whether only the update of the step uses the value of this load.
static bool isOptimizerState(LoadOp load) {
  return llvm::all_of(load->getUsers(), isUpdate);
}

/// What the backward pass gives to the update that stores `value`, and has its
/// shape: the gradient.
static SmallVector<Value> gradientsBehind(Value value) {
  llvm::SetVector<Value> seen;
  seen.insert(value);
  SmallVector<Value> found;
  for (size_t i = 0; i < seen.size(); ++i) {
    Operation *op = seen[i].getDefiningOp();
    if (!op || isa<LoadOp, ConstantOp>(op) ||
        tensorType(seen[i]).getShape() != tensorType(value).getShape())
      continue;
    if (isUpdate(op))
      seen.insert(op->operand_begin(), op->operand_end());
    else
      found.push_back(seen[i]);
  }
  return found;
}

/// What the update makes of it element by element.
static llvm::SetVector<Value> updatesOf(Value gradient) {
  llvm::SetVector<Value> found;
  SmallVector<Value> open{gradient};
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers())
      for (Value result : user->getResults())
        if (isUpdate(user) &&
            tensorType(result).getShape() == tensorType(gradient).getShape() &&
            found.insert(result))
          open.push_back(result);
  return found;
}

void ax::pinZero(const ShardGraph &graph, ProgramOp program,
                 const Propagation &found, const Mesh &mesh, int64_t stage,
                 Pins &pins) {
  if (mesh.axisSize("data") < 2)
    return;
  SubAxes data{mesh.whole("data")};
  std::string cause = "--zero=" + std::to_string(stage);
  auto loads = program.getBody().getOps<LoadOp>();
  for (auto store : program.getBody().getOps<StoreOp>()) {
    auto load = llvm::find_if(
        loads, [&](LoadOp l) { return l.getState() == store.getState(); });
    if (load == loads.end())
      continue;
    int state = graph.tensorOf.lookup((*load).getResult());
    auto split = splitOverData(found.tensors[state], data);
    if (!split)
      continue;
    auto pin = [&](int tensor, bool spreads) {
      pins.tensors.push_back({tensor, split->first, split->second,
                              PinLevel::Recipe, cause, /*open=*/true, spreads});
    };
    bool isOptimizers = isOptimizerState(*load);
    if (isOptimizers)
      for (Value gradient : gradientsBehind(store.getOperand())) {
        // The backward pass computes it as before; it is summed to where it is
        // needed.
        pin(graph.tensorOf.lookup(gradient), /*spreads=*/false);
        for (Value update : updatesOf(gradient))
          pin(graph.tensorOf.lookup(update), /*spreads=*/true);
      }
    if (isOptimizers || stage == 3) {
      pin(state, /*spreads=*/true);
      continue;
    }
    // The update alone is no reason to split what the model uses whole.
    for (auto [dim, layout] : llvm::enumerate(found.tensors[state].dims))
      pins.tensors.push_back({state, static_cast<int>(dim), layout,
                              PinLevel::Recipe, cause});
  }
}
