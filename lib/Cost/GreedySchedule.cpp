//===- GreedySchedule.cpp - Whatever can be done first --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example: 1F1B of 2 coordinates and 3 micro-batches. Backward is preferred,
// a forward action takes 1 and a backward one 2, and 2 micro-batches may be
// alive on the first coordinate, 1 on the second:
//
//   time   0  1  2  3  4  5  6  7  8  9  10 11
//   c 0    F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2
//   c 1    .  F0 B0 B0 F1 B1 B1 F2 B2 B2
//
// At 2, the first coordinate could do F2, but two are alive: without the bound
// it would keep the activations of all, as GPipe does. At 6, it prefers B1,
// which is not ready before 7, so it does F2 in the meantime.
//
// How long actions take is a guess. The order is one that can be followed all
// the same, whatever they take: what an action needs comes before it in what
// was played here, so that nobody waits for ever.
//
//===----------------------------------------------------------------------===//
#include "GreedySchedule.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ax::cost {

namespace {

/// One schedule being played. A part's forward and backward actions, and those
/// of its weights, are each taken by micro-batches in their order, so that of
/// each kind of action only one can be next.
class Player {
public:
  Player(const GreedySchedule &schedule, const Pipeline &pipeline)
      : schedule(schedule), pipeline(pipeline),
        stages(pipeline.coordinates * pipeline.parts),
        ranks(pipeline.coordinates) {
    for (std::vector<double> &times : ended)
      times.assign(stages * pipeline.microBatches, never);
    for (int64_t r = 0; r < pipeline.coordinates; ++r) {
      ranks[r].bound = schedule.liveBound(pipeline, r);
      ranks[r].of(Action::Forward).actions = sequence(Action::Forward);
      if (pipeline.trains())
        ranks[r].of(Action::Backward).actions = sequence(Action::Backward);
    }
  }

  /// Of all coordinates the one that can go on soonest does, the first of equal
  /// ones. So nothing that is chosen later starts earlier, and all that ends by
  /// the time at which a coordinate goes on is known when it chooses. Each
  /// round asks all coordinates and does one action, so that there are as many
  /// rounds as actions.
  std::vector<ActionOrder> run() {
    for (;;) {
      double soonest = never;
      int64_t rank = -1;
      Action action = Action::Forward;
      for (int64_t r = 0; r < pipeline.coordinates; ++r) {
        auto [start, chosen] = choose(r);
        if (start < soonest) {
          soonest = start;
          rank = r;
          action = chosen;
        }
      }
      if (rank < 0)
        break;
      perform(rank, action, soonest);
    }
    std::vector<ActionOrder> orders;
    for (Rank &rank : ranks)
      orders.push_back(std::move(rank.order));
    return orders;
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  /// All but the update.
  static constexpr size_t numKinds = 3;

  /// Actions that are taken in order: those from `next` on are still to be
  /// done.
  struct Queue {
    std::vector<ScheduledAction> actions;
    size_t next = 0;
    bool isEmpty() const { return next == actions.size(); }
    const ScheduledAction &front() const { return actions[next]; }
  };
  struct Rank {
    std::array<Queue, numKinds> queues;
    ActionOrder order;
    double free = 0;
    int64_t live = 0, bound = 0;
    Queue &of(Action action) { return queues[static_cast<size_t>(action)]; }
  };

  /// Part by part, as many micro-batches at a time as there are coordinates:
  /// with 2 coordinates, 2 parts and 4 micro-batches, part 0 of 0 and 1, part 1
  /// of 0 and 1, part 0 of 2 and 3, part 1 of 2 and 3. By the time the first
  /// coordinate has begun a group, its first micro-batch has been through all
  /// others, and comes back for the next part. Larger groups would keep more
  /// alive, smaller ones would wait.
  std::vector<ScheduledAction> sequence(Action action) const {
    std::vector<ScheduledAction> result;
    int64_t group =
        pipeline.parts > 1 ? pipeline.coordinates : pipeline.microBatches;
    for (int64_t first = 0; first < pipeline.microBatches; first += group)
      for (int64_t p = 0; p < pipeline.parts; ++p)
        for (int64_t m = first;
             m < std::min(first + group, pipeline.microBatches); ++m) {
          int64_t part =
              action == Action::Backward ? pipeline.parts - 1 - p : p;
          result.push_back({{action, part}, m});
        }
    return result;
  }

  double &end(Action action, int64_t stage, int64_t microBatch) {
    return ended[static_cast<size_t>(action)]
                [stage * pipeline.microBatches + microBatch];
  }

  /// When what `action` needs is there.
  double readyAt(int64_t rank, const ScheduledAction &action) {
    int64_t stage = action.kind.part * pipeline.coordinates + rank;
    int64_t m = action.microBatch;
    if (action.kind.action == Action::Forward)
      return stage == 0 ? 0 : end(Action::Forward, stage - 1, m);
    if (action.kind.action == Action::Weights)
      return end(Action::Backward, stage, m);
    double forward = end(Action::Forward, stage, m);
    return stage + 1 == stages
               ? forward
               : std::max(forward, end(Action::Backward, stage + 1, m));
  }

  /// When `rank` can go on, and with what. What is preferred less is chosen
  /// only where it starts sooner: so it fills what would be a bubble, as
  /// zero-bubble schedules do with gradients of weights.
  std::pair<double, Action> choose(int64_t r) {
    Rank &rank = ranks[r];
    std::array<Action, numKinds> preferred = {Action::Backward, Action::Forward,
                                              Action::Weights};
    if (schedule.prefersForward())
      std::swap(preferred[0], preferred[1]);
    double best = never;
    Action chosen = Action::Forward;
    for (Action action : preferred) {
      Queue &queue = rank.of(action);
      if (queue.isEmpty() ||
          (action == Action::Forward && rank.live == rank.bound))
        continue;
      double start = std::max(rank.free, readyAt(r, queue.front()));
      if (start < best) {
        best = start;
        chosen = action;
      }
    }
    return {best, chosen};
  }

  double secondsOf(Action action) const {
    return action == Action::Forward    ? pipeline.forward
           : action == Action::Backward ? pipeline.backward
                                        : pipeline.weights;
  }

  void perform(int64_t r, Action action, double start) {
    Rank &rank = ranks[r];
    Queue &queue = rank.of(action);
    ScheduledAction done = queue.actions[queue.next++];
    rank.free = start + secondsOf(action);
    end(action, done.kind.part * pipeline.coordinates + r, done.microBatch) =
        rank.free;
    rank.order.push_back(done);
    // Activations are there from the forward action to the last one that reads
    // them, which is that of the weights where there is one.
    if (action == Action::Forward && pipeline.trains())
      ++rank.live;
    bool hasWeights = pipeline.weights > 0;
    if (action == (hasWeights ? Action::Weights : Action::Backward))
      --rank.live;
    if (action == Action::Backward && hasWeights)
      rank.of(Action::Weights)
          .actions.push_back(
              {{Action::Weights, done.kind.part}, done.microBatch});
  }

  const GreedySchedule &schedule;
  const Pipeline &pipeline;
  int64_t stages;
  std::vector<Rank> ranks;
  /// When each action ended, by kind, stage and micro-batch.
  std::array<std::vector<double>, numKinds> ended;
};

} // namespace

std::vector<ActionOrder>
GreedySchedule::orders(const Pipeline &pipeline) const {
  return Player(*this, pipeline).run();
}

} // namespace ax::cost
