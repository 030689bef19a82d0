//===- Recompute.cpp - Forward operations done again ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backward pass reads values of the forward pass, which are kept until
// then. An operation that is done *again* is copied in front of the backward
// operation that reads it; its own result is dropped as soon as the forward
// pass is done with it, and what its copy reads is kept instead, or done again,
// too.
//
// An example, a block of a transformer's MLP with a residual:
//
//   a = norm(x)   b = linear(a, v)   c = gelu(b)   d = linear(c, w)   y = x + d
//
// Backward reads x (norm), a (v's gradient), b (gelu) and c (w's gradient). b
// and c are four times as large as x. With c done again, b is kept for both.
// With all of a .. d done again, only x is, which is kept anyway where a
// segment ends before it: y, and x, are the narrow places of a model, at which
// only one tensor crosses. These are what `cut` looks for. While its backward
// pass is done, one segment has its values in memory, instead of the whole
// model: with n layers in segments of k, n / k + k in place of n (Chen et al.,
// arXiv 1604.06174).
//
//===----------------------------------------------------------------------===//
#include "Recompute.h"

#include "../MarkBackward.h"
#include "ax/Dialect/StageAndAction.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace ax;

/// A segment holds at least and, if it can, at most so many layers: fewer save
/// little, as what crosses is kept for each segment, and more are in memory at
/// once.
static constexpr int64_t minLayers = 2, maxLayers = 8;

Recompute::Recompute(ProgramOp program)
    : mesh(getMesh(program)), machine(cost::machineOf(program)) {
  // What Shard adds belongs to the latest that it works on.
  llvm::DenseMap<Operation *, Action> actions;
  for (Operation &op : program.getBody().front().without_terminator()) {
    if (isSource(&op)) {
      weights.insert(op.result_begin(), op.result_end());
      continue;
    }
    Action action = markedAction(&op);
    if (!op.hasAttr(kAction))
      for (Value operand : op.getOperands())
        if (Operation *producer = operand.getDefiningOp())
          action = std::max(action, actions.lookup(producer));
    actions[&op] = action;
    if (action == Action::Backward)
      backward.push_back(&op);
    if (action != Action::Forward)
      continue;
    position[&op] = forward.size();
    forward.push_back(&op);
    if (llvm::all_of(op.getOperands(),
                     [&](Value v) { return weights.contains(v); }))
      weights.insert(op.result_begin(), op.result_end());
  }
  cut();
}

/// Gathers are none: their results are as many times larger than what is kept
/// instead as there are ranks, so to repeat them is worth their time.
static bool isExchange(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && sharding::communicates(collective.getStepKind()) &&
         !isa<AllGatherOp>(op);
}

bool Recompute::mustBeKept(Operation *op) {
  return !isPure(op) || isExchange(op) || jumps(op);
}

bool Recompute::isCheap(Operation *op) const {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (collective && sharding::communicates(collective.getStepKind()))
    return false;
  int64_t made = 0;
  for (Value result : op->getResults())
    made += bytes(result);
  return cost::contractionFlops(op, mesh) == 0 &&
         cost::seconds(op, mesh, machine) * machine.bytesPerSecond <=
             8 * static_cast<double>(made);
}

/// From each cut, the next is where the least has to be kept that is not kept
/// already, some layers further on. A model with one long residual is cut
/// behind additions, and so is a decoder whose layers all read an encoder's
/// output: what crosses one cut is kept anyway, and counts nothing at the next.
///
/// Each cut is behind the one before, so it ends; the time is the number of
/// operations times that of cuts.
void Recompute::cut() {
  size_t n = forward.size();
  // Until when the forward pass uses what an operation makes.
  SmallVector<size_t> lastUse(n, 0);
  SmallVector<int64_t> layers(n + 1, 0), made(n, 0);
  for (auto [i, op] : llvm::enumerate(forward)) {
    for (Value result : op->getResults())
      made[i] += bytes(result);
    layers[i + 1] = layers[i] + isa<LayerOpInterface>(op);
    for (Value operand : op->getOperands())
      if (auto it = position.find(operand.getDefiningOp());
          it != position.end() && !weights.contains(operand))
        lastUse[it->second] = i;
  }
  size_t begin = 0;
  while (true) {
    size_t best = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t alive = 0;
    // Of what is used for the last time right before.
    SmallVector<int64_t> ends(n + 1, 0);
    for (size_t i = 0; i < n && layers[i] - layers[begin] <= maxLayers; ++i) {
      alive -= ends[i];
      if (i > begin && layers[i] - layers[begin] >= minLayers &&
          layers[i] < layers[n] && alive < least) {
        least = alive;
        best = i;
      }
      if (lastUse[i] > i && !crosses(forward[i])) {
        ends[lastUse[i] + 1] += made[i];
        alive += made[i];
      }
    }
    // What is left is too short to be cut.
    if (best == 0)
      return;
    for (size_t i = 0; i < best; ++i)
      if (lastUse[i] >= best)
        crossing.insert(forward[i]);
    cuts.push_back(best);
    begin = best;
  }
}

