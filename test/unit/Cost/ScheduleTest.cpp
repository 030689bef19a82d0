//===- ScheduleTest.cpp - Orders of a pipeline's actions ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Schedule.h"
#include "ax/Cost/Simulate.h"
#include "ax/Support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ax::cost {

static const PipelineSchedule &named(llvm::StringRef name) {
  return *llvm::cantFail(PipelineSchedules::get().parse(name));
}

static std::string text(const ActionOrder &order) {
  std::string result;
  for (const ScheduledAction &action : order)
    result += (result.empty() ? "" : " ") + toString(action);
  return result;
}

static std::vector<std::string> orders(llvm::StringRef name,
                                       const Pipeline &pipeline) {
  std::vector<std::string> result;
  for (const ActionOrder &order : named(name).orders(pipeline))
    result.push_back(text(order));
  return result;
}

TEST(Schedule, OneForwardOneBackward) {
  EXPECT_EQ(orders("1f1b", {3, 1, 4}),
            (std::vector<std::string>{"F0 F1 F2 B0 F3 B1 B2 B3",
                                      "F0 F1 B0 F2 B1 F3 B2 B3",
                                      "F0 B0 F1 B1 F2 B2 F3 B3"}));
}

TEST(Schedule, GPipe) {
  EXPECT_EQ(
      orders("gpipe", {2, 1, 3}),
      (std::vector<std::string>{"F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"}));
}

TEST(Schedule, ForwardOnly) {
  EXPECT_EQ(orders("1f1b", {2, 1, 3, 1, 0}),
            (std::vector<std::string>{"F0 F1 F2", "F0 F1 F2"}));
}

TEST(Schedule, UnknownNames) {
  auto none = PipelineSchedules::get().parse("zero-buble");
  ASSERT_FALSE(bool(none));
  std::string message = describeError(none.takeError()).message;
  EXPECT_NE(message.find("there is no schedule 'zero-buble', but 1f1b, gpipe"),
            std::string::npos);
  EXPECT_NE(message.find("did you mean 'zero-bubble'?"), std::string::npos);
}

namespace {

/// One schedule at one size, looked at from all sides.
class Examined {
public:
  Examined(const PipelineSchedule &schedule, const Pipeline &pipeline)
      : schedule(schedule), pipeline(pipeline),
        orders(schedule.orders(pipeline)) {}

  void examine() {
    ASSERT_EQ(orders.size(), size_t(pipeline.coordinates));
    for (int64_t c = 0; c < pipeline.coordinates; ++c) {
      SCOPED_TRACE(schedule.name().str() + " " + std::to_string(c) + " of " +
                   std::to_string(pipeline.coordinates) + ": " +
                   text(orders[c]));
      examineOrder(c);
      examineSlots(c);
    }
    examineEnd();
  }

private:
  using Step = std::tuple<Action, int64_t, int64_t>;

  static Step stepOf(const ScheduledAction &action) {
    return {action.kind.action, action.kind.part, action.microBatch};
  }
  bool hasWeights() const { return pipeline.weights > 0; }
  Action lastAction() const {
    return hasWeights()        ? Action::Weights
           : pipeline.trains() ? Action::Backward
                               : Action::Forward;
  }
  int64_t numStages() const { return pipeline.coordinates * pipeline.parts; }
  int64_t stageOf(int64_t coordinate, int64_t part) const {
    int64_t stage = part * pipeline.coordinates;
    while (schedule.coordinateOf(stage, pipeline.coordinates) != coordinate)
      ++stage;
    return stage;
  }

  /// Every action once and by micro-batches, after what it needs of its own
  /// part, and never more alive than the bound.
  void examineOrder(int64_t c) {
    std::set<Step> done;
    int64_t live = 0;
    for (const ScheduledAction &action : orders[c]) {
      auto [kind, part, m] = stepOf(action);
      EXPECT_TRUE(done.insert({kind, part, m}).second);
      if (m > 0) {
        EXPECT_TRUE(done.count({kind, part, m - 1}));
      }
      if (kind != Action::Forward) {
        Action before =
            kind == Action::Weights ? Action::Backward : Action::Forward;
        EXPECT_TRUE(done.count({before, part, m}));
      }
      live += kind == Action::Forward;
      if (pipeline.trains()) {
        EXPECT_LE(live, schedule.liveBound(pipeline, c));
      }
      live -= kind == lastAction();
    }
    size_t kinds = static_cast<size_t>(lastAction()) + 1;
    EXPECT_EQ(done.size(),
              size_t(pipeline.parts * pipeline.microBatches) * kinds);
  }

