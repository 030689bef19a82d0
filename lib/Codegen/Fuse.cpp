//===- Fuse.cpp - What is computed together -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "FusionGroups.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/IRMapping.h"

namespace ax::codegen {
#define GEN_PASS_DEF_FUSE
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What something other than a kernel reads.
static MemoryValues findMemoryValues(Block &block, bool gpu) {
  MemoryValues inMemory;
  auto isConstant = [](Value) { return false; };
  auto visit = [&](Operation &op) {
    if (isLibraryOp(&op)) {
      LibraryCall call = makeLibraryCall(&op, isConstant, inMemory, gpu);
      while (!call.wantsDense.empty()) {
        [[maybe_unused]] size_t before = inMemory.size();
        inMemory.insert(call.wantsDense.begin(), call.wantsDense.end());
        assert(inMemory.size() > before && "what is in memory is dense");
        call = makeLibraryCall(&op, isConstant, inMemory, gpu);
      }
      for (const LibraryCall::Argument &argument : call.arguments)
        inMemory.insert(argument.base);
    } else if (isa<LocalCollectiveOpInterface, AwaitOp, ReportFaultOp,
                   LocalYieldOp>(op)) {
      for (Value operand : op.getOperands()) {
        StridedView view = viewOf(operand, inMemory);
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

/// Puts the groups into `axl.fusion` operations, everything in an order in
/// which operands come first.
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
            (!isFree(member) || group.members.front() == member)) {
          maker[member] = i;
          Operation *&last = lastOf.try_emplace(i, member).first->second;
          if (order.lookup(last) < order.lookup(member))
            last = member;
        }
    built.resize(groups.getGroups().size());
  }

  void run() {
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    // Where all of its results were made before, unless one is needed sooner:
    // what a kernel reads besides would else come before that, too.
    for (Operation *op : ops)
      if (auto it = maker.find(op);
          it == maker.end() || lastOf.lookup(it->second) == op)
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
    Block &body = fusion.getBody().emplaceBlock();
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
    LocalYieldOp::create(builder, last->getLoc(), yielded);
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
  /// Of a group's members that are in memory, the last one in the block.
  llvm::DenseMap<unsigned, Operation *> lastOf;
  llvm::DenseMap<Value, Value> replaced;
  llvm::DenseSet<Operation *> placed;
  std::vector<bool> built;
};

struct FusePass : codegen::impl::FuseBase<FusePass> {
  using FuseBase::FuseBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      Block &block = stage.getBlock();
      MemoryValues inMemory = findMemoryValues(block, gpu);
      FusionGroups groups(block, inMemory, separately, gpu);
      Rewriter(block, groups, inMemory).run();
      removeUnused(block);
    });
  }
};

} // namespace
