//===- Moves.cpp - Which strategies are beside one ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Moves.h"

#include "ax/Cost/Schedule.h"

#include <numeric>

using namespace ax;
using namespace ax::search;

static std::vector<int64_t> primesOf(int64_t size) {
  std::vector<int64_t> primes;
  for (int64_t prime = 2; size > 1; ++prime) {
    if (prime * prime > size)
      prime = size;
    if (size % prime == 0)
      primes.push_back(prime);
    while (size % prime == 0)
      size /= prime;
  }
  return primes;
}

/// Takes back what has no use at the sizes that there are now; false where
/// that is fixed, or sizes make no sense.
static bool adapt(Strategy &s, const Space &space) {
  const Fixed &fixed = space.fixed;
  // The same as columns alone.
  if (!fixed.tensor && s.tensor.row > 1 && s.tensor.col == 1)
    return false;
  if (s.zero < 0 || s.zero > 3)
    return false;
  if (s.zero > 0 && s.data * s.context == 1) {
    if (fixed.zero)
      return false;
    s.zero = 0;
  }
  if (s.sequenceParallel && (s.tensor.col == 1 || s.tensor.row > 1)) {
    if (fixed.sequenceParallel)
      return false;
    s.sequenceParallel = false;
  }
  if (s.pipe == 1 && fixed.schedule)
    return false;
  if (s.pipe == 1)
    s.schedule = ScheduleChoice();
  // As few as the schedule can have are what it has without them.
  auto [fewest, most] = s.schedule.get().parts();
  if (s.pipe == 1 || s.parts() <= fewest || s.parts() > most)
    s.virtualStages.reset();
  // Slices are for pipelines, and keep what training needs meanwhile small.
  if (s.pipe == 1 && s.micro > 1 && !s.training) {
    if (fixed.micro)
      return true;
    s.micro = 1;
  }
  if (!fixed.context && s.context > 1 &&
      (!space.sequence || space.sequence % s.context))
    return false;
  // Ranks and slices that do not divide the batch would each do all of it;
  // of sizes that are given, the compiler tells.
  int64_t given = 1, chosen = 1;
  for (auto [size, isFixed] :
       {std::pair(s.micro, fixed.micro), std::pair(s.data, fixed.data),
        std::pair(s.tensor.depth, fixed.tensor)})
    (isFixed ? given : chosen) *= size;
  if (space.batch && space.batch / std::gcd(space.batch, given) % chosen)
    return false;
  llvm::Error error = s.checkSchedule();
  bool isPossible = !error;
  llvm::consumeError(std::move(error));
  return isPossible;
}

namespace {

/// A size of the mesh whose product with the others is the number of ranks.
struct AxisOfRanks {
  int64_t &(*of)(Strategy &);
  bool Fixed::*isFixed;
};

constexpr AxisOfRanks axes[] = {
    {[](Strategy &s) -> int64_t & { return s.data; }, &Fixed::data},
    {[](Strategy &s) -> int64_t & { return s.context; }, &Fixed::context},
    {[](Strategy &s) -> int64_t & { return s.pipe; }, &Fixed::pipe},
    {[](Strategy &s) -> int64_t & { return s.tensor.col; }, &Fixed::tensor},
    {[](Strategy &s) -> int64_t & { return s.tensor.row; }, &Fixed::tensor},
    {[](Strategy &s) -> int64_t & { return s.tensor.depth; }, &Fixed::tensor}};

/// Collects strategies that make sense.
class Neighbours {
public:
  Neighbours(const Strategy &strategy, const Space &space)
      : strategy(strategy), space(space), fixed(space.fixed) {}

  std::vector<Strategy> find() {
    moveFactors();
    changeSlices();
    changeTraining();
    if (!fixed.sequenceParallel)
      add([](Strategy &s) { s.sequenceParallel = !s.sequenceParallel; });
    return std::move(found);
  }

private:
  template <typename Fn>
  void add(Fn &&change) {
    Strategy other = strategy;
    change(other);
    if (adapt(other, space))
      found.push_back(std::move(other));
  }

  void moveFactors() {
    for (const AxisOfRanks &from : axes)
      for (const AxisOfRanks &to : axes) {
        if (&from == &to || fixed.*from.isFixed || fixed.*to.isFixed)
          continue;
        Strategy source = strategy;
        for (int64_t prime : primesOf(from.of(source)))
          add([&](Strategy &s) {
            from.of(s) /= prime;
            to.of(s) *= prime;
          });
      }
  }

  void changeSlices() {
    if (fixed.micro)
      return;
    for (int64_t prime : primesOf(space.batch ? space.batch : 2))
      add([&](Strategy &s) { s.micro *= prime; });
    for (int64_t prime : primesOf(strategy.micro))
      add([&](Strategy &s) { s.micro /= prime; });
  }

  void changeTraining() {
    if (!strategy.training)
      return;
    if (!fixed.zero)
      for (int64_t step : {-1, 1})
        add([&](Strategy &s) { s.zero += step; });
    if (!fixed.recompute)
      for (const char *mode : {"none", "selective", "full"})
        add([&](Strategy &s) {
          s.training->recompute = llvm::cantFail(RecomputeMode::parse(mode));
        });
    if (!fixed.schedule)
      for (llvm::StringRef name : cost::PipelineSchedules::get().names())
        add([&](Strategy &s) {
          s.schedule = llvm::cantFail(ScheduleChoice::parse(name));
        });
    for (int64_t step : {-1, 1})
      add([&](Strategy &s) { s.virtualStages = s.parts() + step; });
  }

  const Strategy &strategy;
  const Space &space;
  const Fixed &fixed;
  std::vector<Strategy> found;
};

} // namespace

std::vector<Strategy> search::findNeighbours(const Strategy &strategy,
                                             const Space &space) {
  return Neighbours(strategy, space).find();
}

std::vector<std::vector<Strategy>>
search::findBeginnings(const Strategy &strategy, const Space &space) {
  const Fixed &fixed = space.fixed;
  int64_t devices = space.devices / strategy.context;
  int64_t ofTensor = strategy.tensor.row * strategy.tensor.depth;
  std::vector<std::vector<Strategy>> groups;
  for (int64_t pipe = 1; pipe <= devices; ++pipe) {
    if (devices % pipe || (fixed.pipe && pipe != strategy.pipe))
      continue;
    int64_t perStage = devices / pipe;
    for (int64_t data = perStage; data >= 1; --data) {
      if (perStage % data || (fixed.data && data != strategy.data))
        continue;
      int64_t tensor = perStage / data;
      if (fixed.tensor && tensor != ofTensor * strategy.tensor.col)
        continue;
      std::vector<Strategy> &group = groups.emplace_back();
      // Four slices a stage leave it little to wait for.
      for (int64_t most : {4 * pipe, 2 * pipe, pipe, int64_t(1)}) {
        int64_t slices = most;
        while (space.batch && space.batch / data % slices)
          --slices;
        Strategy begin = strategy;
        begin.pipe = pipe;
        begin.data = data;
        if (!fixed.tensor)
          begin.tensor = TensorGrid{1, tensor, 1};
        if (!fixed.micro)
          begin.micro = pipe == 1 ? 1 : slices;
        if (adapt(begin, space))
          group.push_back(std::move(begin));
        if (pipe == 1 || fixed.micro)
          break;
      }
    }
  }
  return groups;
}
