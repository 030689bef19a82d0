//===- JoinKernels.cpp - Small kernels that are launched as one -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU takes some microseconds for a kernel, however little there is to do in
// it. Of kernels whose bodies are equal, results have equal shapes, and those
// share the loops of one kernel: a thread does the element at the same place of
// all of them. So nothing is new for whoever writes kernels, or launches them.
//
// An example: the updates of 12 layers' biases of 768 numbers, which are 12
// launches of 192 threads that do 4 numbers each, become 2 launches of 192
// threads that do 4 numbers of 6 biases.
//
// They stand where the last of them did, if nobody needs the others sooner.
// Some numbers that are made of inputs alone come to where the first is needed:
// the scales of fp8, of which each product needs two.
//
//===----------------------------------------------------------------------===//

#include "JoinKernels.h"

#include "ForEachStage.h"
#include "StageAttrs.h"
#include "StridedView.h"

#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace ax::codegen {

#define GEN_PASS_DEF_JOINKERNELS
#include "ax/Codegen/LocalPasses.h.inc"

namespace {

/// Kernels with equal bodies, in the block's order, and which of them stands
/// where all of them may.
struct Equals {
  SmallVector<FusionOp, 8> members;
  FusionOp place;
};

/// Whether there is hardly more to do than a launch takes, of elements and of
/// sums of them.
bool isSmall(FusionOp fusion) {
  constexpr int64_t mostBytes = 4 << 20;
  int64_t bytes =
      totalBytesOf(fusion->getOperands()) + totalBytesOf(fusion->getResults());
  return bytes <= mostBytes &&
         llvm::all_of(fusion.getBody().front(), [](Operation &op) {
           return isa<ReduceOp>(op) || op.hasTrait<ElementwiseLike>() ||
                  op.hasTrait<ViewLike>() ||
                  isa<ConcatOp, ConstantOp, LocalYieldOp>(op);
         });
}

/// Equal for kernels that are equal.
llvm::hash_code hashOf(FusionOp fusion) {
  llvm::hash_code hash =
      llvm::hash_combine(fusion->getNumOperands(), fusion->hasAttr(kOnce));
  for (Type type : fusion->getOperandTypes())
    hash = llvm::hash_combine(hash, type);
  for (Operation &op : fusion.getBody().front()) {
    hash = llvm::hash_combine(hash, op.getName(), op.hashProperties());
    for (Type type : op.getResultTypes())
      hash = llvm::hash_combine(hash, type);
  }
  return hash;
}

bool areEqual(FusionOp a, FusionOp b) {
  return a->getOperandTypes() == b->getOperandTypes() &&
         a->getResultTypes() == b->getResultTypes() &&
         a->hasAttr(kOnce) == b->hasAttr(kOnce) &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(),
             OperationEquivalence::IgnoreLocations |
                 OperationEquivalence::IgnoreDiscardableAttrs);
}

/// Whether nothing before `place` needs the value. Views of it may wait, too.
bool canWait(Value value, Operation *place) {
  SmallVector<Value> seen{value};
  while (!seen.empty())
    for (Operation *user : seen.pop_back_val().getUsers()) {
      if (place->isBeforeInBlock(user))
        continue;
      if (!isViewOp(user) || user == place)
        return false;
      seen.push_back(user->getResult(0));
    }
  return true;
}

/// Whether it is some numbers that are made of inputs, which may be there
/// earlier. A new copy of a state may not: others read the old one before.
bool canComeFirst(FusionOp fusion) {
  constexpr int64_t fewBytes = 256;
  return !fusion->hasAttr(kCopies) &&
         llvm::all_of(fusion->getOperands(), llvm::IsaPred<BlockArgument>) &&
         llvm::all_of(fusion->getResults(), [](Value result) {
           return byteSizeOf(result) <= fewBytes;
         });
}

/// Views of the value that stand before `place` come behind it.
void moveViews(Value value, Operation *place) {
  SmallVector<std::pair<Value, Operation *>> behind{{value, place}};
  while (!behind.empty()) {
    auto [moved, last] = behind.pop_back_val();
    for (Operation *user : moved.getUsers())
      if (user->isBeforeInBlock(last)) {
        user->moveAfter(last);
        behind.push_back({user->getResult(0), user});
      }
  }
}

size_t numBuffers(ArrayRef<FusionOp> members) {
  llvm::SmallSetVector<Value, 32> buffers;
  for (FusionOp member : members) {
    buffers.insert(member->operand_begin(), member->operand_end());
    buffers.insert(member->result_begin(), member->result_end());
  }
  return buffers.size();
}

