//===- JoinSiblings.cpp - Kernels that read the same elements -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example: the gradient of silu(gate) * up.
//
//   d_up = f(dy, gate)          one kernel
//   two products read d_up
//   d_gate = g(dy, gate, up)    and another one
//
// Neither reads the other, but both read dy and gate, so that one kernel has
// less to read: five tensors instead of seven go to or from memory. The second
// one comes to the first, where all that it reads is there already. So what it
// makes is in memory along with that, and with what the first makes, which may
// be read for the last time before the second would have begun: that much more
// a stage may need at most. It is to be little beside its arguments, such as
// weights and an optimizer's state, which are there all the time.
//
//===----------------------------------------------------------------------===//

#include "JoinKernels.h"

#include "FusionGroups.h"
#include "StageAttrs.h"
#include "StridedView.h"

#include "ax/Dialect/Tensors.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ax::codegen {

namespace {

/// What the threads of a kernel do: element by element, or the sums of some
/// dimensions of one shape, which are results. So two that do the same may be
/// one.
struct Work {
  ArrayRef<int64_t> results, summed, dims;

  bool operator==(const Work &other) const {
    return results == other.results && summed == other.summed &&
           dims == other.dims;
  }
};

/// Nothing for what does something else, and for what an update may write in
/// place of a state.
std::optional<Work> workOf(FusionOp fusion) {
  Work work{shapeOf(fusion->getResult(0)), {}, {}};
  for (Value result : fusion->getResults())
    if (shapeOf(result) != work.results ||
        llvm::any_of(result.getUsers(), llvm::IsaPred<LocalYieldOp>))
      return std::nullopt;
  SmallVector<Operation *> others;
  Operation *yield = fusion.getBody().front().getTerminator();
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      ArrayRef<int64_t> summed = shapeOf(reduce.getOperand());
      bool isOther = !work.dims.empty() &&
                     (summed != work.summed || reduce.getDims() != work.dims);
      if (isOther || !llvm::all_of(op.getUsers(), llvm::IsaPred<LocalYieldOp>))
        return std::nullopt;
      work.summed = summed;
      work.dims = reduce.getDims();
    } else if (!isElementwise(&op) && !isa<ReshapeOp, BroadcastOp>(op)) {
      others.push_back(&op);
    }
  }
  // Views of what is smaller, a column's numbers for one, are no matter.
  int64_t elements =
      llvm::product_of(work.dims.empty() ? work.results : work.summed);
  if (llvm::any_of(others, [&](Operation *op) {
        return !isFree(op) || numElements(op) == elements;
      }))
    return std::nullopt;
  bool areAllSums =
      work.dims.empty() || llvm::all_of(yield->getOperands(), [](Value value) {
        return isa_and_present<ReduceOp>(value.getDefiningOp());
      });
  return areAllSums ? std::optional(work) : std::nullopt;
}

bool mayJoin(FusionOp first, FusionOp second) {
  constexpr size_t mostBuffers = 16;
  // What is in a cache is read twice for nothing.
  constexpr int64_t leastBytes = 1 << 20, few = 64;
  // Others read the old copy of a state before there is a new one.
  if (first->hasAttr(kOnce) != second->hasAttr(kOnce) ||
      second->hasAttr(kCopies))
    return false;
  llvm::SmallSetVector<Value, 16> buffers(first->operand_begin(),
                                          first->operand_end());
  int64_t shared = 0;
  for (Value operand : second->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (source && !source->isBeforeInBlock(first))
      return false;
    if (!buffers.insert(operand))
      shared += byteSizeOf(operand);
  }
  int64_t kept =
      std::max(shared, totalBytesOf(first->getBlock()->getArguments()));
  return shared >= leastBytes &&
         few * totalBytesOf(second->getResults()) <= kept &&
         buffers.size() + first->getNumResults() + second->getNumResults() <=
             mostBuffers;
}

/// The first kernel before `fusion` that it may join.
FusionOp findSibling(FusionOp fusion, const Work &work) {
  llvm::SmallSetVector<FusionOp, 8> earlier;
  for (Value operand : fusion->getOperands())
    for (Operation *user : operand.getUsers())
      if (auto other = dyn_cast<FusionOp>(user);
          other && other->isBeforeInBlock(fusion) && workOf(other) == work)
        earlier.insert(other);
  SmallVector<FusionOp> inOrder = earlier.takeVector();
  llvm::sort(inOrder,
             [](FusionOp a, FusionOp b) { return a->isBeforeInBlock(b); });
  auto *sibling = llvm::find_if(
      inOrder, [&](FusionOp other) { return mayJoin(other, fusion); });
  return sibling == inOrder.end() ? FusionOp() : *sibling;
}

} // namespace

void joinSiblings(Block &block) {
  for (FusionOp fusion : llvm::make_early_inc_range(block.getOps<FusionOp>()))
    if (std::optional<Work> work = workOf(fusion))
      if (FusionOp sibling = findSibling(fusion, *work))
        joinAt(sibling, {sibling, fusion});
}

} // namespace ax::codegen
