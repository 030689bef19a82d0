//===- Overlap.cpp - Collectives start early and end late -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients are reduced while those of the layers before are computed, weights
// are gathered while the layer before computes. Nothing but collectives moves.
// What small tensors share stays one operation: there is little to hide.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/StageCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/Builders.h"

namespace ax {
#define GEN_PASS_DEF_OVERLAP
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

struct Overlap : ax::impl::OverlapBase<Overlap> {
  using OverlapBase::OverlapBase;

  void runOnOperation() final {
    mesh = getOperation().getMesh();
    machine = cost::machineOf(getOperation());
    machine.overlapsCollectives |= overlapsCollectives;
    getOperation().walk([&](StageOp stage) {
      auto hides = [&](Operation &op) {
        return cost::contractionFlops(&op, mesh) > 0;
      };
      // Nothing could be computed meanwhile.
      if (llvm::none_of(stage.getBody().front(), hides))
        return;
      SmallVector<CollectiveOpInterface> collectives;
      for (Operation &op : stage.getBody().front())
        if (auto collective = dyn_cast<CollectiveOpInterface>(op);
            collective && cost::isSent(collective, mesh) &&
            op.getNumResults() == 1)
          collectives.push_back(collective);
      for (CollectiveOpInterface collective : collectives)
        startEarly(collective);
      llvm::DenseMap<Operation *, double> flopsBefore;
      double flops = 0;
      for (Operation &op : stage.getBody().front()) {
        flopsBefore[&op] = flops;
        flops += cost::contractionFlops(&op, mesh);
      }
      llvm::DenseMap<Operation *, Operation *> limits = limitsOf(collectives);
      for (CollectiveOpInterface collective : collectives) {
        Operation *place = firstUser(collective);
        if (!place)
          continue;
        if (Operation *limit = limits.lookup(collective);
            limit && limit->isBeforeInBlock(place))
          place = limit;
        endLate(collective, place,
                flopsBefore.lookup(place) - flopsBefore.lookup(collective));
      }
    });
  }

private:
  int64_t bytesOf(Value value) const {
    return cost::localBytes(tensorType(value), mesh);
  }

  /// Before which operations gradients are waited for that are reduced to less:
  /// until then they hold memory as a whole, and a rank wants a part. So two of
  /// them are on their way, and before the third starts the first has ended.
  llvm::DenseMap<Operation *, Operation *>
  limitsOf(ArrayRef<CollectiveOpInterface> collectives) {
    constexpr size_t mostOnTheirWay = 2;
    SmallVector<Operation *> shrinking;
    for (Operation *op : collectives)
      if (bytesOf(op->getResult(0)) < bytesOf(op->getOperand(0)) &&
          isForUpdate(op))
        shrinking.push_back(op);
    llvm::sort(shrinking, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    llvm::DenseMap<Operation *, Operation *> limits;
    for (size_t i = mostOnTheirWay; i < shrinking.size(); ++i)
      limits[shrinking[i - mostOnTheirWay]] = shrinking[i];
    return limits;
  }

  /// Whether nothing of this micro-batch waits for it: the update does, or what
  /// adds up those of all.
  bool isForUpdate(Operation *op) {
    Operation *user = firstUser(op);
    return !user || user->hasTrait<OpTrait::IsTerminator>() ||
           isa<AllReduceOp>(user) || markedAction(user) == Action::Update;
  }

  /// What waits for `op`. A product does for what its epilogue reads.
  Operation *firstUser(Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers()) {
      Operation *product = findProduct(user, *machine.library);
      if (product && op->isBeforeInBlock(product))
        user = product;
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    return first;
  }

  /// Puts `op` before `place`. To leave and come back has one number made
  /// again, and Operation::moveBefore all of the block, when next it is asked
  /// what is before what.
  static void move(Operation *op, Block::iterator place) {
    if (place == op->getIterator() || place == std::next(op->getIterator()))
      return;
    Block *block = op->getBlock();
    op->remove();
    block->getOperations().insert(place, op);
  }

  /// What grows by it, as a weight that is gathered does, needs memory from
  /// then on: it starts only as early as it takes, behind a contraction.
  void startEarly(CollectiveOpInterface op) {
    Operation *user = firstUser(op),
              *producer = op->getOperand(0).getDefiningOp();
    if (!user)
      return;
    if (bytesOf(op->getResult(0)) <= bytesOf(op->getOperand(0))) {
      move(op, producer ? std::next(producer->getIterator())
                        : op->getBlock()->begin());
      return;
    }
    // Where it moves nothing before it is waited for, it would only hold its
    // memory for longer.
    if (!machine.overlapsCollectives) {
      move(op, user->getIterator());
      return;
    }
    double left = cost::collectiveSeconds(op, mesh, machine), flops = 0;
    Operation *place = user;
    for (Operation *before = place->getPrevNode();
         before && before != producer && (left > 0 || flops == 0);
         before = before->getPrevNode()) {
      if (before == op)
        continue;
      left -= cost::secondsInPlace(before, mesh, machine);
      flops += cost::contractionFlops(before, mesh);
      place = before;
    }
    move(op, place->getIterator());
  }

  /// Puts the wait before `place`. With nothing to hide behind it stays one
  /// operation.
  static void endLate(CollectiveOpInterface op, Operation *place,
                      double flops) {
    if (flops == 0)
      return;
    OpBuilder builder(place);
    op->setAttr("start", builder.getUnitAttr());
    Value result = op->getResult(0);
    auto wait =
        WaitOp::create(builder, op->getLoc(), result,
                       builder.getI64IntegerAttr(static_cast<int64_t>(flops)));
    result.replaceAllUsesExcept(wait, wait);
  }

  sharding::Mesh mesh;
  cost::Machine machine;
};

} // namespace
