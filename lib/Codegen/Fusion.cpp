//===- Fusion.cpp - What is computed together -----------------------------===//
#include "ax/Codegen/Fusion.h"

#include "ChannelsLast.h"
#include "FusionGroups.h"
#include "Library.h"
#include "ax/Dialect/LocalOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace ax::codegen {

static void removeUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
}

/// Activations that no library has become operations of their own.
static void splitActivations(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto split = [&](auto contraction) {
      auto kind = contraction.getActivation();
      if (!kind || libraryActivation(*kind))
        return;
      ImplicitLocOpBuilder builder(op.getLoc(), &op);
      builder.setInsertionPointAfter(&op);
      Value result = contraction.getResult();
      Operation *last =
          UnaryOp::create(builder, result.getType(), *kind, result);
      Operation *first = last;
      if (Value residual = contraction.getResidual())
        last = BinaryOp::create(builder, result.getType(), BinaryKind::add,
                                last->getResult(0), residual);
      contraction.getResidualMutable().clear();
      contraction.removeActivationAttr();
      result.replaceAllUsesExcept(last->getResult(0), first);
    };
    if (auto linear = dyn_cast<LinearOp>(op))
      split(linear);
    else if (auto conv = dyn_cast<ConvOp>(op))
      split(conv);
  }
}

/// The activation after a convolution and the sum with its residual.
static void absorbActivations(Block &block) {
  for (Operation &op : block) {
    auto conv = dyn_cast<ConvOp>(op);
    if (!conv || !conv.getResidual() || conv.getActivation() ||
        !conv->hasOneUse())
      continue;
    auto unary = dyn_cast<UnaryOp>(*conv->user_begin());
    if (!unary || !libraryActivation(unary.getKind()))
      continue;
    conv.setActivation(unary.getKind());
    conv->setAttr(kActivationLast, UnitAttr::get(conv.getContext()));
    conv->setLoc(mergeLocations(conv, unary));
    unary.getResult().replaceAllUsesWith(conv.getResult());
  }
}

/// A result that is only wanted transposed is written so, if its rows stay
/// rows: no product is fast that writes columns.
static void absorbTransposes(Block &block) {
  for (Operation &op : block) {
    if (!canPermuteResult(&op) || !op.hasOneUse())
      continue;
    auto linear = dyn_cast<LinearOp>(op);
    auto transpose = dyn_cast<TransposeOp>(*op.user_begin());
    if (!transpose || (linear && linear.getResidual()) ||
        transpose.getPermutation().back() + 1 !=
            static_cast<int64_t>(transpose.getPermutation().size()))
      continue;
    op.setAttr(kResultPermutation, transpose.getPermutationAttr());
    op.getResult(0).setType(cast<RankedTensorType>(transpose.getType()));
    transpose.getResult().replaceAllUsesWith(op.getResult(0));
    // Its operand has another type now; it is unused and goes with the others.
  }
}

/// Whether a matrix product can read the operand as it is when it is dense: its
/// last dimension is no batch, what is summed over is one run.
static bool suitsProduct(Value operand, ArrayRef<int64_t> batch,
                         ArrayRef<int64_t> contract) {
  ArrayRef<int64_t> shape = tensorType(operand).getShape();
  for (size_t i = 1; i < contract.size(); ++i)
    if (contract[i] != contract[i - 1] + 1)
      return false;
  int64_t last = static_cast<int64_t>(shape.size()) - 1;
  while (last > 0 && shape[last] == 1)
    --last;
  return !llvm::is_contained(batch, last);
}

/// Puts a transpose before operands that no dense tensor would make fit: views
/// are read through it, all else is written so.
static void orderProducts(Block &block) {
  for (DotOp dot : llvm::make_early_inc_range(block.getOps<DotOp>())) {
    OpBuilder builder(dot);
    auto order = [&](OpOperand &operand, ArrayRef<int64_t> batch,
                     ArrayRef<int64_t> contract, auto setBatch,
                     auto setContract) {
      if (suitsProduct(operand.get(), batch, contract))
        return;
      RankedTensorType type = tensorType(operand.get());
      SmallVector<int64_t> permutation(batch), sizes;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (!llvm::is_contained(batch, dim) &&
            !llvm::is_contained(contract, dim))
          permutation.push_back(dim);
      int64_t firstContract = permutation.size();
      llvm::append_range(permutation, contract);
      for (int64_t dim : permutation)
        sizes.push_back(type.getDimSize(dim));
      operand.set(TransposeOp::create(builder, dot.getLoc(), type.clone(sizes),
                                      operand.get(), permutation));
      setBatch(llvm::to_vector(llvm::seq<int64_t>(batch.size())));
      setContract(
          llvm::to_vector(llvm::seq<int64_t>(firstContract, type.getRank())));
    };
    order(
        dot.getLhsMutable(), dot.getLhsBatch(), dot.getLhsContract(),
        [&](ArrayRef<int64_t> dims) { dot.setLhsBatch(dims); },
        [&](ArrayRef<int64_t> dims) { dot.setLhsContract(dims); });
    order(
        dot.getRhsMutable(), dot.getRhsBatch(), dot.getRhsContract(),
        [&](ArrayRef<int64_t> dims) { dot.setRhsBatch(dims); },
        [&](ArrayRef<int64_t> dims) { dot.setRhsContract(dims); });
  }
}

