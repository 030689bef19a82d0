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

/// The actions of one coordinate, updates left out.
using ActionOrder = std::vector<ScheduledAction>;

class PipelineSchedule {
public:
  virtual ~PipelineSchedule();

  /// What `--schedule` calls it, and plans.
  virtual llvm::StringRef name() const = 0;

  /// Whether gradients of weights that no earlier stage waits for are actions
  /// of their own.
  virtual bool splitsBackward() const { return false; }
  /// Of how many parts of the model, one after another, a coordinate may have
  /// one stage each: from `first` to `second`. Without `--virtual-stages` it is
  /// the first.
  virtual std::pair<int64_t, int64_t> parts() const { return {1, 1}; }
  /// Who does a stage. A part is as many stages as there are coordinates: part
  /// p begins with stage `p * coordinates`, and each coordinate has one of its.
  virtual int64_t coordinateOf(int64_t stage, int64_t coordinates) const {
    return stage % coordinates;
  }
  /// Why there is no such schedule for these sizes, as it goes on after its
  /// name
  /// ("takes an even number of micro-batches"); empty if there is one.
  virtual std::string findFault(const Pipeline &) const { return ""; }

  /// Of how many (part, micro-batch) pairs activations may be alive on a
  /// coordinate at a time: those whose forward action began and whose last
  /// action has not ended.
  virtual int64_t liveBound(const Pipeline &pipeline,
                            int64_t coordinate) const = 0;
  /// For each coordinate its order: each action that there is once, the
  /// micro-batches of one kind and part from 0 up, and so that nobody waits for
  /// ever.
  virtual std::vector<ActionOrder> orders(const Pipeline &pipeline) const = 0;
  /// For how many micro-batches at a time a coordinate keeps what actions of
  /// one kind leave for its others; if not said otherwise, as few as `order`
  /// takes, which is what `orders` gave for that coordinate.
  virtual int64_t slots(const Pipeline &pipeline, int64_t coordinate,
                        ActionKind kind, const ActionOrder &order) const;
};

/// The schedules by name.
class PipelineSchedules {
public:
  static const PipelineSchedules &get();
  /// A Usage error for what is none: it lists those there are.
  llvm::Expected<const PipelineSchedule *> parse(llvm::StringRef name) const;
  /// Sorted.
  std::vector<llvm::StringRef> names() const;

  void add(std::unique_ptr<PipelineSchedule> schedule);

private:
  std::map<std::string, std::unique_ptr<PipelineSchedule>, std::less<>> byName;
};

/// What is wrong with the sizes for that schedule, as a Usage error.
llvm::Error check(const PipelineSchedule &schedule, const Pipeline &pipeline);

} // namespace ax::cost

#endif // AX_COST_SCHEDULE_H
