//===- Train.cpp - Steps of a program that trains -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Train.h"

#include "Trainer.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/MappedFile.h"

#include <chrono>
#include <cmath>

using namespace ax;

bool ax::isTraining(const rt::Program &program) {
  return findScalar(program, rt::Role::Loss) &&
         llvm::any_of(program.states,
                      [](const rt::State &state) { return state.isMutable; });
}

/// The step that was just done, whose number is done + 1.
void Trainer::traceStep() {
  if (done + 1 >= traceFirst && done + 1 <= traceLast)
    traced.push_back(feed->getStep().request->duration);
  else
    executor.clearTrace();
}

llvm::Error Trainer::tellTraced() {
  if (traced.empty())
    return llvm::Error::success();
  llvm::Error error = options.onTraced(traced);
  traced.clear();
  return error;
}

/// The first NaN or infinity among the inputs of a step, in words; empty if
/// there is none. What masks hide is -inf.
static std::string findNotFinite(const rt::Program &program,
                                 llvm::ArrayRef<HostTensor> inputs,
                                 llvm::ArrayRef<int64_t> samples) {
  for (auto [port, input] : llvm::zip_equal(program.inputs, inputs)) {
    if (!isFloat(port.dtype))
      continue;
    for (int64_t i = 0, e = input.numElements(); i < e; ++i)
      if (double value = input.getDouble(i);
          std::isnan(value) || value == INFINITY) {
        std::string where = "input '" + port.name + "' has " +
                            (std::isnan(value) ? "NaN" : "an infinity");
        if (!port.isBatched)
          return where;
        int64_t each = e / static_cast<int64_t>(samples.size());
        return where + " in sample " +
               std::to_string(samples[static_cast<size_t>(i / each)]);
      }
  }
  return "";
}

/// Data, weights or steps may be at fault.
std::string Trainer::whyNotFinite(llvm::StringRef what) const {
  std::string text = ("the " + what + " of step " + llvm::Twine(done + 1) +
                      " is no finite number: ")
                         .str();
  const StepFeed::Step &step = feed->getStep();
  // Who reads the sample sees it.
  auto inData = rt::agreeOnTexts(
      world, "what is not finite",
      findNotFinite(program, step.request->inputs, step.samples));
  if (!inData)
    return text + llvm::toString(inData.takeError());
  for (const std::string &found : *inData)
    if (!found.empty())
      return text + found;
  const Resumed *resumed = session.getResumed();
  if (done == first && resumed)
    return text + "this run had updated nothing since '" + resumed->path +
           "', which is at fault: go on from a checkpoint before it, with a "
           "lower learning rate, or clip gradients (axopt --clip-norm)";
  if (done == first)
    return text + "this run had updated nothing before, so that the weights, "
                  "or what the model computes of them, are at fault, and not "
                  "the learning rate";
  return text + "lower the learning rate, or clip gradients (axopt "
                "--clip-norm)";
}

/// Tells of the step that was done last.
void Trainer::tellStep(const StepFacts &facts,
                       const std::vector<HostTensor> &outputs) {
  if (log)
    keepLog(log->writeStep(facts, program, outputs));
  progress.showStep(facts, steps, outputs[loss].getDouble(0), skipped);
  untold.reset();
}

/// Steps are worth more than what is said of them: without a log the run goes
/// on, and fails at its end.
void Trainer::keepLog(llvm::Error error) {
  if (!error)
    return;
  logFault = describeError(std::move(error));
  log.reset();
  warn(logFault->message + ": training goes on, and nothing more is logged");
}

llvm::Error Trainer::step() {
  using Clock = std::chrono::steady_clock;
  if (!feed->isRunning())
    if (llvm::Error error = feed->begin(Interrupt::getSignal()))
      return error;
  if (llvm::Error error = feed->finish())
    return error;
  const StepFeed::Step &step = feed->getStep();
  const std::vector<HostTensor> &outputs = step.request->outputs;
  double seconds =
      std::chrono::duration<double>(Clock::now() - step.begin).count();
  if (options.onTraced)
    traceStep();
  double value = outputs[loss].getDouble(0);
  bool isFinite = std::isfinite(value) &&
                  (!norm || std::isfinite(outputs[*norm].getDouble(0)));
  // The next step's scale is smaller: that may be all it needs.
  bool isTooLarge =
      std::isfinite(value) && lossScale && outputs[*lossScale].getDouble(0) > 1;
  bool isSkipped =
      !isFinite && (isTooLarge || options.onNonfinite == OnNonfinite::Skip);
  StepFacts facts{done + 1, step.end.epoch, seconds,
                  static_cast<double>(batches->getSamples().getBatch()) /
                      seconds,
                  isSkipped};
  skipped += isSkipped;
  untold = facts;
  if (!isFinite && !isSkipped) {
    tellStep(facts, outputs);
    return makeError(ExitCode::NotFinite,
                     whyNotFinite(std::isfinite(value) ? "gradient" : "loss") +
                         "; --on-nonfinite=skip leaves such steps out");
  }
  ++done;
  place = step.end;
  // While the next one runs, this one is told of.
  llvm::Error error = llvm::Error::success();
  if (!isLookedAt() && !isStopping() && feed->mayBegin())
    error = feed->begin(Interrupt::getSignal());
  // What is left out is never passed over.
  if (isSkipped || done == steps || done % options.logEvery == 0)
    tellStep(facts, outputs);
  if (error || done != traceLast)
    return error;
  return tellTraced();
}