/// All that may be, but for what was `joined` before.
void joinOnce(Block &block, llvm::SmallPtrSetImpl<Operation *> &joined) {
  // Results of all are in registers before they are stored, and code is of all.
  // A thread adds up several columns of each.
  constexpr size_t most = 8, mostSums = 4, mostBuffers = 64;
  SmallVector<Equals> whole, open;
  llvm::DenseMap<size_t, SmallVector<size_t, 1>> byHash;
  for (auto fusion : block.getOps<FusionOp>()) {
    if (!isSmall(fusion) || joined.contains(fusion))
      continue;
    SmallVector<size_t, 1> &alike = byHash[hashOf(fusion)];
    auto known = llvm::find_if(
        alike, [&](size_t some) { return areEqual(open[some].place, fusion); });
    if (known == alike.end()) {
      alike.push_back(open.size());
      open.push_back({{fusion}, fusion});
      continue;
    }
    Equals *equals = &open[*known];
    bool sums = !fusion.getBody().front().getOps<ReduceOp>().empty();
    Equals more(*equals);
    more.members.push_back(fusion);
    bool fits = more.members.size() <= (sums ? mostSums : most) &&
                numBuffers(more.members) <= mostBuffers;
    bool isLast = llvm::all_of(equals->members, [&](FusionOp member) {
      return llvm::all_of(member->getResults(), [&](Value result) {
        return canWait(result, fusion);
      });
    });
    if (isLast)
      more.place = fusion;
    else
      fits &= canComeFirst(fusion);
    if (!fits) {
      whole.push_back(std::move(*equals));
      more = {{fusion}, fusion};
    }
    *equals = std::move(more);
  }
  llvm::append_range(whole, open);
  for (const Equals &equals : whole)
    if (equals.members.size() > 1)
      joined.insert(joinAt(equals.place, equals.members));
}

} // namespace

int64_t totalBytesOf(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += byteSizeOf(value);
  return bytes;
}

/// The results of `whole` are copies as those of its members were.
static void setCopies(FusionOp whole, ArrayRef<FusionOp> members) {
  SmallVector<int64_t> copies;
  bool areAny = false;
  for (FusionOp member : members) {
    copies.resize(copies.size() + member->getNumResults(), -1);
    if (auto own = member->getAttrOfType<DenseI64ArrayAttr>(kCopies)) {
      llvm::copy(own.asArrayRef(), copies.end() - member->getNumResults());
      areAny = true;
    }
  }
  if (areAny)
    whole->setAttr(kCopies, DenseI64ArrayAttr::get(whole.getContext(), copies));
}

FusionOp joinAt(FusionOp place, ArrayRef<FusionOp> members) {
  OpBuilder builder(place);
  SmallVector<Location> locations;
  llvm::SmallSetVector<Value, 32> operands;
  SmallVector<Value> results;
  for (FusionOp member : members) {
    locations.push_back(member.getLoc());
    operands.insert(member->operand_begin(), member->operand_end());
    llvm::append_range(results, member->getResults());
  }
  auto whole =
      FusionOp::create(builder, builder.getFusedLoc(locations),
                       TypeRange(ValueRange(results)), operands.getArrayRef());
  if (place->hasAttr(kOnce))
    whole->setAttr(kOnce, builder.getUnitAttr());
  setCopies(whole, members);
  Block &body = whole.getBody().emplaceBlock();
  IRMapping ofOperands;
  for (Value operand : operands)
    ofOperands.map(operand,
                   body.addArgument(operand.getType(), operand.getLoc()));
  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> yielded;
  for (FusionOp member : members) {
    Block &from = member.getBody().front();
    IRMapping mapping;
    for (auto [argument, operand] :
         llvm::zip_equal(from.getArguments(), member->getOperands()))
      mapping.map(argument, ofOperands.lookup(operand));
    for (Operation &op : from.without_terminator())
      builder.clone(op, mapping);
    for (Value value : from.getTerminator()->getOperands())
      yielded.push_back(mapping.lookupOrDefault(value));
  }
  LocalYieldOp::create(builder, whole.getLoc(), yielded);
  for (Value result : results)
    moveViews(result, whole);
  for (auto [from, to] : llvm::zip_equal(results, whole.getResults()))
    from.replaceAllUsesWith(to);
  for (FusionOp member : members)
    member->erase();
  return whole;
}

namespace {

struct JoinKernelsPass : impl::JoinKernelsBase<JoinKernelsPass> {
  void runOnOperation() override {
    // What was needed by one of those that wait now can wait, too.
    constexpr int rounds = 2;
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      joinSiblings(stage.getBlock());
      llvm::SmallPtrSet<Operation *, 16> joined;
      for (int round = 0; round != rounds; ++round)
        joinOnce(stage.getBlock(), joined);
    });
  }
};

} // namespace

} // namespace ax::codegen