size_t Recompute::segmentOf(Operation *op) const {
  return llvm::upper_bound(cuts, position.lookup(op)) - cuts.begin();
}

/// What the backward pass reads is kept or copied; what copies read is, too,
/// and so on. Operations that are to be done again and that nobody asks for are
/// not.
Recompute::Needs Recompute::needs(const Ops &again) const {
  Needs result;
  auto read = [&](Value value, Operation *user) {
    Operation *producer = value.getDefiningOp();
    if (!producer || !isForward(producer))
      return;
    if (again.contains(producer))
      result.copies.insert(producer);
    else
      result.kept[value].insert(user);
  };
  for (Operation *op : backward)
    for (Value operand : op->getOperands())
      read(operand, op);
  for (size_t i = 0; i < result.copies.size(); ++i)
    for (Value operand : result.copies[i]->getOperands())
      read(operand, result.copies[i]);
  return result;
}

Recompute::Tradeoff Recompute::tradeoffOf(const Ops &again) const {
  Tradeoff result;
  Needs all = needs(again);
  llvm::DenseSet<Value> counted;
  for (auto &[value, users] : all.kept) {
    // Reshapes only rename.
    Value stored = value;
    while (auto reshape = stored.getDefiningOp<ReshapeOp>())
      stored = reshape.getOperand();
    if (stored.getDefiningOp() && isForward(stored.getDefiningOp()) &&
        counted.insert(stored).second)
      result.keptBytes += bytes(stored);
  }
  for (Operation *op : all.copies)
    result.seconds += cost::seconds(op, mesh, machine);
  return result;
}

/// E.g. a rounding to bf16 that is done again for a product's gradient needs
/// the f32 value; if nothing else does, the rounded one is kept instead, which
/// is half as large. Each change takes an operation from `again`, so it ends.
void Recompute::keepLater(Ops &again) const {
  bool changed = true;
  while (changed) {
    changed = false;
    // All at once: by each, other values only lose readers.
    for (auto &[value, users] : needs(again).kept) {
      Operation *user = users.front();
      if (users.size() == 1 && isForward(user) && user->getNumResults() == 1 &&
          bytes(user->getResult(0)) <= bytes(value))
        changed |= again.erase(user);
    }
  }
}

void Recompute::apply(const Ops &again) {
  IRMapping copies;
  // A stage computes again what is its own; what others sent it is there.
  auto isAgain = [&](Operation *producer, Operation *user) {
    return producer && again.contains(producer) &&
           producer->getAttr(kStage) == user->getAttr(kStage);
  };
  // Operands first, each right before the first who needs it.
  std::function<void(Operation *, Operation *)> copy = [&](Operation *op,
                                                           Operation *user) {
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          isAgain(producer, op) && !copies.contains(operand))
        copy(producer, user);
    OpBuilder builder(user);
    Operation *made = builder.clone(*op, copies);
    for (auto [mine, theirs] :
         llvm::zip_equal(made->getOpOperands(), op->getOperands()))
      if (Operation *producer = theirs.getDefiningOp();
          producer && again.contains(producer) && !isAgain(producer, op))
        mine.set(theirs);
    markAction(made, Action::Backward);
    made->setAttr("recomputed", builder.getUnitAttr());
  };
  for (Operation *op : backward)
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *producer = operand.get().getDefiningOp();
      if (!isAgain(producer, op))
        continue;
      if (!copies.contains(operand.get()))
        copy(producer, op);
      operand.set(copies.lookup(operand.get()));
    }
  // What was there for the backward pass only.
  for (Operation *op : llvm::reverse(forward))
    if (isOpTriviallyDead(op))
      op->erase();
}
