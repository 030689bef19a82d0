//===- SumPartials.cpp - Partial sums are added before they are reduced ---===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives do not change what a tensor is, only who has what of it. So a
// tree of additions, all-reduces and to-partials is the sum of its leaves.
// Leaves of one layout are added first, and each such sum is reduced once:
// add(all_reduce(a), all_reduce(b)) is all_reduce(add(a, b)).
//
//===----------------------------------------------------------------------===//
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"
#include "ax/Sharding/Digits.h"

#include "llvm/ADT/MapVector.h"

namespace ax {
#define GEN_PASS_DEF_SUMPARTIALS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using sharding::Layout;
using sharding::Mesh;

namespace {

/// A term of a sum, with the cause of what reduces it.
struct Leaf {
  Value value;
  StringAttr cause;
};

class SumTree {
public:
  SumTree(Operation *root, const Mesh &mesh);

  /// Whether `op` adds, or completes or spreads a sum, and nothing else.
  static bool isNode(Operation *op, const Mesh &mesh);
  static bool isRoot(Operation *op, const Mesh &mesh);

  /// Writes the sum with fewer reductions, if that can be.
  void rewrite();

private:
  Value rootValue() const { return root->getResult(0); }
  const Layout &layoutOf(Value value) const {
    return getLayout(tensorType(value), mesh);
  }
  Value add(Value lhs, Value rhs);
  Value toRoot(Value sum, StringAttr cause);
  void place(Value made) { copyStageAndAction(root, made.getDefiningOp()); }

  Operation *root;
  const Mesh &mesh;
  OpBuilder builder;
  SmallVector<Leaf> leaves;
  size_t numReductions = 0;
};

} // namespace

static bool isSum(Value value, const Mesh &mesh) {
  const Layout &layout = getLayout(tensorType(value), mesh);
  return layout.partial.empty() ||
         layout.partialKind == sharding::ReduceKind::Sum;
}

bool SumTree::isNode(Operation *op, const Mesh &mesh) {
  if (auto binary = dyn_cast<BinaryOp>(op))
    return binary.getKind() == BinaryKind::add &&
           binary.getLhs().getType() == binary.getType() &&
           binary.getRhs().getType() == binary.getType() && isSum(binary, mesh);
  if (!isa<AllReduceOp, ToPartialOp>(op) || op->getNumResults() != 1)
    return false;
  // Sums over slices in time are reduced where they are kept.
  auto collective = cast<CollectiveOpInterface>(op);
  return isSum(op->getOperand(0), mesh) && isSum(op->getResult(0), mesh) &&
         inTime(collective.getMovedAxes().resolve(mesh), mesh).empty();
}

bool SumTree::isRoot(Operation *op, const Mesh &mesh) {
  if (!isNode(op, mesh))
    return false;
  if (!op->hasOneUse())
    return true;
  Operation *user = *op->user_begin();
  return !isNode(user, mesh) || !haveSameStageAndAction(op, user);
}

SumTree::SumTree(Operation *root, const Mesh &mesh)
    : root(root), mesh(mesh), builder(root) {
  SmallVector<Leaf> open{{rootValue(), {}}};
  while (!open.empty()) {
    Leaf next = open.pop_back_val();
    Operation *op = next.value.getDefiningOp();
    bool isInner =
        op && isNode(op, mesh) &&
        (op == root || (op->hasOneUse() && haveSameStageAndAction(op, root)));
    if (!isInner) {
      leaves.push_back(next);
      continue;
    }
    if (auto reduction = dyn_cast<AllReduceOp>(op)) {
      ++numReductions;
      next.cause = reduction.getBecauseAttr();
    }
    for (Value operand : llvm::reverse(op->getOperands()))
      open.push_back({operand, next.cause});
  }
}

/// Adds as early as both are there: they need not be kept for the root.
Value SumTree::add(Value lhs, Value rhs) {
  Operation *later = lhs.getDefiningOp(), *other = rhs.getDefiningOp();
  if (!later || (other && later->isBeforeInBlock(other)))
    later = other;
  if (later)
    builder.setInsertionPointAfter(later);
  else
    builder.setInsertionPointToStart(root->getBlock());
  Value sum = BinaryOp::create(builder, root->getLoc(), lhs.getType(),
                               BinaryKind::add, lhs, rhs);
  place(sum);
  return sum;
}

/// `sum`, partial over the axes that the root is partial over.
Value SumTree::toRoot(Value sum, StringAttr cause) {
  builder.setInsertionPoint(root);
  sharding::SubAxes wanted = layoutOf(rootValue()).partial;
  auto axesOf = [&](const sharding::SubAxes &axes) {
    return AxesAttr::get(builder.getContext(), axes, mesh);
  };
  Layout layout = layoutOf(sum);
  if (auto missing = sharding::withoutAxes(wanted, layout.partial);
      !missing.empty()) {
    llvm::append_range(layout.partial, missing);
    layout.partialKind = sharding::ReduceKind::Sum;
    layout = sharding::canonicalize(std::move(layout));
    sum = ToPartialOp::create(builder, root->getLoc(),
                              withLayout(tensorType(sum), layout, mesh), sum,
                              axesOf(missing), nullptr);
    place(sum);
  }
  if (auto extra = sharding::withoutAxes(layout.partial, wanted);
      !extra.empty()) {
    sum =
        AllReduceOp::create(builder, root->getLoc(), root->getResultTypes()[0],
                            sum, axesOf(extra), cause)
            ->getResult(0);
    place(sum);
  }
  return sum;
}

void SumTree::rewrite() {
  struct Group {
    SmallVector<Value> terms;
    StringAttr cause;
  };
  llvm::MapVector<Type, Group> groups;
  for (const Leaf &leaf : leaves) {
    Group &group = groups[leaf.value.getType()];
    group.terms.push_back(leaf.value);
    if (!group.cause)
      group.cause = leaf.cause;
  }
  sharding::SubAxes wanted = layoutOf(rootValue()).partial;
  size_t needed = llvm::count_if(groups, [&](const auto &group) {
    Value term = group.second.terms.front();
    return !sharding::withoutAxes(layoutOf(term).partial, wanted).empty();
  });
  if (needed >= numReductions)
    return;
  Value total;
  for (auto &[type, group] : groups) {
    Value sum;
    for (Value term : group.terms)
      sum = sum ? add(sum, term) : term;
    sum = toRoot(sum, group.cause);
    total = total ? add(total, sum) : sum;
  }
  rootValue().replaceAllUsesWith(total);
  // Each has lost its only user when its turn comes.
  SmallVector<Operation *> unused{root};
  while (!unused.empty()) {
    Operation *op = unused.pop_back_val();
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (Operation *maker = operand.getDefiningOp();
          maker && maker->use_empty() && isNode(maker, mesh))
        unused.push_back(maker);
  }
}

namespace {
struct SumPartials : ax::impl::SumPartialsBase<SumPartials> {
  void runOnOperation() final {
    Mesh mesh = getOperation().getMesh();
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      SmallVector<Operation *> roots;
      for (Operation &op : program.getBody().front())
        if (SumTree::isRoot(&op, mesh))
          roots.push_back(&op);
      for (Operation *root : roots)
        SumTree(root, mesh).rewrite();
    }
  }
};
} // namespace
