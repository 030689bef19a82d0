//===- ComputeOnce.cpp - What is done in the first step alone -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example: a model's head for a GPU, whose weight has 50257 columns.
//
//   wide = kernel(weight)       bf16, 50264 columns        done once
//   x    = kernel(ids, table)
//   y    = matmul(x, wide)
//
// The weight does not change from step to step, nor does what is made of it
// alone: whoever reads that later finds it where the first step has left it. It
// takes memory as long as the program is there, in the first step beside the
// weight itself, and in others where somebody else reads that. So a command is
// done once only if what is left of a weight is not larger than it is, or
// small. What is done in each step after all leaves more of those that it
// reads, until all that is left fits.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Library.h"
#include "StageAttrs.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "llvm/ADT/SetVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPUTEONCE
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether the command gives the same in each step if its operands are the
/// same: a rank's number along an axis in time is that of a micro-batch. Checks
/// tell of each step.
static bool isRepeatable(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return fusion.getBody().front().getOps<AxisIndexOp>().empty();
  return isLibraryOp(op) && !isa<CheckIndicesOp>(op);
}

/// Whether the stage gives a result: it lies where that goes.
static bool isGiven(Operation *op) {
  return llvm::any_of(op->getResults(), [](Value result) {
    return llvm::any_of(readersOf(result), llvm::IsaPred<LocalYieldOp>);
  });
}

/// Commands whose operands are states that no step changes, constants, or
/// results of such commands.
static llvm::SetVector<Operation *> findRepeated(LocalStageOp stage) {
  llvm::DenseSet<Value> fixed(llvm::from_range, findFrozen(stage));
  llvm::SetVector<Operation *> repeated;
  for (Operation &op : stage.getBlock()) {
    if (isa<ConstantOp>(op)) {
      fixed.insert(op.getResult(0));
      continue;
    }
    bool isFixed = isRepeatable(&op) && op.getNumOperands() != 0 &&
                   llvm::all_of(op.getOperands(), [&](Value operand) {
                     return fixed.contains(viewOf(operand).base);
                   });
    if (!isFixed || isGiven(&op))
      continue;
    repeated.insert(&op);
    fixed.insert(op.result_begin(), op.result_end());
  }
  return repeated;
}

/// The states and constants of which the results are made.
static llvm::SetVector<Value>
sourcesOf(Operation *op, const llvm::SetVector<Operation *> &once) {
  llvm::SetVector<Value> open, sources;
  auto add = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      open.insert(viewOf(operand).base);
  };
  add(op);
  for (size_t i = 0; i < open.size(); ++i)
    if (Operation *maker = open[i].getDefiningOp(); once.contains(maker))
      add(maker);
    else
      sources.insert(open[i]);
  return sources;
}

/// How much of `result` counts, which is made of `source` for the most part: as
/// many numbers in a wider type, since the device multiplies no integers, or no
/// f16, as much as they take in that of the source. `ax-prepare` does so with
/// integers that nobody multiplies as they are, and not where something trains.
static double bytesCounted(Value result, Value source) {
  RankedTensorType made = tensorType(result), of = tensorType(source);
  Type element = of.getElementType();
  bool isWidened = (isInteger8(element) || element.isF16()) &&
                   made.getNumElements() <= of.getNumElements() &&
                   made.getElementTypeBitWidth() <= 32;
  return static_cast<double>(isWidened ? made.getNumElements() *
                                             of.getElementTypeBitWidth() / 8
                                       : byteSizeOf(result));
}

/// Whether others than `once` read it.
static bool isLeft(Value result, const llvm::SetVector<Operation *> &once) {
  return llvm::any_of(readersOf(result), [&](Operation *reader) {
    return !once.contains(reader);
  });
}
static bool isLeft(Operation *op, const llvm::SetVector<Operation *> &once) {
  return llvm::any_of(op->getResults(),
                      [&](Value result) { return isLeft(result, once); });
}

/// How much of its results stays, as others than `once` read it.
static double bytesLeft(Operation *op, const llvm::SetVector<Operation *> &once,
                        const llvm::SetVector<Value> &sources, bool mayWiden) {
  assert(!sources.empty() && "a command has operands");
  Value largest = *llvm::max_element(
      sources, [](Value a, Value b) { return byteSizeOf(a) < byteSizeOf(b); });
  double bytes = 0;
  for (Value result : op->getResults())
    if (isLeft(result, once))
      bytes += mayWiden ? bytesCounted(result, largest)
                        : static_cast<double>(byteSizeOf(result));
  return bytes;
}

/// Removes what leaves more than what it is made of. Returns whether there was
/// any: what that reads is then left for it.
static bool removeLarge(llvm::SetVector<Operation *> &once, bool mayWiden) {
  constexpr double littleBytes = 1 << 18;
  // Rows may be padded.
  constexpr double mostGrowth = 1.125;
  // Several may be made of parts of one: each source has its share of what is
  // made of it and others.
  llvm::DenseMap<Value, double> made;
  llvm::DenseMap<Operation *, llvm::SetVector<Value>> sources;
  for (Operation *op : once) {
    if (!isLeft(op, once))
      continue;
    llvm::SetVector<Value> all = sourcesOf(op, once);
    double left = bytesLeft(op, once, all, mayWiden);
    sources[op] = all;
    double bytes = 0;
    for (Value source : all)
      bytes += static_cast<double>(byteSizeOf(source));
    for (Value source : all)
      made[source] +=
          left * static_cast<double>(byteSizeOf(source)) / std::max(bytes, 1.0);
  }
  auto isLarge = [&](Value source) {
    double bytes = byteSizeOf(source);
    return made.lookup(source) > std::max(littleBytes, mostGrowth * bytes);
  };
  llvm::SmallVector<Operation *> large;
  for (Operation *op : once)
    if (llvm::any_of(sources[op], isLarge))
      large.push_back(op);
  for (Operation *op : large)
    once.remove(op);
  return !large.empty();
}

namespace {

struct ComputeOncePass : codegen::impl::ComputeOnceBase<ComputeOncePass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      llvm::SetVector<Operation *> once = findRepeated(stage);
      while (removeLarge(once, /*mayWiden=*/!trains(stage)))
        continue;
      for (Operation *op : once)
        op->setAttr(kOnce, UnitAttr::get(&getContext()));
    });
  }
};

} // namespace
