//===- StepFeed.h - Steps of training, ahead of their time ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While a step runs, the next one's inputs go up to devices that have memory of
// their own, and the batch behind that is read:
//
//   read       1  2  |  3        |  4        |
//   go up      1     |  2        |  3        |
//   run              |  1        |  2        |
//   between                      *           *
//
// No step begins before it is told to: whoever looks at states, or decides by
// the last step's outputs whether there is a next one, finds all as that has
// left it.
//
// Where there are several processes, they tell each other, while a step runs,
// what is wrong with the rows of the next batch that each reads, and by which
// signal one was asked to stop: so all of them end behind the same step, with
// the same exit code.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SESSION_STEPFEED_H
#define AX_LIB_SESSION_STEPFEED_H

#include "Batches.h"

#include "ax/Runtime/Executor.h"
#include "ax/Support/Error.h"

#include <array>
#include <chrono>

namespace ax {

class StepFeed {
public:
  struct Step {
    std::unique_ptr<rt::Request> request;
    /// Where the data is behind its batch, and the numbers of its samples.
    Batches::Place end;
    std::vector<int64_t> samples;
    std::chrono::steady_clock::time_point begin;
    /// Whether some label counts of those that are read here.
    bool counts = true;
    /// What is wrong with its batch.
    std::optional<ErrorDescription> fault;
  };

  /// Of the steps `first` + 1 to `last`. Where `needsLabels`, a batch of which
  /// no label counts is an error.
  static llvm::Expected<StepFeed> create(rt::Executor &executor,
                                         Batches &batches, int64_t first,
                                         int64_t last, bool needsLabels);

  /// Lets the next step begin, which there must be, after the end of the one
  /// before. An error of its batch is one each time. `ownSignal`: the one
  /// that has asked this process to stop, or 0.
  llvm::Error begin(int ownSignal);
  /// SIGTERM if that had asked any process to stop when the last step began,
  /// SIGINT if another signal had, else 0.
  int getStopSignal() const { return stopSignal; }
  /// Whether that has no error which is known already.
  bool mayBegin() const {
    return begun < last && begun < read && !at(begun).fault;
  }
  bool isRunning() const { return isBegun; }
  /// Waits for the end of the step that has begun.
  llvm::Error finish();
  /// The one that has begun last.
  const Step &getStep() const { return at(begun - 1); }

private:
  StepFeed(rt::Executor &executor, Batches &batches, int64_t first,
           int64_t last, bool needsLabels)
      : executor(executor), batches(batches), last(last),
        needsLabels(needsLabels), read(first), announced(first), begun(first),
        agreed(first) {}
  void readUntil(int64_t number);
  llvm::Error readNext(Step &step);
  llvm::Error agreeOnNext(int ownSignal);
  const Step &at(int64_t number) const {
    return steps[static_cast<size_t>(number) % steps.size()];
  }
  Step &at(int64_t number) {
    return steps[static_cast<size_t>(number) % steps.size()];
  }

  rt::Executor &executor;
  Batches &batches;
  int64_t last;
  bool needsLabels, isBegun = false;
  int stopSignal = 0;
  /// How many steps were read, announced and begun, those before `first`
  /// included.
  int64_t read, announced, begun;
  /// What is wrong with the steps before this one is known to all processes.
  int64_t agreed;
  /// One runs, one goes up, and one is read.
  std::array<Step, 3> steps;
};

} // namespace ax

#endif // AX_LIB_SESSION_STEPFEED_H
