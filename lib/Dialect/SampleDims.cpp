//===- SampleDims.cpp - Where the batch is in results ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dimension is read as a mixed-radix number, of which the batch is a digit.
// Sharding rules say where each digit of an operand is in the results. Digits
// of size 1 are in no rule of a reshape, so that the place of a batch of 1 may
// be one of several: all of them are followed.
//
//===----------------------------------------------------------------------===//

#include "ax/Dialect/SampleDims.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

namespace {

/// A digit of one of several numbers: which, and how many positions of that
/// number there are before it.
using Place = std::pair<int64_t, int64_t>;
using Places = llvm::SmallSetVector<Place, 2>;

class BatchTracker {
public:
  explicit BatchTracker(int64_t batch) : batch(batch) {}

  void begin(Value input) { places[input].insert({0, 1}); }
  void follow(Operation *op);
  std::optional<int64_t> getDim(Value value) const;

private:
  Places locate(ArrayRef<int64_t> sizes, int64_t before) const;
  void followReshape(ReshapeOp op);
  void followRule(Operation *op, const Rule &rule);

  int64_t batch;
  llvm::DenseMap<Value, Places> places;
};

} // namespace

/// Where the batch can be among numbers of these sizes, slowest first, that
/// together count as far as `before` before they count samples. A batch of 1
/// is in numbers of 1 rather than at the edges of others. Where nothing is
/// counted, it is nowhere.
Places BatchTracker::locate(ArrayRef<int64_t> sizes, int64_t before) const {
  Places exact, within;
  if (before == 0 || llvm::is_contained(sizes, 0))
    return {};
  int64_t slower = 1;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (before % slower == 0 && slower * size % (before * batch) == 0) {
      Place place = {static_cast<int64_t>(i), before / slower};
      (size == batch ? exact : within).insert(place);
    }
    slower *= size;
  }
  return exact.empty() ? within : exact;
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

void BatchTracker::followReshape(ReshapeOp op) {
  ArrayRef<int64_t> from = tensorType(op.getOperand()).getShape();
  Places made;
  for (auto [dim, before] : places.lookup(op.getOperand())) {
    Places found = locate(tensorType(op.getResult()).getShape(),
                          product(from.take_front(dim)) * before);
    made.insert(found.begin(), found.end());
  }
  places[op.getResult()] = made;
}

static SmallVector<int64_t> sizesOf(const Rule &rule,
                                    const std::vector<int> &factors) {
  SmallVector<int64_t> sizes;
  for (int factor : factors)
    sizes.push_back(rule.factors[factor].size);
  return sizes;
}

void BatchTracker::followRule(Operation *op, const Rule &rule) {
  // Who replaces some elements leaves the others where they are.
  bool keepsWhole = isa<ScatterElementsOp, ScatterNDOp>(op);
  for (auto [operand, value] : llvm::enumerate(op->getOperands()))
    for (auto [dim, before] : places.lookup(value)) {
      const std::vector<int> &factors = rule.operands[operand][dim];
      for (auto [digit, rest] : locate(sizesOf(rule, factors), before)) {
        int factor = factors[digit];
        FactorKind kind = rule.factors[factor].kind;
        if (kind != FactorKind::Parallel &&
            !(keepsWhole && kind == FactorKind::Whole))
          continue;
        for (auto [map, result] :
             llvm::zip_equal(rule.results, op->getResults()))
          for (auto [to, others] : llvm::enumerate(map)) {
            auto at = llvm::find(others, factor);
            if (at == others.end())
              continue;
            SmallVector<int64_t> sizes = sizesOf(rule, others);
            int64_t slower =
                product(ArrayRef(sizes).take_front(at - others.begin()));
            places[result].insert({static_cast<int64_t>(to), slower * rest});
          }
      }
    }
}

void BatchTracker::follow(Operation *op) {
  if (llvm::none_of(op->getOperands(),
                    [&](Value value) { return places.contains(value); }))
    return;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    followReshape(reshape);
  else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
    followRule(op, ruled.getShardingRule());
}

std::optional<int64_t> BatchTracker::getDim(Value value) const {
  Places found = places.lookup(value);
  if (found.size() != 1 || found.front().second != 1)
    return std::nullopt;
  return found.front().first;
}

SmallVector<std::optional<int64_t>> ax::findSampleDims(ProgramOp program) {
  return findPartDims(program,
                      program.getBody().front().getTerminator()->getOperands(),
                      program.getBatch().value_or(0));
}

SmallVector<std::optional<int64_t>>
ax::findPartDims(ProgramOp program, ValueRange values, int64_t numParts) {
  SmallVector<std::optional<int64_t>> dims(values.size());
  std::optional<int64_t> batch = program.getBatch();
  if (!batch || *batch < 1 || numParts < 1)
    return dims;
  BatchTracker tracker(numParts);
  for (BlockArgument input : program.getArguments()) {
    RankedTensorType type = tensorType(input);
    if (program.isBatched(input.getArgNumber()) && type.getRank() > 0 &&
        type.getDimSize(0) == *batch)
      tracker.begin(input);
  }
  Block &body = program.getBody().front();
  for (Operation &op : body.without_terminator())
    tracker.follow(&op);
  for (auto [dim, value] : llvm::zip_equal(dims, values))
    dim = tracker.getDim(value);
  return dims;
}
