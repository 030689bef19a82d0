//===- Schedule.cpp - Orders of a pipeline's actions ----------------------===//
#include "ax/Cost/Schedule.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace ax::cost {

static constexpr std::string_view names[] = {"gpipe", "1f1b", "interleaved",
                                             "zero-bubble"};

std::optional<SchedulePolicy> parsePolicy(std::string_view name) {
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<SchedulePolicy>(i);
  return std::nullopt;
}

std::string_view toString(SchedulePolicy policy) {
  return names[static_cast<size_t>(policy)];
}

int64_t liveBound(const Pipeline &pipeline, SchedulePolicy policy,
                  int64_t coordinate) {
  int64_t all = pipeline.microBatches * pipeline.parts;
  int64_t behind = pipeline.coordinates - coordinate - 1;
  switch (policy) {
  case SchedulePolicy::GPipe:
    return all;
  case SchedulePolicy::OneForwardOneBackward:
  case SchedulePolicy::ZeroBubble:
    return std::min(all, behind + 1);
  case SchedulePolicy::Interleaved:
    return std::min(all, 2 * behind +
                             (pipeline.parts - 1) * pipeline.coordinates + 1);
  }
  return all;
}

namespace {

class Scheduler {
public:
  Scheduler(const Pipeline &pipeline, SchedulePolicy policy)
      : pipeline(pipeline), policy(policy),
        stages(pipeline.coordinates * pipeline.parts),
        ranks(pipeline.coordinates) {
    for (char letter : {'F', 'B', 'W'})
      ended[index(letter)].assign(stages * pipeline.microBatches, never);
    for (int64_t r = 0; r < pipeline.coordinates; ++r) {
      ranks[r].bound = liveBound(pipeline, policy, r);
      ranks[r].pending[index('F')] = sequence(false);
      if (pipeline.backward > 0)
        ranks[r].pending[index('B')] = sequence(true);
    }
  }

  std::vector<std::vector<PipelineAction>> run() {
    // The coordinate that is free first goes on, if anything is ready then.
    for (;;) {
      double soonest = never;
      int64_t rank = -1;
      size_t kind = 0;
      for (int64_t r = 0; r < pipeline.coordinates; ++r) {
        auto [start, letter] = choose(r);
        if (start < soonest) {
          soonest = start;
          rank = r;
          kind = letter;
        }
      }
      if (rank < 0)
        break;
      perform(rank, kind, soonest);
    }
    std::vector<std::vector<PipelineAction>> orders;
    for (Rank &rank : ranks)
      orders.push_back(std::move(rank.order));
    return orders;
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static size_t index(char letter) {
    return letter == 'F' ? 0 : letter == 'B' ? 1 : 2;
  }

  struct Rank {
    /// By letter; from `next` on they are still to be done.
    std::vector<PipelineAction> pending[3];
    size_t next[3] = {0, 0, 0};
    std::vector<PipelineAction> order;
    double free = 0;
    int64_t live = 0, bound = 0;
  };

  /// Part by part, as many micro-batches at a time as there are coordinates.
  std::vector<PipelineAction> sequence(bool backward) const {
    std::vector<PipelineAction> result;
    int64_t group =
        pipeline.parts > 1 ? pipeline.coordinates : pipeline.microBatches;
    for (int64_t first = 0; first < pipeline.microBatches; first += group)
      for (int64_t p = 0; p < pipeline.parts; ++p)
        for (int64_t m = first;
             m < std::min(first + group, pipeline.microBatches); ++m)
          result.push_back(
              {backward ? 'B' : 'F', backward ? pipeline.parts - 1 - p : p, m});
    return result;
  }

  double &end(char letter, int64_t stage, int64_t microBatch) {
    return ended[index(letter)][stage * pipeline.microBatches + microBatch];
  }

  /// When what `action` needs is there.
  double readyAt(int64_t rank, const PipelineAction &action) {
    int64_t stage = action.part * pipeline.coordinates + rank;
    switch (action.letter) {
    case 'F':
      return stage == 0 ? 0 : end('F', stage - 1, action.microBatch);
    case 'B':
      return stage + 1 == stages
                 ? end('F', stage, action.microBatch)
                 : std::max(end('F', stage, action.microBatch),
                            end('B', stage + 1, action.microBatch));
    default:
      return end('B', stage, action.microBatch);
    }
  }

  /// When `rank` can go on, and with what.
  std::pair<double, size_t> choose(int64_t r) {
    Rank &rank = ranks[r];
    const char *preferred = policy == SchedulePolicy::GPipe ? "FBW" : "BFW";
    double best = never;
    size_t chosen = 0;
    for (const char *letter = preferred; *letter; ++letter) {
      size_t kind = index(*letter);
      if (rank.next[kind] == rank.pending[kind].size() ||
          (*letter == 'F' && rank.live == rank.bound))
        continue;
      double start =
          std::max(rank.free, readyAt(r, rank.pending[kind][rank.next[kind]]));
      if (start < best) {
        best = start;
        chosen = kind;
      }
    }
    return {best, chosen};
  }

  void perform(int64_t r, size_t kind, double start) {
    Rank &rank = ranks[r];
    PipelineAction action = rank.pending[kind][rank.next[kind]++];
    double seconds = kind == 0   ? pipeline.forward
                     : kind == 1 ? pipeline.backward
                                 : pipeline.weights;
    rank.free = start + seconds;
    end(action.letter, action.part * pipeline.coordinates + r,
        action.microBatch) = rank.free;
    rank.order.push_back(action);
    if (action.letter == 'F' && pipeline.backward > 0)
      ++rank.live;
    bool hasWeights = pipeline.weights > 0;
    if (action.letter == (hasWeights ? 'W' : 'B'))
      --rank.live;
    if (action.letter == 'B' && hasWeights)
      rank.pending[index('W')].push_back({'W', action.part, action.microBatch});
  }

  const Pipeline &pipeline;
  SchedulePolicy policy;
  int64_t stages;
  std::vector<Rank> ranks;
  /// By letter, stage and micro-batch.
  std::vector<double> ended[3];
};

} // namespace

std::vector<std::vector<PipelineAction>> makeSchedule(const Pipeline &pipeline,
                                                      SchedulePolicy policy) {
  return Scheduler(pipeline, policy).run();
}

} // namespace ax::cost
