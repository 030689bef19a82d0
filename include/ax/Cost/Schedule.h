//===- Schedule.h - Orders of a pipeline's actions --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schedule says which coordinate of the pipeline does which stage, in which
// order each coordinate takes its actions, and for how many micro-batches it
// keeps what one of them leaves for another. Each file of lib/Cost/Schedules
// has one and is found there by the build: docs/add-a-schedule.md.
//
//===----------------------------------------------------------------------===//
#ifndef AX_COST_SCHEDULE_H
#define AX_COST_SCHEDULE_H

#include "ax/Dialect/ScheduledAction.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <vector>

namespace ax::cost {

/// What a schedule is made for: `coordinates * parts` stages.
struct Pipeline {
  int64_t coordinates = 1, parts = 1, microBatches = 1;
  /// How long the actions of a part take, beside one another. 0: there are
  /// none; without a backward action the program is no training.
  double forward = 1, backward = 2, weights = 0;

  bool trains() const { return backward > 0; }
};

/// The actions of one coordinate in their order, without updates.
using ActionOrder = std::vector<ScheduledAction>;

class PipelineSchedule {
public:
  virtual ~PipelineSchedule();

  /// Returns the name by which `--schedule` and plans call it.
  virtual llvm::StringRef name() const = 0;

  /// Returns whether gradients of weights, for which no earlier stage waits,
  /// are actions of their own.
  virtual bool splitsBackward() const { return false; }
  /// Returns the least and the largest number of parts that the model may be
  /// cut into, one after another, of each of which a coordinate has one stage.
  /// Without `--virtual-stages` the least is taken.
  virtual std::pair<int64_t, int64_t> parts() const { return {1, 1}; }
  /// Returns which coordinate does a stage. A part is as many stages as there
  /// are coordinates: part p begins with stage `p * coordinates`, and each
  /// coordinate has one stage of it.
  virtual int64_t coordinateOf(int64_t stage, int64_t coordinates) const {
    return stage % coordinates;
  }
  /// Returns why there is no such schedule for these sizes, as the words behind
  /// its name ("takes an even number of micro-batches"); empty where there is
  /// one.
  virtual std::string findFault(const Pipeline &) const { return ""; }

  /// Returns of how many (part, micro-batch) pairs activations may be alive on
  /// a coordinate at a time: such whose forward action has begun and whose last
  /// action has not ended. Of 1F1B on the first of 4 coordinates that is 4.
  virtual int64_t liveBound(const Pipeline &pipeline,
                            int64_t coordinate) const = 0;
  /// Returns the order of each coordinate, such that each action is there once,
  /// the micro-batches of one kind and part come from 0 up, and nobody waits
  /// for ever.
  virtual std::vector<ActionOrder> orders(const Pipeline &pipeline) const = 0;
  /// Returns for how many micro-batches at a time a coordinate keeps what
  /// actions of one kind leave for its others: as few as `order` needs, which
  /// is what `orders` gave for that coordinate, if a schedule does not say
  /// otherwise.
  virtual int64_t slots(const Pipeline &pipeline, int64_t coordinate,
                        ActionKind kind, const ActionOrder &order) const;
};

/// The schedules by name.
class PipelineSchedules {
public:
  static const PipelineSchedules &get();
  /// Returns the schedule of that name; a Usage error, which lists those that
  /// there are, where there is none.
  llvm::Expected<const PipelineSchedule *> parse(llvm::StringRef name) const;
  /// Returns all names, sorted.
  std::vector<llvm::StringRef> names() const;

  void add(std::unique_ptr<PipelineSchedule> schedule);

private:
  std::map<std::string, std::unique_ptr<PipelineSchedule>, std::less<>> byName;
};

/// Returns what is wrong with the sizes for that schedule as a Usage error.
llvm::Error check(const PipelineSchedule &schedule, const Pipeline &pipeline);

} // namespace ax::cost

#endif // AX_COST_SCHEDULE_H
