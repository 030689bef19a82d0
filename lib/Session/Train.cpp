//===- Train.cpp - Steps of a program that trains -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Train.h"

#include "Batches.h"
#include "Evaluate.h"
#include "Interrupt.h"
#include "StepFeed.h"
#include "TrainLog.h"

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/CheckpointFolder.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace ax;

static std::optional<size_t> findOutput(const rt::Program &program,
                                        rt::Role role) {
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (program.outputs[i].role == role && program.outputs[i].shape.empty())
      return i;
  return std::nullopt;
}

bool ax::isTraining(const rt::Program &program) {
  return findOutput(program, rt::Role::Loss) &&
         llvm::any_of(program.states,
                      [](const rt::State &state) { return state.isMutable; });
}

namespace {

class Trainer {
public:
  Trainer(Session &session, const TrainOptions &options, llvm::raw_ostream &os)
      : session(session), options(options), executor(session.getExecutor()),
        program(executor.getProgram()), progress(os, options.quiet, program),
        steps(options.steps), traceFirst(options.traceFirst),
        traceLast(options.traceLast) {}

  llvm::Expected<TrainEnd> run();

private:
  llvm::Error open();
  llvm::Error step();
  llvm::Error finish();
  void tellStep(const StepFacts &facts, const std::vector<HostTensor> &outputs);
  llvm::Error measure();
  void keepLog(llvm::Error error);
  void traceStep();
  llvm::Error tellTraced();
  llvm::Error save();
  std::string whyNotFinite(llvm::StringRef what) const;
  bool isDue(int64_t every) const { return every > 0 && done % every == 0; }
  /// Whether something looks at states or traces behind the last step.
  bool isLookedAt() const {
    return done == steps || isDue(options.saveEvery) ||
           (evaluator && isDue(options.evalEvery)) || done == traceLast;
  }
  void warn(const llvm::Twine &text) {
    if (options.warn)
      options.warn(text.str());
  }

