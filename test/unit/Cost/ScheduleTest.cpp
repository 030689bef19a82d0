//===- ScheduleTest.cpp - Orders of a pipeline's actions ------------------===//
#include "ax/Cost/Schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace ax::cost {

static std::string text(const std::vector<PipelineAction> &order) {
  std::string result;
  for (const PipelineAction &action : order) {
    result += (result.empty() ? "" : " ") + std::string(1, action.letter) +
              std::to_string(action.microBatch);
    if (action.part)
      result += "." + std::to_string(action.part);
  }
  return result;
}

static std::vector<std::string> orders(const Pipeline &pipeline,
                                       SchedulePolicy policy) {
  std::vector<std::string> result;
  for (const auto &order : makeSchedule(pipeline, policy))
    result.push_back(text(order));
  return result;
}

TEST(Schedule, OneForwardOneBackward) {
  EXPECT_EQ(orders({3, 1, 4}, SchedulePolicy::OneForwardOneBackward),
            (std::vector<std::string>{"F0 F1 F2 B0 F3 B1 B2 B3",
                                      "F0 F1 B0 F2 B1 F3 B2 B3",
                                      "F0 B0 F1 B1 F2 B2 F3 B3"}));
}

TEST(Schedule, GPipe) {
  EXPECT_EQ(
      orders({2, 1, 3}, SchedulePolicy::GPipe),
      (std::vector<std::string>{"F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"}));
}

TEST(Schedule, ForwardOnly) {
  Pipeline pipeline{2, 1, 3};
  pipeline.backward = 0;
  EXPECT_EQ(orders(pipeline, SchedulePolicy::OneForwardOneBackward),
            (std::vector<std::string>{"F0 F1 F2", "F0 F1 F2"}));
}

/// Every action once, what it needs before it on its own coordinate, and never
/// more alive than the bound.
TEST(Schedule, KeepsItsBounds) {
  for (auto policy :
       {SchedulePolicy::GPipe, SchedulePolicy::OneForwardOneBackward,
        SchedulePolicy::Interleaved, SchedulePolicy::ZeroBubble})
    for (int64_t coordinates : {1, 2, 3, 4, 8})
      for (int64_t parts : {1, 2, 3})
        for (int64_t microBatches : {1, 2, 4, 8, 12}) {
          bool hasParts = policy == SchedulePolicy::Interleaved;
          if (hasParts ? microBatches % coordinates != 0 : parts > 1)
            continue;
          Pipeline pipeline{coordinates, parts, microBatches};
          if (policy == SchedulePolicy::ZeroBubble)
            pipeline.backward = pipeline.weights = 1;
          char last = pipeline.weights > 0 ? 'W' : 'B';
          auto made = makeSchedule(pipeline, policy);
          for (int64_t c = 0; c < coordinates; ++c) {
            std::string what =
                std::string(toString(policy)) + " " + std::to_string(c) +
                " of " + std::to_string(coordinates) + ": " + text(made[c]);
            std::set<std::tuple<char, int64_t, int64_t>> done;
            int64_t live = 0;
            for (const PipelineAction &action : made[c]) {
              EXPECT_TRUE(
                  done.insert({action.letter, action.part, action.microBatch})
                      .second)
                  << what;
              if (action.letter != 'F') {
                char before = action.letter == 'B' ? 'F' : 'B';
                EXPECT_TRUE(
                    done.count({before, action.part, action.microBatch}))
                    << what;
              }
              live += action.letter == 'F';
              EXPECT_LE(live, liveBound(pipeline, policy, c)) << what;
              live -= action.letter == last;
            }
            EXPECT_EQ(done.size(), static_cast<size_t>(parts * microBatches *
                                                       (last == 'W' ? 3 : 2)))
                << what;
          }
        }
}

} // namespace ax::cost
