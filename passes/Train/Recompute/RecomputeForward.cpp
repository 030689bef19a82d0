//===- RecomputeForward.cpp - What is kept for the backward pass ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chen et al., arXiv 1604.06174 (between checkpoints all is computed again);
// Korthikanti et al., arXiv 2205.05198 (only what is cheap per byte).
//
//===----------------------------------------------------------------------===//
#include "Recompute.h"
#include "ax/Cost/StageCost.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Local/Local.h"
#include "ax/Passes/Passes.h"

#include "llvm/Support/GlobPattern.h"

namespace ax {
#define GEN_PASS_DEF_RECOMPUTEFORWARD
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// What gathers a weight that is in parts over `data` or `context` (ZeRO 3), or
/// what is made of it, and rounds it before: done again in every mode, since
/// weights that are kept whole from the forward to the backward pass are what
/// that is to avoid. So Rajbhandari et al., arXiv 1910.02054, section 7.2.2,
/// count: half as much again is moved.
void addWeightGathers(const Recompute &recompute, Recompute::Ops &again) {
  for (Operation *op : recompute.getForward()) {
    auto gather = dyn_cast<AllGatherOp>(op);
    if (!gather || gather->getNumOperands() != 1)
      continue;
    auto isOverData = [](const sharding::SubAxis &part) {
      return part.axis == meshAxis::data || part.axis == meshAxis::context;
    };
    if (llvm::none_of(gather.getMovedAxes().resolve(getMesh(op)), isOverData))
      continue;
    if (!recompute.isOfWeights(op->getOperand(0)))
      continue;
    again.insert(op);
    if (auto rounding = op->getOperand(0).getDefiningOp<CastOp>();
        rounding && !Recompute::mustBeKept(rounding))
      again.insert(rounding);
  }
}

struct RecomputeForward : ax::impl::RecomputeForwardBase<RecomputeForward> {
  using RecomputeForwardBase::RecomputeForwardBase;
  RecomputeForward(const RecomputeForwardOptions &options, PredictPeak predict)
      : RecomputeForwardBase(options), predict(std::move(predict)) {}

  void runOnOperation() final {
    for (ProgramOp program :
         llvm::to_vector(getOperation().getBody().getOps<ProgramOp>()))
      if (failed(run(program)))
        return signalPassFailure();
  }

  LogicalResult run(ProgramOp program) {
    Recompute recompute(program);
    if (!recompute.hasBackward())
      return success();
    if (mode.kind == RecomputeMode::Budget)
      return fitBudget(program, recompute);
    Recompute::Ops again;
    addWeightGathers(recompute, again);
    if (mode.kind == RecomputeMode::Matching) {
      if (failed(addMatching(program, recompute, again)))
        return failure();
    } else if (mode.kind != RecomputeMode::None) {
      bool isFull = mode.kind == RecomputeMode::Full;
      for (size_t s = 0; s <= recompute.numSegments(); ++s)
        addSegment(recompute, s, isFull, again);
    }
    recompute.keepLater(again);
    recompute.apply(again);
    return success();
  }

  /// What mode full, or selective, does again of a segment.
  static void addSegment(const Recompute &recompute, size_t segment,
                         bool isFull, Recompute::Ops &again) {
    for (Operation *op : recompute.getForward()) {
      if (recompute.segmentOf(op) != segment || recompute.crosses(op) ||
          Recompute::mustBeKept(op))
        continue;
      bool isLast = segment == recompute.numSegments();
      if ((isFull && !isLast) || recompute.isCheap(op))
        again.insert(op);
    }
  }

  LogicalResult addMatching(ProgramOp program, const Recompute &recompute,
                            Recompute::Ops &again) {
    auto glob = llvm::cantFail(llvm::GlobPattern::create(mode.text));
    bool any = false;
    for (Operation *op : recompute.getForward()) {
      if (llvm::none_of(getNodeNames(op),
                        [&](StringRef name) { return glob.match(name); }))
        continue;
      any = true;
      if (!Recompute::mustBeKept(op))
        again.insert(op);
    }
    if (!any)
      return program.emitError("--recompute=")
             << mode.text
             << " is neither none, selective, full nor budget:SIZE, and no "
                "node is called so";
    return success();
  }

  using Step = std::pair<size_t, bool>;

  /// What `measure` says of the program with these steps taken, which is then
  /// alone in the plan, under its own name.
  static FailureOr<int64_t>
  after(ProgramOp program, ArrayRef<Step> steps,
        llvm::function_ref<FailureOr<int64_t>(ProgramOp)> measure) {
    ProgramOp trial = program.clone();
    OpBuilder(program).insert(trial);
    take(trial, steps);
    Operation *original = program.getOperation();
    Block *block = original->getBlock();
    auto behind = std::next(original->getIterator());
    original->remove();
    FailureOr<int64_t> bytes = measure(trial);
    block->getOperations().insert(behind, original);
    trial.erase();
    return bytes;
  }