  Session &session;
  const TrainOptions &options;
  rt::Executor &executor;
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

} // namespace

/// Whether `file` is in `folder`, or below it, by their names; false where
/// nobody can say, as the folder that the process is in is gone.
static bool isIn(llvm::StringRef file, llvm::StringRef folder) {
  llvm::SmallString<256> inner(file), outer(folder);
  for (llvm::SmallString<256> *path : {&inner, &outer}) {
    if (llvm::sys::fs::make_absolute(*path))
      return false;
    llvm::sys::path::remove_dots(*path, /*remove_dot_dot=*/true);
  }
  llvm::StringRef rest = inner;
  return rest.consume_front(outer.str()) && rest.starts_with("/");
}

llvm::Error Trainer::open() {
  if (!isTraining(program))
    return makeError(ExitCode::Usage,
                     "program '" + program.name +
                         "' does not train: compile it with axopt --train, "
                         "or give --predict=OUT for what it makes of --data");
  loss = *findOutput(program, rt::Role::Loss);
  norm = findOutput(program, rt::Role::GradientNorm);
  lossScale = findOutput(program, rt::Role::LossScale);
  auto samples =
      Samples::open(program.inputs, options.data, options.tokens, "data");
  if (!samples)
    return samples.takeError();
  if (std::string unused = samples->describeUnused(); !unused.empty())
    warn(unused);
  const Resumed *resumed = session.getResumed();
  const llvm::json::Object *position =
      resumed ? resumed->progress.getObject("data") : nullptr;
  auto kept = [&](auto asked, auto found, auto otherwise) {
    return asked.value_or(found.value_or(otherwise));
  };
  std::optional<bool> shuffle;
  std::optional<uint64_t> seed;
  if (position) {
    shuffle = position->getBoolean("shuffle");
    if (const llvm::json::Value *value = position->get("seed"))
      seed = value->getAsUINT64();
  }
  auto made =
      Batches::create(std::move(*samples), kept(options.shuffle, shuffle, true),
                      kept(options.seed, seed, uint64_t(0)), options.last);
  if (!made)
    return made.takeError();
  batches.emplace(std::move(*made));
  if ((options.shuffle && shuffle && *options.shuffle != *shuffle) ||
      (options.seed && seed && *options.seed != *seed))
    warn("the order of samples is another one than before: what is left of "
         "this epoch has some of them again, and not all");
  if (resumed) {
    if (llvm::Error error = batches->setPosition(
            position ? *position : llvm::json::Object(), resumed->step))
      return addContext(std::move(error), "checkpoint '" + resumed->path + "'");
    done = first = resumed->step;
    place = batches->getPlace();
  }
  // Of batches that had another size before, there were others.
  if (options.epochs)
    steps = done + batches->stepsUntil(options.epochs);
  if (traceLast == 0)
    traceFirst = traceLast = steps;
  if (traceLast > steps)
    return makeError(ExitCode::Usage, "--trace-steps: there are steps 1 to " +
                                          llvm::Twine(steps));
  if (resumed) {
    if (auto batch = position ? position->getInteger("batch") : std::nullopt;
        batch && *batch != batches->getSamples().getBatch())
      warn("a batch has " + llvm::Twine(batches->getSamples().getBatch()) +
           " samples, where the run that is gone on with had " +
           llvm::Twine(*batch));
    skipped = resumed->progress.getInteger("skipped").value_or(0);
    if (llvm::sys::fs::equivalent(llvm::sys::path::parent_path(resumed->path),
                                  options.save))
      saved = done;
    progress.show("resumed after step " + llvm::Twine(done) + " from '" +
                  resumed->path + "'");
    if (options.onTraced && traceLast <= done)
      warn("no step is traced: those up to " + llvm::Twine(done) +
           " are done already");
    if (done >= steps)
      progress.show(llvm::Twine(done) +
                    " steps are done already: nothing to do");
  }
  if (done < steps && options.save.empty() && options.saveWeights.empty())
    progress.show("note: what is trained is not kept: --save=DIR or "
                  "--save-weights=FILE.safetensors keeps it");
  if (int64_t end = program.learningRateSteps; end > 0 && steps > end)
    warn("the learning rate's schedule ends after step " + llvm::Twine(end) +
         " (axopt --lr-schedule): it stays what it is then until step " +
         llvm::Twine(steps));
  if (auto there = rt::checkpoint::list(options.save);
      !options.save.empty() && !there.empty()) {
    int64_t last = there.back().first;
    if (!resumed)
      return makeError(ExitCode::Usage,
                       "--save=" + options.save +
                           " has checkpoints of a run up to step " +
                           llvm::Twine(last) +
                           ", and this run does not go on with it (--resume): "
                           "remove them, or save to another folder");
    if (last > done && done < steps)
      warn("'" + options.save + "' has checkpoints up to step " +
           llvm::Twine(last) + ": its 'latest' goes back behind step " +
           llvm::Twine(done));
  }
  if (options.eval) {
    rt::Executor *evaluation = session.getEvaluation();
    if (!evaluation)
      return makeError(ExitCode::Usage,
                       "the plan has no program to measure with: compile it "
                       "with axopt --train");
    auto created =
        Evaluator::create(*evaluation, *options.eval, options.tokens);
    if (!created)
      return created.takeError();
    if (std::string unused = created->describeUnused(); !unused.empty())
      warn(unused);
    evaluator.emplace(std::move(*created));
  }
  // Not only when all is done; and before any folder is made, but for one that
  // it is to be in.
  bool isBesideCheckpoints = !options.save.empty() &&
                             !options.saveWeights.empty() &&
                             isIn(options.saveWeights, options.save);
  if (!options.saveWeights.empty() && !isBesideCheckpoints)
    if (llvm::Error error = AtomicFile::check(options.saveWeights))
      return error;
  if (!options.save.empty()) {
    auto locked = rt::CheckpointFolder::open(options.save, options.warn);
    if (!locked)
      return locked.takeError();
    folder.emplace(std::move(*locked));
  }
  if (isBesideCheckpoints)
    if (llvm::Error error = AtomicFile::check(options.saveWeights))
      return error;
  auto opened = TrainLog::create(
      options.log, options.tensorboard,
      resumed ? std::optional(done) : std::nullopt, program,
      evaluator ? evaluator->getMetrics() : llvm::ArrayRef<Metric>());
  if (!opened)
    return opened.takeError();
  log.emplace(std::move(*opened));
  auto newFeed = StepFeed::create(executor, *batches, done, steps,
                                  options.onNonfinite == OnNonfinite::Stop);
  if (!newFeed)
    return newFeed.takeError();
  feed.emplace(std::move(*newFeed));
  return llvm::Error::success();
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
  std::string inData =
      findNotFinite(program, step.request->inputs, step.samples);
  if (!inData.empty())
    return text + inData;
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
    if (llvm::Error error = feed->begin())
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
    return makeError(ExitCode::RunFailed,
                     whyNotFinite(std::isfinite(value) ? "gradient" : "loss") +
                         "; --on-nonfinite=skip leaves such steps out");
  }
  ++done;
  place = step.end;
  // While the next one runs, this one is told of.
  llvm::Error error = llvm::Error::success();
  if (!isLookedAt() && !Interrupt::isRequested() && feed->mayBegin())
    error = feed->begin();
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
  if (llvm::Error error = checkMappedFiles())
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
  progress.show("saved '" + *path + "'");
  return llvm::Error::success();
}