  /// What an action leaves is there until its coordinate's last use of it.
  void examineSlots(int64_t c) {
    std::map<Step, int64_t> place;
    for (const ScheduledAction &action : orders[c])
      place.emplace(stepOf(action), place.size());
    auto on = [&](int64_t stage) {
      return stage >= 0 && stage < numStages() &&
             schedule.coordinateOf(stage, pipeline.coordinates) == c;
    };
    for (auto [step, at] : place) {
      auto [kind, part, m] = step;
      int64_t stage = stageOf(c, part);
      std::vector<Step> users = {{Action::Backward, part, m},
                                 {Action::Weights, part, m}};
      if (kind == Action::Forward && on(stage + 1))
        users.push_back({kind, (stage + 1) / pipeline.coordinates, m});
      if (kind == Action::Backward && on(stage - 1))
        users.push_back({kind, (stage - 1) / pipeline.coordinates, m});
      int64_t slots = schedule.slots(pipeline, c, {kind, part}, orders[c]);
      auto next = place.find({kind, part, m + slots});
      if (next == place.end())
        continue;
      for (const Step &user : users)
        if (auto used = place.find(user); used != place.end()) {
          EXPECT_LT(used->second, next->second)
              << "slots " << slots << " of " << toString({{kind, part}, m});
        }
    }
  }

  /// With two slots for what is sent, as plans have them.
  void examineEnd() {
    std::vector<SimulatedStage> stages(pipeline.coordinates);
    auto listOf = [&](Action kind, int64_t part) {
      return part * 3 + static_cast<int64_t>(kind);
    };
    for (int64_t c = 0; c < pipeline.coordinates; ++c) {
      stages[c].seconds.assign(pipeline.parts * 3, 1);
      for (const ScheduledAction &action : orders[c])
        stages[c].order.push_back({action.microBatch,
                                   listOf(action.kind.action, action.kind.part),
                                   toString(action)});
    }
    std::vector<SimulatedTransfer> transfers;
    auto connect = [&](Action kind, int64_t from, int64_t to) {
      auto at = [&](int64_t stage) {
        return schedule.coordinateOf(stage, pipeline.coordinates);
      };
      if (at(from) != at(to))
        transfers.push_back({at(from), at(to), 2, 0,
                             listOf(kind, from / pipeline.coordinates),
                             listOf(kind, to / pipeline.coordinates)});
    };
    for (int64_t s = 0; s + 1 < numStages(); ++s) {
      connect(Action::Forward, s, s + 1);
      if (pipeline.trains())
        connect(Action::Backward, s + 1, s);
    }
    Simulation simulation = simulate(stages, transfers);
    EXPECT_TRUE(simulation.stuck.empty())
        << schedule.name().str() << ": " << simulation.stuck.front();
    EXPECT_EQ(simulation.deadlock, "") << schedule.name().str();
  }

  const PipelineSchedule &schedule;
  const Pipeline &pipeline;
  std::vector<ActionOrder> orders;
};

} // namespace

/// Of every schedule that there is, at every size that it takes.
TEST(Schedule, KeepsWhatItSays) {
  for (llvm::StringRef name : PipelineSchedules::get().names()) {
    const PipelineSchedule &schedule = named(name);
    int examined = 0;
    for (int64_t coordinates : {2, 3, 4, 8})
      for (int64_t parts : {1, 2, 3})
        for (int64_t microBatches : {1, 2, 3, 4, 7, 8, 12, 24})
          for (bool trains : {true, false}) {
            Pipeline pipeline{coordinates, parts, microBatches};
            if (!trains)
              pipeline.backward = 0;
            else if (schedule.splitsBackward())
              pipeline.backward = pipeline.weights = 1;
            if (llvm::Error fault = check(schedule, pipeline)) {
              llvm::consumeError(std::move(fault));
              continue;
            }
            ++examined;
            Examined(schedule, pipeline).examine();
          }
    EXPECT_GT(examined, 20) << name.str();
  }
}

/// Each part's stages are on all coordinates.
TEST(Schedule, PartsAreOnAllCoordinates) {
  for (llvm::StringRef name : PipelineSchedules::get().names())
    for (int64_t coordinates : {1, 2, 3, 8})
      for (int64_t part = 0; part < 3; ++part) {
        std::set<int64_t> found;
        for (int64_t i = 0; i < coordinates; ++i)
          found.insert(
              named(name).coordinateOf(part * coordinates + i, coordinates));
        EXPECT_EQ(found.size(), size_t(coordinates)) << name.str();
        EXPECT_GE(*found.begin(), 0);
        EXPECT_LT(*found.rbegin(), coordinates);
      }
}

} // namespace ax::cost
