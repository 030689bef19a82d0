//===- MeasureLink.cpp - How fast ranks reach each other ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MeasureLink.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace ax;
using sharding::StepKind;

namespace {

using Seconds = CaseRun::Seconds;

/// From what an activation of a few tokens has to a large weight, by a factor
/// of 4.
constexpr int64_t minBytes = 1 << 10, maxBytes = 64 << 20;
/// Each is measured so often, all others between: what disturbs for a while
/// does not disturb all times of one.
constexpr int numPasses = 3;
/// What a round takes at least, if its calls are not too many, and all rounds
/// of a pass at most, if they are not too few. The more calls, the less it
/// counts that ranks do not begin at the same time.
constexpr Seconds roundTime(0.01), passTime(0.04);
constexpr int64_t leastCalls = 4, mostCalls = 200;
constexpr int64_t leastRounds = 2, mostRounds = 10;
/// Where one takes so long, there is nothing new in larger ones.
constexpr Seconds longEnough(0.05);

struct Case {
  CaseKind kind;
  cost::LinkSample sample;
};

} // namespace

static StepKind stepOf(CaseKind kind) {
  switch (kind) {
  case CaseKind::AllGather:
    return StepKind::AllGather;
  case CaseKind::ReduceScatter:
    return StepKind::ReduceScatter;
  default:
    return StepKind::AllReduce;
  }
}

/// Returns the time of a call in a round, of the rank to which it is longest:
/// who comes late finds all that it waits for.
static llvm::Expected<Seconds> timeRound(CaseRun &run, Team &team,
                                         int64_t calls) {
  Seconds own = Seconds::max();
  if (llvm::Error error = run.time(calls, own))
    return error;
  auto longest = team.findLargest(own.count());
  if (!longest)
    return longest.takeError();
  return Seconds(*longest);
}

/// Returns the time of a call in the fastest round, the same on all ranks.
static llvm::Expected<Seconds> timeCase(CaseRun &run, Team &team) {
  if (llvm::Error error = run.issue())
    return error;
  if (llvm::Error error = run.complete())
    return error;
  auto best = timeRound(run, team, 1);
  if (!best)
    return best;
  Seconds once = std::max(*best, Seconds(1e-9));
  auto calls = std::clamp<int64_t>(static_cast<int64_t>(roundTime / once),
                                   leastCalls, mostCalls);
  auto rounds = std::clamp<int64_t>(
      static_cast<int64_t>(passTime / (once * calls)), leastRounds, mostRounds);
  for (int64_t round = 0; round < rounds; ++round) {
    auto took = timeRound(run, team, calls);
    if (!took)
      return took;
    best = std::min(*best, *took);
  }
  return best;
}

llvm::Expected<cost::LinkFit>
ax::measureLink(rt::Communicator &comm, rt::Device &device, Team &team,
                const std::shared_ptr<rt::Group> &group,
                const Reductions &reductions) {
  std::vector<Case> cases;
  auto measure = [&](Case &each) -> llvm::Error {
    CaseRun run(comm, device, group, each.kind,
                static_cast<int64_t>(each.sample.bytes));
    if (llvm::Error error = run.prepare(reductions))
      return error;
    auto took = timeCase(run, team);
    if (!took)
      return took.takeError();
    each.sample.bytes = static_cast<double>(run.numBytes());
    each.sample.seconds = std::min(each.sample.seconds, took->count());
    return llvm::Error::success();
  };
  for (CaseKind kind :
       {CaseKind::AllReduce, CaseKind::AllGather, CaseKind::ReduceScatter})
    for (int64_t bytes = minBytes; bytes <= maxBytes; bytes *= 4) {
      cases.push_back({kind,
                       {stepOf(kind), group->getSize(),
                        static_cast<double>(bytes), Seconds::max().count()}});
      if (llvm::Error error = measure(cases.back()))
        return error;
      if (Seconds(cases.back().sample.seconds) > longEnough)
        break;
    }
  for (int pass = 1; pass < numPasses; ++pass)
    for (Case &each : cases)
      if (llvm::Error error = measure(each))
        return error;
  // Who has few bytes could send as many as others: what took longer than more
  // of them was disturbed, or is not done well.
  std::vector<cost::LinkSample> samples;
  for (const Case &each : llvm::reverse(cases)) {
    bool hasLarger =
        !samples.empty() && samples.back().kind == each.sample.kind;
    double most = hasLarger ? samples.back().seconds : each.sample.seconds;
    samples.push_back(each.sample);
    samples.back().seconds = std::min(each.sample.seconds, most);
  }
  return cost::fitLink(samples);
}
