//===- OpenTraining.cpp - What a run of training begins with --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Trainer.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/AtomicFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ax;

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

std::optional<size_t> ax::findScalar(const rt::Program &program,
                                     rt::Role role) {
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (program.outputs[i].role == role && program.outputs[i].shape.empty())
      return i;
  return std::nullopt;
}

llvm::Error Trainer::openData() {
  if (!isTraining(program))
    return makeError(ExitCode::Usage,
                     "program '" + program.name +
                         "' does not train: compile it with axopt --train, "
                         "or give --predict=OUT for what it makes of --data");
  loss = *findScalar(program, rt::Role::Loss);
  norm = findScalar(program, rt::Role::GradientNorm);
  lossScale = findScalar(program, rt::Role::LossScale);
  auto samples =
      Samples::open(program.inputs, options.data, options.tokens, "data");
  if (!samples)
    return samples.takeError();
  if (std::string unused = samples->describeUnused(); !unused.empty())
    warn(unused);
  samples->readFor(executor);
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
  return llvm::Error::success();
}

llvm::Error Trainer::countSteps() {
  // Of batches that had another size before, there were others.
  if (options.epochs)
    steps = done + batches->stepsUntil(options.epochs);
  if (traceLast == 0)
    traceFirst = traceLast = steps;
  if (traceLast > steps)
    return makeError(ExitCode::Usage, "--trace-steps: there are steps 1 to " +
                                          llvm::Twine(steps));
  return llvm::Error::success();
}

void Trainer::tellResumed(const Resumed &resumed) {
  const llvm::json::Object *position = resumed.progress.getObject("data");
  if (auto batch = position ? position->getInteger("batch") : std::nullopt;
      batch && *batch != batches->getSamples().getBatch())
    warn("a batch has " + llvm::Twine(batches->getSamples().getBatch()) +
         " samples, where the run that is gone on with had " +
         llvm::Twine(*batch));
  progress.show("resumed after step " + llvm::Twine(done) + " from '" +
                resumed.path + "'");
  if (options.onTraced && traceLast <= done)
    warn("no step is traced: those up to " + llvm::Twine(done) +
         " are done already");
  if (done >= steps)
    progress.show(llvm::Twine(done) + " steps are done already: nothing to do");
}

/// `isSaved`: whether the checkpoint that is resumed is where others will be.
llvm::Error Trainer::openHere(bool &isSaved) {
  if (llvm::Error error = openData())
    return error;
  if (llvm::Error error = countSteps())
    return error;
  if (const Resumed *resumed = session.getResumed()) {
    skipped = resumed->progress.getInteger("skipped").value_or(0);
    savedPath = resumed->path;
    isSaved = llvm::sys::fs::equivalent(
        llvm::sys::path::parent_path(resumed->path), options.save);
    tellResumed(*resumed);
  }
  if (done < steps && options.save.empty() && options.saveWeights.empty())
    progress.show("note: what is trained is not kept: --save=DIR or "
                  "--save-weights=FILE.safetensors keeps it");
  if (int64_t end = program.learningRateSteps; end > 0 && steps > end)
    warn("the learning rate's schedule ends after step " + llvm::Twine(end) +
         " (axopt --lr-schedule): it stays what it is then until step " +
         llvm::Twine(steps));
  if (llvm::Error error = checkFolder())
    return error;
  return options.eval ? openEvaluation() : llvm::Error::success();
}

llvm::Error Trainer::checkFolder() {
  if (auto there = rt::checkpoint::list(options.save);
      !options.save.empty() && !there.empty()) {
    int64_t last = there.back().first;
    if (!session.getResumed())
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
  return llvm::Error::success();
}

llvm::Error Trainer::openEvaluation() {
  rt::Executor *evaluation = session.getSecond();
  if (!evaluation)
    return makeError(ExitCode::Usage,
                     "the plan has no program to measure with: compile it "
                     "with axopt --train");
  auto created = Evaluator::create(*evaluation, *options.eval, options.tokens);
  if (!created)
    return created.takeError();
  if (std::string unused = created->describeUnused(); !unused.empty())
    warn(unused);
  evaluator.emplace(std::move(*created));
  return llvm::Error::success();
}

llvm::Error Trainer::openLog() {
  auto opened = TrainLog::create(
      options.log, options.tensorboard,
      session.goesOn() ? std::optional(done) : std::nullopt, program,
      evaluator ? evaluator->getMetrics() : llvm::ArrayRef<Metric>());
  if (!opened)
    return opened.takeError();
  log.emplace(std::move(*opened));
  return llvm::Error::success();
}

llvm::Error Trainer::open() {
  bool isSaved = false;
  llvm::Error error = openHere(isSaved);
  // Not only when all is done; and before any folder is made, but for one that
  // it is to be in.
  bool isBesideCheckpoints = !options.save.empty() &&
                             !options.saveWeights.empty() &&
                             isIn(options.saveWeights, options.save);
  bool writesWeights = !options.saveWeights.empty() && world.isFirst();
  if (!error && writesWeights && !isBesideCheckpoints)
    error = AtomicFile::check(options.saveWeights);
  auto flags = rt::agreeOnFlags(world, "what training begins with", isSaved,
                                std::move(error));
  if (!flags)
    return flags.takeError();
  if (!llvm::is_contained(*flags, false))
    saved = done;
  if (!options.save.empty()) {
    auto locked = rt::CheckpointFolder::open(
        options.save, [this](const std::string &text) { warn(text); },
        session.getWorld());
    if (!locked)
      return locked.takeError();
    folder.emplace(std::move(*locked));
    if (const Resumed *resumed = session.getResumed())
      folder->setDamaged(resumed->damaged);
  }
  error = writesWeights && isBesideCheckpoints
              ? AtomicFile::check(options.saveWeights)
              : llvm::Error::success();
  if (!error && world.isFirst())
    error = openLog();
  if (llvm::Error failed =
          rt::agree(world, "files of training", std::move(error)))
    return failed;
  auto newFeed = StepFeed::create(executor, *batches, done, steps,
                                  options.onNonfinite == OnNonfinite::Stop);
  if (!newFeed)
    return newFeed.takeError();
  feed.emplace(std::move(*newFeed));
  return llvm::Error::success();
}
