//===- RunningStatistics.cpp - What states become of batches --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RunningStatistics.h"

#include "Emitter.h"

using namespace ax;
using namespace ax::import;

/// The sum over parts of `fresh`, each times its weight, of the shape `shape`.
static Value weighted(Emitter &b, Value fresh, ArrayRef<double> weights,
                      Shape shape) {
  if (weights.size() == 1)
    return b.mul(b.reshape(fresh, shape), weights.front());
  shape.insert(shape.begin(), static_cast<int64_t>(weights.size()));
  Shape column(shape.size(), 1);
  column[0] = shape[0];
  Value factors =
      b.cast(b.constant(HostTensor::fromValues<double>(column, weights)),
             Emitter::typeOf(fresh));
  return b.reduce(ReduceOpKind::sum, b.mul(b.reshape(fresh, shape), factors),
                  {0}, /*keepDims=*/false);
}

Value ax::import::runOver(Emitter &b, Value old, ArrayRef<Observation> calls,
                          int64_t numParts) {
  std::vector<std::vector<double>> weights(calls.size(),
                                           std::vector<double>(numParts));
  double left = 1;
  for (int64_t part = numParts; part-- > 0;)
    for (size_t call = calls.size(); call-- > 0;) {
      weights[call][part] = (1 - calls[call].momentum) * left;
      left *= calls[call].momentum;
    }
  // Parts of a batch have parts of what is added, but all of what was there.
  Value added;
  for (const auto &[call, ofParts] : llvm::zip_equal(calls, weights)) {
    if (!old || !call.fresh)
      return {};
    Value more = weighted(b, call.fresh, ofParts, Emitter::shapeOf(old));
    added = added ? b.add(added, more) : more;
  }
  return b.add(b.mul(old, left), b.cast(added, Emitter::typeOf(old)));
}

void Emitter::observe(Value old, int64_t numParts, Observation seen) {
  auto state = states.find(old);
  if (state == states.end())
    return;
  const std::string &name = state->second.name;
  auto found = llvm::find_if(
      updates, [&](const StatisticUpdate &each) { return each.state == name; });
  if (found == updates.end())
    found = updates.insert(found, {name, {}, numParts, {}});
  if (found->numParts != numParts)
    fail(ExitCode::Usage,
         "state '" + name +
             "' gathers statistics of parts of the batch and of an input that "
             "has none (--unbatched): use --batchnorm=train or frozen");
  found->calls.push_back(seen);
  found->value =
      runOver(*this, old, found->calls, std::max<int64_t>(numParts, 1));
}

int64_t Emitter::batchPartsOf(Value value) const {
  if (!value)
    return batchParts;
  for (const std::string &input : inputsBehind(value))
    if (!llvm::is_contained(unbatched, input))
      return batchParts;
  return 0;
}
