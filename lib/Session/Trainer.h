//===- Trainer.h - A run of training ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_TRAINER_H
#define AX_LIB_SESSION_TRAINER_H

#include "Batches.h"
#include "Evaluate.h"
#include "Interrupt.h"
#include "StepFeed.h"
#include "TrainLog.h"

#include "ax/Runtime/CheckpointFolder.h"
#include "ax/Support/Error.h"

namespace ax {

/// Of several processes each has one; all do the same, and process 0 tells, and
/// writes what is not of one rank.
class Trainer {
public:
  /// What is told goes to `os`, at process 0.
  Trainer(Session &session, const TrainOptions &options, llvm::raw_ostream &os)
      : session(session), options(options), executor(session.getExecutor()),
        world(executor.getWorld()), program(executor.getProgram()),
        progress(world.isFirst() ? os : llvm::nulls(), options.quiet, program),
        steps(options.steps), traceFirst(options.traceFirst),
        traceLast(options.traceLast) {}

  llvm::Expected<TrainEnd> run();

private:
  // In OpenTraining.cpp.
  llvm::Error open();
  llvm::Error openHere(bool &isSaved);
  llvm::Error openData();
  llvm::Error countSteps();
  void tellResumed(const Resumed &resumed);
  llvm::Error checkFolder();
  llvm::Error openEvaluation();
  llvm::Error openLog();

  llvm::Error step();
  llvm::Error finish();
  void tellStep(const StepFacts &facts, const std::vector<HostTensor> &outputs);
  llvm::Error measure();
  void keepLog(llvm::Error error);
  void traceStep();
  llvm::Error tellTraced();
  llvm::Error save();
  std::string whyNotFinite(llvm::StringRef what) const;
  /// The signal that asks the run to end before all is done, or 0.
  int getStopSignal() const {
    return world.isAlone() ? Interrupt::getSignal() : feed->getStopSignal();
  }
  bool isStopping() const { return getStopSignal() != 0; }
  bool isDue(int64_t every) const { return every > 0 && done % every == 0; }
  /// Whether something looks at states or traces behind the last step.
  bool isLookedAt() const {
    return done == steps || isDue(options.saveEvery) ||
           (evaluator && isDue(options.evalEvery)) || done == traceLast;
  }
  void warn(const llvm::Twine &text) {
    if (options.warn && world.isFirst())
      options.warn(text.str());
  }

  Session &session;
  const TrainOptions &options;
  rt::Executor &executor;
  rt::World &world;
  const rt::Program &program;
  Progress progress;
  std::optional<Batches> batches;
  std::optional<StepFeed> feed;
  /// Where the data is behind the steps that are done.
  Batches::Place place;
  std::optional<Evaluator> evaluator;
  std::optional<TrainLog> log;
  /// What has ended the log before the run's end.
  std::optional<ErrorDescription> logFault;
  /// The step that was done last, if nothing was said of it.
  std::optional<StepFacts> untold;
  /// Where checkpoints go, if any do.
  std::optional<rt::CheckpointFolder> folder;
  /// The one that has the states after step `saved`.
  std::string savedPath;
  /// How long each traced step took, until these are told of.
  std::vector<std::chrono::nanoseconds> traced;
  size_t loss = 0;
  std::optional<size_t> norm, lossScale;
  /// Steps done, those among them that changed nothing, and the numbers of
  /// steps after which was saved and measured.
  int64_t done = 0, skipped = 0, saved = -1, measured = -1;
  /// Those that were done before this run.
  int64_t first = 0;
  /// The steps to do in all, and those among them that are traced.
  int64_t steps, traceFirst, traceLast;
};

/// Returns which of the program's outputs is the scalar of a role.
std::optional<size_t> findScalar(const rt::Program &program, rt::Role role);

} // namespace ax

#endif // AX_LIB_SESSION_TRAINER_H
