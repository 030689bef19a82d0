//===- RecomputeForward.cpp - What is kept for the backward pass ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chen et al., arXiv 1604.06174 (between checkpoints all is computed again);
// Korthikanti et al., arXiv 2205.05198 (only what is cheap per byte).
//
//===----------------------------------------------------------------------===//
#include "Recompute.h"
#include "ax/Cost/StageCost.h"
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

/// `2GiB`, `1.5 GB`, `500MB`, `4096`.
std::optional<int64_t> parseBytes(StringRef text) {
  size_t end = text.find_first_not_of("0123456789.");
  double number;
  if (text.take_front(end).getAsDouble(number) || !(number > 0))
    return std::nullopt;
  double unit = llvm::StringSwitch<double>(
                    end == StringRef::npos ? "" : text.drop_front(end).trim())
                    .Cases({"", "B"}, 1)
                    .Cases({"kB", "KB"}, 1e3)
                    .Case("MB", 1e6)
                    .Case("GB", 1e9)
                    .Case("KiB", 1 << 10)
                    .Case("MiB", 1 << 20)
                    .Case("GiB", 1 << 30)
                    .Default(0);
  double bytes = number * unit;
  if (!(bytes >= 1 && bytes < 1e18))
    return std::nullopt;
  return static_cast<int64_t>(bytes);
}

struct RecomputeForward : ax::impl::RecomputeForwardBase<RecomputeForward> {
  using RecomputeForwardBase::RecomputeForwardBase;
  RecomputeForward(const RecomputeForwardOptions &options, PredictPeak predict)
      : RecomputeForwardBase(options), predict(std::move(predict)) {}

  void runOnOperation() final {
    if (mode == "none")
      return;
    for (ProgramOp program :
         llvm::to_vector(getOperation().getBody().getOps<ProgramOp>()))
      if (failed(run(program)))
        return signalPassFailure();
  }

  LogicalResult run(ProgramOp program) {
    Recompute recompute(program);
    if (!recompute.hasBackward())
      return success();
    if (StringRef(mode).starts_with("budget:"))
      return fitBudget(program, StringRef(mode).drop_front(7));
    Recompute::Ops again;
    if (mode == "selective" || mode == "full") {
      for (size_t s = 0; s <= recompute.numSegments(); ++s)
        addSegment(recompute, s, mode == "full", again);
    } else if (failed(addMatching(program, recompute, again))) {
      return failure();
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
    auto glob = llvm::GlobPattern::create(mode);
    if (!glob)
      return program.emitError("--checkpoint=")
             << mode << ": " << llvm::toString(glob.takeError());
    bool any = false;
    for (Operation *op : recompute.getForward()) {
      if (llvm::none_of(getNodeNames(op),
                        [&](StringRef name) { return glob->match(name); }))
        continue;
      any = true;
      if (!Recompute::mustBeKept(op))
        again.insert(op);
    }
    if (!any)
      return program.emitError("--checkpoint=")
             << mode
             << " is neither none, selective, full nor budget:SIZE, and no "
                "node is called so";
    return success();
  }

  FailureOr<int64_t> peakOf(ProgramOp program) {
    if (!predict)
      return cost::programBytes(program, getMesh(program));
    return predict(getOperation());
  }

  /// Bytes of the whole plan with the first `count` steps taken.
  using Step = std::pair<size_t, bool>;
  FailureOr<int64_t> peakAfter(ProgramOp program, ArrayRef<Step> steps) {
    ProgramOp trial = program.clone();
    OpBuilder(program).insert(trial);
    take(trial, steps);
    // Alone in the plan, under its own name.
    Operation *original = program.getOperation();
    Block *block = original->getBlock();
    auto after = std::next(original->getIterator());
    original->remove();
    FailureOr<int64_t> bytes = peakOf(trial);
    block->getOperations().insert(after, original);
    trial.erase();
    return bytes;
  }

  static void take(ProgramOp program, ArrayRef<Step> steps) {
    Recompute recompute(program);
    Recompute::Ops again;
    for (auto [segment, isFull] : steps)
      addSegment(recompute, segment, isFull, again);
    recompute.keepLater(again);
    recompute.apply(again);
  }

  LogicalResult fitBudget(ProgramOp program, StringRef text) {
    std::optional<int64_t> budget = parseBytes(text);
    if (!budget)
      return program.emitError("--checkpoint=budget:")
             << text
             << ": give a size, as budget:2GiB or budget:500MB (units: B, "
                "kB, MB, GB, KiB, MiB, GiB)";
    SmallVector<Step> steps = orderSteps(Recompute(program));
    // The fewest that fit.
    size_t low = 0, high = steps.size() + 1;
    int64_t least = 0;
    while (low < high) {
      // All of them first: whether it fits at all.
      size_t count = least ? (low + high) / 2 : steps.size();
      FailureOr<int64_t> bytes =
          peakAfter(program, ArrayRef(steps).take_front(count));
      if (failed(bytes))
        return failure();
      least = least ? std::min(least, *bytes) : *bytes;
      if (*bytes <= *budget)
        high = count;
      else
        low = count + 1;
    }
    if (low > steps.size())
      return program.emitError("--checkpoint=budget:")
             << text << ": a rank needs " << (least + 999999) / 1000000
             << " MB with everything computed again that can be; use more "
                "ranks, --zero or a smaller batch";
    take(program, ArrayRef(steps).take_front(low));
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
