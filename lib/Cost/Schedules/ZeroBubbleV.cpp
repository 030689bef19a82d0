//===- ZeroBubbleV.cpp - Two parts there and back, and no bubble ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Qi et al., arXiv 2401.10241 (ZB-V). Coordinate c of P has stages c and
// 2P - 1 - c, so the first coordinate has the first and the last stage, and the
// last one needs no transfer in the middle:
//
//   c 0   0       7
//   c 1     1   6
//   c 2      2 5
//   c 3       34
//
// If forward, backward and weights' actions of a part take equally long, and
// there are 2P - 1 micro-batches or more, nobody waits between its first and
// its last action; and no more is alive than with 1F1B: 2P parts, half as
// large. Each coordinate has the same number of them, where 1F1B's first has P
// and its last has 1.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/Schedule.h"

#include <algorithm>

namespace ax::cost {

namespace {

/// The order of one coordinate. It is made for as many micro-batches as fill
/// the pipeline; those that there are not are left out.
class OrderBuilder {
public:
  OrderBuilder(const Pipeline &pipeline, int64_t coordinate)
      : microBatches(pipeline.microBatches),
        most(std::max(microBatches, 2 * pipeline.coordinates - 1)),
        behind(pipeline.coordinates - coordinate), coordinate(coordinate) {}

  ActionOrder build(bool trains) {
    // Until what went first through all before this coordinate is back.
    repeat(2 * behind - 1, [&] { forward(0); });
    if (trains)
      train();
    else
      repeat(most, [&] {
        forward(1);
        forward(0);
      });
    return std::move(order);
  }

private:
  template <typename Fn>
  static void repeat(int64_t times, Fn fn) {
    for (int64_t i = 0; i < times; ++i)
      fn();
  }

  void train() {
    repeat(coordinate, [&] {
      forward(1);
      forward(0);
    });
    repeat(behind, [&] {
      forward(1);
      backward(1);
      weights(1);
    });
    while (next[1][0] < most) {
      forward(0);
      backward(0);
      weights(0);
      forward(1);
      backward(1);
      weights(1);
    }
    // What other coordinates wait for comes first.
    repeat(coordinate, [&] {
      backward(0);
      backward(1);
    });
    repeat(behind, [&] {
      backward(0);
      weights(0);
    });
    repeat(coordinate, [&] { weights(1); });
    repeat(coordinate, [&] { weights(0); });
  }

  void forward(int64_t part) { add(Action::Forward, part); }
  void backward(int64_t part) { add(Action::Backward, part); }
  void weights(int64_t part) { add(Action::Weights, part); }
  void add(Action action, int64_t part) {
    int64_t microBatch = next[part][static_cast<size_t>(action)]++;
    if (microBatch < microBatches)
      order.push_back({{action, part}, microBatch});
  }

  int64_t microBatches, most;
  /// How many coordinates there are from this one on.
  int64_t behind;
  int64_t coordinate;
  /// The next micro-batch, by part and action.
  int64_t next[2][3] = {};
  ActionOrder order;
};

class ZeroBubbleV : public PipelineSchedule {
  llvm::StringRef name() const final { return "zb-v"; }
  bool splitsBackward() const final { return true; }
  std::pair<int64_t, int64_t> parts() const final { return {2, 2}; }
  int64_t coordinateOf(int64_t stage, int64_t coordinates) const final {
    int64_t place = stage % coordinates;
    bool isBack = stage / coordinates % 2 == 1;
    return isBack ? coordinates - 1 - place : place;
  }
  int64_t liveBound(const Pipeline &pipeline, int64_t) const final {
    return 2 * std::min(pipeline.microBatches, pipeline.coordinates);
  }
  std::vector<ActionOrder> orders(const Pipeline &pipeline) const final {
    std::vector<ActionOrder> orders;
    for (int64_t c = 0; c < pipeline.coordinates; ++c)
      orders.push_back(OrderBuilder(pipeline, c).build(pipeline.trains()));
    return orders;
  }
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addZeroBubbleV(PipelineSchedules &schedules) {
  schedules.add(std::make_unique<ZeroBubbleV>());
}

} // namespace ax::cost