/// First what is dear is brought home.
llvm::Error Trainer::finish() {
  if (llvm::Error error = checkMappedFiles())
    return error;
  if (!options.save.empty() && saved != done)
    if (llvm::Error error = save())
      return error;
  if (!options.saveWeights.empty())
    if (llvm::Error error = saveWeights(executor, options.saveWeights))
      return error;
  if (evaluator && measured != done && !Interrupt::isRequested())
    if (llvm::Error error = measure())
      return error;
  if (llvm::Error error = tellTraced())
    return error;
  if (skipped)
    progress.show(llvm::Twine(skipped) + " of " + llvm::Twine(done) +
                  " steps were skipped: loss or gradient were no finite "
                  "numbers");
  if (logFault)
    return makeError(logFault->code,
                     logFault->message + ": the log is cut off there");
  return llvm::Error::success();
}

llvm::Expected<TrainEnd> Trainer::run() {
  if (llvm::Error error = open())
    return error;
  Interrupt interrupt;
  llvm::Error fault = llvm::Error::success();
  while (feed->isRunning() || (done < steps && !Interrupt::isRequested())) {
    if ((fault = step()))
      break;
    if (isDue(options.saveEvery) && done < steps)
      if (llvm::Error error = save())
        warn(describeError(std::move(error)).message +
             ": training goes on without this checkpoint");
    if (evaluator && isDue(options.evalEvery))
      if ((fault = measure()))
        break;
  }
  if (fault && executor.hasFailed())
    return fault;
  if (untold)
    tellStep(*untold, feed->getStep().request->outputs);
  if (llvm::Error error = finish())
    return llvm::joinErrors(std::move(fault), std::move(error));
  if (fault)
    return fault;
  if (!Interrupt::isRequested() || done >= steps)
    return TrainEnd::Done;
  warn("interrupted after step " + llvm::Twine(done) + " of " +
       llvm::Twine(steps) +
       (options.save.empty() ? ": nothing is saved (--save)"
                             : ": go on with --resume=" + options.save));
  return TrainEnd::Interrupted;
}

llvm::Expected<TrainEnd> ax::train(Session &session,
                                   const TrainOptions &options,
                                   llvm::raw_ostream &progress) {
  return Trainer(session, options, progress).run();
}