/// What something other than a kernel reads.
static MemoryValues findMemoryValues(Block &block) {
  MemoryValues inMemory;
  auto isConstant = [](Value) { return false; };
  auto visit = [&](Operation &op) {
    if (isLibraryOp(&op)) {
      LibraryCall call = makeLibraryCall(&op, isConstant, inMemory);
      while (!call.wantsDense.empty()) {
        [[maybe_unused]] size_t before = inMemory.size();
        inMemory.insert(call.wantsDense.begin(), call.wantsDense.end());
        assert(inMemory.size() > before && "what is in memory is dense");
        call = makeLibraryCall(&op, isConstant, inMemory);
      }
      for (const LibraryCall::Argument &argument : call.arguments)
        inMemory.insert(argument.base);
    } else if (isa<CollectiveOpInterface, AwaitOp, ReturnOp>(op)) {
      for (Value operand : op.getOperands()) {
        View view = viewOf(operand, inMemory);
        inMemory.insert(view.isDense() ? view.base : operand);
      }
    }
  };
  // What an operation puts in memory may be what another's view goes through,
  // and end it there.
  size_t before;
  do {
    before = inMemory.size();
    llvm::for_each(block, visit);
  } while (inMemory.size() > before);
  return inMemory;
}

namespace {

/// Puts the groups into `ax.fusion` operations, everything in an order in which
/// operands come first.
class Rewriter {
public:
  Rewriter(Block &block, const FusionGroups &groups,
           const MemoryValues &inMemory)
      : block(block), groups(groups) {
    for (auto [i, op] : llvm::enumerate(block))
      order[&op] = i;
    // The first group of a value that is in memory makes it.
    for (auto [i, group] : llvm::enumerate(groups.getGroups()))
      for (Operation *member : group.members)
        if (inMemory.contains(member->getResult(0)) &&
            (!isFree(member) || group.members.front() == member))
          maker[member] = i;
    built.resize(groups.getGroups().size());
  }

  void run() {
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops)
      place(op);
    for (Operation *op : llvm::reverse(ops))
      if (groups.groupsOf(op).size() && op->use_empty())
        op->erase();
  }

private:
  /// What `op` needs at the top level, then `op` itself, at the end.
  void place(Operation *op) {
    if (auto it = maker.find(op); it != maker.end()) {
      build(it->second);
      return;
    }
    bool isInside = !groups.groupsOf(op).empty() && !isFree(op);
    if (isInside || !placed.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp())
        if (isNeeded(source))
          place(source);
    op->moveBefore(&block, block.end());
  }
  bool isNeeded(Operation *source) {
    return source->getBlock() == &block && order.contains(source);
  }

  void build(unsigned number) {
    if (built[number])
      return;
    built[number] = true;
    const FusionGroup &group = groups.getGroups()[number];
    SmallVector<Operation *> members(group.members.begin(),
                                     group.members.end());
    llvm::sort(members, [&](Operation *a, Operation *b) {
      return order.lookup(a) < order.lookup(b);
    });
    auto isOutside = [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return !source || !group.members.contains(source);
    };
    SmallVector<Value> sources, results;
    for (Operation *member : members) {
      llvm::copy_if(member->getOperands(), std::back_inserter(sources),
                    isOutside);
      auto it = maker.find(member);
      if (it != maker.end() && it->second == number)
        llvm::append_range(results, member->getResults());
    }
    for (Value operand : sources)
      if (Operation *source = operand.getDefiningOp())
        if (isNeeded(source))
          place(source);

    // Only now: placing replaces values by results of other kernels, in views
    // that are members at once, in other members by way of `replaced`.
    auto now = [&](Value operand) {
      return replaced.lookup_or(operand, operand);
    };
    SetVector<Value> operands;
    for (Operation *member : members)
      for (Value operand :
           llvm::make_filter_range(member->getOperands(), isOutside))
        operands.insert(now(operand));
    OpBuilder builder(block.getParentOp()->getContext());
    builder.setInsertionPointToEnd(&block);
    Operation *last = members.back();
    for (Operation *member : members)
      if (!isFree(member))
        last = member;
    auto fusion = FusionOp::create(builder, last->getLoc(),
                                   TypeRange(ValueRange(results)),
                                   operands.getArrayRef());
    Block &body = fusion.getBody().empty() ? fusion.getBody().emplaceBlock()
                                           : fusion.getBody().front();
    IRMapping mapping;
    for (Value operand : operands)
      mapping.map(operand,
                  body.addArgument(operand.getType(), operand.getLoc()));
    for (Operation *member : members)
      for (Value operand :
           llvm::make_filter_range(member->getOperands(), isOutside))
        mapping.map(operand, mapping.lookup(now(operand)));
    builder.setInsertionPointToEnd(&body);
    for (Operation *member : members)
      builder.clone(*member, mapping);
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    YieldOp::create(builder, last->getLoc(), yielded);
    for (auto [from, to] : llvm::zip_equal(results, fusion.getResults())) {
      replaced[from] = to;
      // Members of kernels not yet built still look for the old value.
      from.replaceUsesWithIf(to, [&](OpOperand &use) {
        return groups.groupsOf(use.getOwner()).empty() ||
               isViewOp(use.getOwner());
      });
    }
  }

  Block &block;
  const FusionGroups &groups;
  llvm::DenseMap<Operation *, unsigned> order;
  llvm::DenseMap<Operation *, unsigned> maker;
  llvm::DenseMap<Value, Value> replaced;
  llvm::DenseSet<Operation *> placed;
  std::vector<bool> built;
};

} // namespace

void fuse(ProgramOp program, bool separately) {
  Block &block = program.getBody().front();
  removeUnused(block);
  splitActivations(block);
  absorbActivations(block);
  putChannelsLast(block);
  absorbTransposes(block);
  orderProducts(block);
  removeUnused(block);
  IRRewriter rewriter(program.getContext());
  DominanceInfo dominance(program);
  eliminateCommonSubExpressions(rewriter, dominance, program);

  MemoryValues inMemory = findMemoryValues(block);
  FusionGroups groups(block, inMemory, separately);
  Rewriter(block, groups, inMemory).run();
  removeUnused(block);
}

} // namespace ax::codegen