  /// Bytes of the whole plan, as code generation has them.
  FailureOr<int64_t> peakAfter(ProgramOp program, ArrayRef<Step> steps) {
    if (!predict)
      return estimateAfter(program, steps);
    return after(program, steps,
                 [&](ProgramOp) { return predict(getOperation()); });
  }

  /// At once, without what fuses and which memory is used twice.
  static int64_t estimateAfter(ProgramOp program, ArrayRef<Step> steps) {
    return *after(program, steps, [](ProgramOp trial) -> FailureOr<int64_t> {
      return cost::programBytes(trial, getMesh(trial));
    });
  }

  static void take(ProgramOp program, ArrayRef<Step> steps) {
    Recompute recompute(program);
    Recompute::Ops again;
    addWeightGathers(recompute, again);
    for (auto [segment, isFull] : steps)
      addSegment(recompute, segment, isFull, again);
    recompute.keepLater(again);
    recompute.apply(again);
  }

  LogicalResult fitBudget(ProgramOp program, const Recompute &recompute) {
    FailureOr<int64_t> none = peakAfter(program, {});
    if (failed(none))
      return failure();
    if (*none <= mode.budget) {
      take(program, {});
      return success();
    }
    SmallVector<Step> steps = orderSteps(recompute);
    // Generating code takes a second for a large model, and the estimate is off
    // by much the same however many steps are taken. So it says where to look.
    int64_t tooLow = *none - estimateAfter(program, {});
    size_t guess = *llvm::partition_point(
        llvm::seq<size_t>(1, std::max<size_t>(steps.size(), 1)),
        [&](size_t count) {
          return estimateAfter(program, ArrayRef(steps).take_front(count)) +
                     tooLow >
                 mode.budget;
        });
    return takeFewest(program, steps, guess, *none);
  }

  /// Takes the fewest steps with which the plan needs no more than the budget,
  /// `least` being what it needs with none. They are looked for from `guess`
  /// on, in strides that double, until there is a number that fits and one that
  /// does not: where the guess is right, that is one try on either side of it.
  LogicalResult takeFewest(ProgramOp program, ArrayRef<Step> steps,
                           size_t guess, int64_t least) {
    size_t low = 1, high = steps.size() + 1;
    for (size_t count = guess, stride = 1; low < high; stride *= 2) {
      FailureOr<int64_t> bytes = peakAfter(program, steps.take_front(count));
      if (failed(bytes))
        return failure();
      least = std::min(least, *bytes);
      bool fits = *bytes <= mode.budget;
      (fits ? high : low) = fits ? count : count + 1;
      size_t middle = (low + high) / 2;
      count = fits ? std::max(count - std::min(stride, count), middle)
                   : std::min(count + stride, middle);
    }
    if (low > steps.size())
      return program.emitError("--recompute=")
             << mode.text << ": a rank needs " << (least + 999999) / 1000000
             << " MB with everything computed again that can be; use more "
                "ranks, --zero or a smaller batch";
    take(program, steps.take_front(low));
    return success();
  }

  /// Segments, first what is cheap, then all of them, by bytes saved for the
  /// time that is spent.
  static SmallVector<Step> orderSteps(const Recompute &recompute) {
    std::vector<std::pair<double, Step>> steps;
    Recompute::Tradeoff nothing = recompute.tradeoffOf({});
    for (size_t s = 0; s <= recompute.numSegments(); ++s) {
      Recompute::Tradeoff before = nothing;
      double limit = std::numeric_limits<double>::infinity();
      for (bool isFull : {false, true}) {
        Recompute::Ops again;
        addSegment(recompute, s, isFull, again);
        recompute.keepLater(again);
        Recompute::Tradeoff then = recompute.tradeoffOf(again);
        double ratio = static_cast<double>(before.keptBytes - then.keptBytes) /
                       std::max(then.seconds - before.seconds, 1e-12);
        if (then.keptBytes < before.keptBytes) {
          // In full, a segment comes after what is cheap in it.
          limit = std::min(limit, ratio);
          steps.push_back({limit, {s, isFull}});
          before = then;
        }
      }
    }
    llvm::stable_sort(
        steps, [](const auto &a, const auto &b) { return a.first > b.first; });
    return llvm::map_to_vector(steps,
                               [](const auto &step) { return step.second; });
  }

  PredictPeak predict;
};

} // namespace

std::unique_ptr<Pass>
ax::createRecomputeForward(RecomputeForwardOptions options,
                           PredictPeak predict) {
  return std::make_unique<RecomputeForward>(options, std::move(predict));
}