llvm::Error Trainer::measure() {
  auto result = evaluator->run();
  if (!result)
    return result.takeError();
  if (!*result)
    return llvm::Error::success();
  measured = done;
  progress.tell("evaluation after step " + llvm::Twine(done) + ": " +
                evaluator->describe(**result));
  if (log)
    keepLog(log->writeMeasured(done, *evaluator, **result));
  return llvm::Error::success();
}

llvm::Error Trainer::save() {
  if (llvm::Error error =
          rt::agree(world, "files that are read", checkMappedFiles()))
    return error;
  rt::CheckpointOptions to;
  to.step = done;
  to.keep = options.saveKeep;
  to.progress = llvm::json::Object{{"data", batches->getPosition(place)},
                                   {"optimizer", program.optimizer},
                                   {"skipped", skipped}};
  auto path = folder->write(executor, to);
  if (!path)
    return path.takeError();
  saved = done;
  savedPath = *path;
  progress.show("saved '" + *path + "'");
  return llvm::Error::success();
}

/// First what is dear is brought home.
llvm::Error Trainer::finish() {
  if (llvm::Error error =
          rt::agree(world, "files that are read", checkMappedFiles()))
    return error;
  if (!options.save.empty() && saved != done)
    if (llvm::Error error = save())
      return error;
  if (!options.saveWeights.empty())
    if (llvm::Error error =
            saveWeights(executor, options.saveWeights,
                        saved == done ? savedPath : std::string()))
      return error;
  if (evaluator && measured != done && !isStopping())
    if (llvm::Error error = measure())
      return error;
  if (llvm::Error error = tellTraced())
    return error;
  if (skipped)
    progress.show(llvm::Twine(skipped) + " of " + llvm::Twine(done) +
                  " steps were skipped: loss or gradient were no finite "
                  "numbers");
  return rt::agree(
      world, "end of training",
      logFault ? makeError(logFault->code,
                           logFault->message + ": the log is cut off there")
               : llvm::Error::success());
}

llvm::Expected<TrainEnd> Trainer::run() {
  if (llvm::Error error = open())
    return error;
  Interrupt interrupt(world.isFirst());
  llvm::Error fault = llvm::Error::success();
  while (feed->isRunning() || (done < steps && !isStopping())) {
    if ((fault = step()))
      break;
    if (isDue(options.saveEvery) && done < steps)
      if (llvm::Error error = save()) {
        // With whom training would go on is gone.
        if (!world.getAbortReason().empty()) {
          fault = std::move(error);
          break;
        }
        warn(describeError(std::move(error)).message +
             ": training goes on without this checkpoint");
      }
    if (evaluator && isDue(options.evalEvery))
      if ((fault = measure()))
        break;
  }
  if (fault)
    fault = session.recordFailure(std::move(fault));
  if (fault && executor.hasFailed())
    return fault;
  if (untold)
    tellStep(*untold, feed->getStep().request->outputs);
  if (llvm::Error error = finish())
    return llvm::joinErrors(std::move(fault), std::move(error));
  if (fault)
    return fault;
  if (!isStopping() || done >= steps)
    return TrainEnd::Done;
  warn("interrupted after step " + llvm::Twine(done) + " of " +
       llvm::Twine(steps) +
       (options.save.empty() ? ": nothing is saved (--save)"
                             : ": go on with --resume=" + options.save));
  return getStopSignal() == SIGTERM ? TrainEnd::Terminated
                                    : TrainEnd::Interrupted;
}

llvm::Expected<TrainEnd> ax::train(Session &session,
                                   const TrainOptions &options,
                                   llvm::raw_ostream &progress) {
  return Trainer(session, options, progress).run();
}
