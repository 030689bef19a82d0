//===- Session.cpp - A plan, ready to run ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Session.h"

#include "FlightSignal.h"
#include "RandomWeights.h"
#include "ReadPlan.h"
#include "Weights.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StateNames.h"
#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Support/CpuTarget.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace ax;

struct Session::Impl {
  std::shared_ptr<rt::Program> program, secondProgram, preparationProgram;
  /// These, in the order in which they were chosen.
  std::vector<rt::Program *> programs;
  std::shared_ptr<rt::World> world;
  rt::BackendOptions backends;
  rt::ExecutorOptions options;
  /// What kernels were compiled for without asking the device.
  std::optional<Target> target;
  std::optional<Resumed> resumed;
  bool goesOn = false;
  std::vector<std::string> files;
  /// All of the plan's.
  std::set<std::string> stateNames;
  bool isUntrained = false;
  /// Null where there is no recorder.
  std::unique_ptr<FlightSignal> signal;
  /// The second uses the states of the first.
  std::unique_ptr<rt::Executor> executor, second;
};

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

const rt::Program &Session::getProgram() const { return *impl->program; }
const rt::BackendOptions &Session::getBackends() const {
  return impl->backends;
}
rt::Executor &Session::getExecutor() { return *impl->executor; }
rt::Executor *Session::getSecond() { return impl->second.get(); }
const std::shared_ptr<rt::World> &Session::getWorld() const {
  return impl->world;
}
const std::vector<std::string> &Session::getFiles() const {
  return impl->files;
}
bool Session::isUntrained() const { return impl->isUntrained; }
const Resumed *Session::getResumed() const {
  return impl->resumed ? &*impl->resumed : nullptr;
}

bool Session::goesOn() const { return impl->goesOn; }

/// The program that is run; if it is there and asked for, a second one; if it
/// is there, that which prepares.
static llvm::Expected<std::vector<llvm::StringRef>>
choosePrograms(llvm::ArrayRef<llvm::StringRef> names,
               const SessionOptions &options) {
  auto isThere = [&](llvm::StringRef name) {
    return llvm::is_contained(names, name);
  };
  llvm::StringRef main = options.program;
  if (main.empty() && isThere(options.preferredProgram))
    main = options.preferredProgram;
  if (main.empty())
    for (llvm::StringRef name : llvm::reverse(names))
      if (name != preparationProgram)
        main = name;
  if (!isThere(main)) {
    bool isOfTraining = main == evaluationProgram;
    return makeError(
        ExitCode::Usage,
        "the plan has no program '" + main +
            "', but: " + llvm::join(names, " ") +
            (isOfTraining ? "; compile it with axopt --train" : ""));
  }
  std::vector<llvm::StringRef> chosen{main};
  if (main != options.secondProgram && isThere(options.secondProgram))
    chosen.push_back(options.secondProgram);
  if (main != preparationProgram && isThere(preparationProgram))
    chosen.push_back(preparationProgram);
  return chosen;
}

/// Returns how long to wait; 0: for ever.
static llvm::Expected<std::chrono::milliseconds> toTimeout(double seconds) {
  constexpr double least = 1e-3, most = 1e9;
  if (seconds == 0 || (seconds >= least && seconds <= most))
    return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("a timeout of %g seconds: expected 0 (for ever), or %g "
                      "to %g",
                      seconds, least, most);
  return makeError(ExitCode::Usage, text);
}

/// Returns the seed of the run that is gone on with; 0 where there is none.
static uint64_t seedOf(const std::optional<Resumed> &resumed) {
  const llvm::json::Object *data =
      resumed ? resumed->progress.getObject("data") : nullptr;
  const llvm::json::Value *seed = data ? data->get("seed") : nullptr;
  return seed ? seed->getAsUINT64().value_or(0) : 0;
}

static void setSeed(rt::Program &program, uint64_t seed) {
  for (rt::State &state : program.states)
    if (state.name == kRandomSeed.str() && state.dtype == DType::I64 &&
        state.shape.empty()) {
      state.give(HostTensor::scalar(static_cast<int64_t>(seed)));
      state.isZeroAtFirst = false;
    }
}

/// A plan may have moved, or its model.
static llvm::Error checkFiles(const rt::Program &program,
                              const std::string &folder) {
  for (const rt::State &state : program.states) {
    if (state.file.empty() || state.openFile ||
        !findEscape(folder, state.file).empty())
      continue;
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, state.file);
    if (!llvm::sys::fs::exists(path))
      return makeError(ExitCode::InputOutput,
                       "state '" + state.name + "': there is no '" + path +
                           "', from which the plan was made: --model-dir=DIR "
                           "says where the model's files are now");
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Session>>
Session::load(const std::string &planPath, const SessionOptions &options) {
  auto session = compile(planPath, options);
  if (session)
    if (llvm::Error error = (*session)->start())
      return error;
  return session;
}

llvm::Expected<std::unique_ptr<Session>>
Session::compile(const std::string &planPath, const SessionOptions &options) {
  auto session = makePrograms(planPath, options);
  if (options.world) {
    if (llvm::Error error = rt::agree(*options.world, "programs of the plan",
                                      session.takeError()))
      return error;
  }
  if (!session)
    return session;
  if (llvm::Error error = (*session)->giveStates(options))
    return error;
  return session;
}

llvm::Error Session::giveStates(const SessionOptions &options) {
  rt::World &world = *impl->world;
  if (!options.weights.empty()) {
    WeightsRequest request{options.weights,          options.tied,
                           options.leaveOut,         impl->stateNames,
                           impl->options.dataFolder, options.warn,
                           impl->backends.ranks};
    if (llvm::Error error = useWeights(impl->programs, request, world))
      return error;
  }
  if (options.randomWeights)
    if (llvm::Error error =
            rt::agree(world, "random weights",
                      makeWeights(impl->programs, *options.randomWeights)))
      return error;
  bool resumes = !options.resume.empty();
  if (resumes && options.resumeIfAny) {
    auto there =
        rt::share(world, "whether there is a checkpoint",
                  [&]() -> llvm::Expected<std::string> {
                    return rt::isCheckpoint(options.resume) ? "yes" : "";
                  });
    if (!there)
      return there.takeError();
    resumes = !there->empty();
    impl->goesOn = true;
    if (!resumes && options.warn)
      options.warn("there is no checkpoint in '" + options.resume +
                   "' yet: training begins");
  }
  if (resumes) {
    rt::CheckpointReading reading{options.warn};
    if (!world.isAlone()) {
      reading.needs =
          rt::findNeededElements(*impl->program, impl->backends.ranks);
      readTogether(reading, world);
    }
    auto resumed = resumeFrom(impl->programs, options.resume,
                              impl->options.dataFolder, reading);
    if (llvm::Error error =
            rt::agree(world, "what is resumed", resumed.takeError()))
      return error;
    impl->resumed = std::move(*resumed);
    impl->goesOn = true;
  }
  setSeed(*impl->program, options.seed ? *options.seed : seedOf(impl->resumed));
  return llvm::Error::success();
}

/// Several processes have one rank each.
static llvm::Error placeRanks(const rt::World &world, int64_t numRanks,
                              rt::BackendOptions &backends) {
  if (world.isAlone())
    return llvm::Error::success();
  auto ranks = world.getRanks(numRanks);
  if (!ranks)
    return ranks.takeError();
  backends.ranks = std::move(*ranks);
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Session>>
Session::makePrograms(const std::string &planPath,
                      const SessionOptions &options) {
  auto impl = std::make_unique<Impl>();
  impl->world = options.world ? options.world : rt::makeLoneWorld();
  const rt::World &world = *impl->world;
  auto timeout = toTimeout(options.timeoutSeconds);
  if (!timeout)
    return timeout.takeError();
  if (options.threadsPerRank != 0)
    if (llvm::Error error = rt::checkThreads(1, options.threadsPerRank))
      return error;
  impl->backends.device = options.device;
  impl->backends.cards = options.cards;
  impl->backends.communicator = options.communicator;
  impl->backends.devices = {options.threadsPerRank, options.flushDenormals,
                            options.tf32, options.nondeterministic};
  if (options.noHostFallback)
    impl->backends.host.clear();
  if (llvm::Error error = rt::allBackends().check(impl->backends))
    return error;
  impl->backends.processesOnHost = world.getPlace().numOnHost;
  impl->backends.indexOnHost = world.getPlace().indexOnHost;

  if (!options.flightRecorder.empty()) {
    auto recorder = rt::FlightRecorder::create(options.flightRecorder);
    if (!recorder)
      return recorder.takeError();
    impl->options.recorder = *recorder;
    auto signal = FlightSignal::create(*recorder, options.warn);
    if (!signal)
      return signal.takeError();
    impl->signal = std::move(*signal);
  }

  std::vector<std::string> chosen;
  auto choose = [&](llvm::ArrayRef<llvm::StringRef> names)
      -> llvm::Expected<std::vector<llvm::StringRef>> {
    auto result = choosePrograms(names, options);
    if (result)
      chosen.assign(result->begin(), result->end());
    return result;
  };
  bool isCompiled = llvm::StringRef(planPath).ends_with(compiledPlanEnding);
  auto findTarget = [&](int64_t numRanks) -> llvm::Expected<Target> {
    if (llvm::Error error = placeRanks(world, numRanks, impl->backends))
      return addContext(std::move(error), planPath);
    int32_t &threads = impl->backends.devices.threadsPerRank;
    if (threads == 0)
      threads = rt::findThreadsPerRank(numRanks, impl->backends);
    if (llvm::Error error =
            rt::allBackends().checkRanks(numRanks, impl->backends))
      return addContext(std::move(error), planPath);
    if (options.target)
      return *options.target;
    return rt::allBackends().findTarget(numRanks, impl->backends);
  };
  impl->target = options.target;
  auto source = isCompiled
                    ? readPlanCode(planPath, options, choose, findTarget)
                    : readPlanText(planPath, options, choose, findTarget);
  if (!source)
    return source.takeError();
  if (!source->withoutCudnn.empty() && !options.target && options.warn) {
    auto kind = rt::allBackends().devices.find(impl->backends.device);
    if (!kind)
      return kind.takeError();
    if (kind->whyNoAttention)
      options.warn(source->withoutCudnn + ": " + kind->whyNoAttention());
  }
  rt::CompiledPlan &plan = source->plan;
  std::vector<rt::Program *> &programs = impl->programs;
  for (const std::string &name : chosen) {
    std::shared_ptr<rt::Program> program = plan.targets.front().find(name);
    programs.push_back(program.get());
    (name == chosen.front()       ? impl->program
     : name == preparationProgram ? impl->preparationProgram
                                  : impl->secondProgram) = program;
  }
  impl->isUntrained =
      options.weights.empty() && options.resume.empty() && plan.isTraining;
  if (options.modelDir.empty())
    if (llvm::Error error = plan.files.check(planPath))
      return error;
  impl->options.dataFolder =
      options.modelDir.empty() ? plan.files.find(planPath) : options.modelDir;
  impl->files = std::move(source->files);
  llvm::append_range(impl->files, plan.files.paths(impl->options.dataFolder));
  impl->stateNames.insert(plan.states.begin(), plan.states.end());
  impl->options.world = impl->world;
  impl->options.timeout = *timeout;
  impl->options.trace = options.trace;
  impl->options.blocking = options.launchBlocking;
  impl->options.capture = options.capture;
  // A plan's programs lack much the same.
  impl->options.warn = [warn = options.warn,
                        told = std::make_shared<std::set<std::string>>()](
                           const std::string &text) {
    if (warn && told->insert(text).second)
      warn(text);
  };
  // A stage more than there are requests would have nothing to do; of two more,
  // one is there when another begins, and its inputs go up meanwhile.
  impl->options.maxInFlight =
      static_cast<int32_t>(impl->program->stages.size()) + 2;
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

static llvm::Expected<std::unique_ptr<rt::Executor>>
createExecutor(std::shared_ptr<const rt::Program> program,
               const rt::BackendOptions &backends,
               const rt::ExecutorOptions &options) {
  // Communicators may find each other inside a library whose waiting nothing
  // ends: all are about to come there, or nobody goes.
  if (llvm::Error error = options.world->barrier("communicators of program '" +
                                                 program->name + "'"))
    return error;
  auto ranks = rt::allBackends().create(program->mesh.numRanks(), backends);
  if (!ranks)
    return ranks.takeError();
  return rt::Executor::create(std::move(program), std::move(*ranks), options);
}

/// What depends on weights alone, once.
static llvm::Error prepareStates(std::shared_ptr<rt::Program> program,
                                 const rt::BackendOptions &backends,
                                 rt::ExecutorOptions &options) {
  rt::ExecutorOptions once = options;
  once.trace = false;
  once.maxInFlight = 1;
  auto executor = createExecutor(std::move(program), backends, once);
  if (!executor)
    return executor.takeError();
  auto results = (*executor)->run({});
  if (!results)
    return results.takeError();
  options.prepared = (*executor)->getStored();
  return llvm::Error::success();
}

llvm::Error Session::checkStart() const {
  if (impl->target) {
    auto devices = rt::allBackends().findTarget(impl->program->mesh.numRanks(),
                                                impl->backends);
    if (!devices)
      return devices.takeError();
    if (auto chosen = chooseTarget(impl->target->toCode(), *devices); !chosen)
      return addContext(chosen.takeError(), impl->files.front());
  }
  for (const auto &program :
       {impl->program, impl->secondProgram, impl->preparationProgram})
    if (program)
      if (llvm::Error error = checkFiles(*program, impl->options.dataFolder))
        return error;
  return llvm::Error::success();
}

llvm::Error Session::start() {
  if (llvm::Error error =
          rt::agree(*impl->world, "files of the plan", checkStart()))
    return error;
  if (impl->preparationProgram)
    if (llvm::Error error = prepareStates(impl->preparationProgram,
                                          impl->backends, impl->options))
      return error;
  rt::ExecutorOptions options = impl->options;
  options.othersTakePrepared = impl->secondProgram != nullptr;
  auto executor = createExecutor(impl->program, impl->backends, options);
  if (!executor)
    return executor.takeError();
  impl->executor = std::move(*executor);
  options.othersTakePrepared = false;
  // Ranks hold what they use of it.
  impl->options.prepared.reset();
  if (!impl->secondProgram)
    return llvm::Error::success();
  options.owner = impl->executor.get();
  auto second = createExecutor(impl->secondProgram, impl->backends, options);
  if (!second)
    return second.takeError();
  impl->second = std::move(*second);
  return llvm::Error::success();
}

llvm::Expected<std::vector<HostTensor>>
Session::run(const std::vector<HostTensor> &inputs) {
  return impl->executor->run(inputs);
}

llvm::Error Session::recordFailure(llvm::Error error) {
  rt::FlightRecorder *recorder = impl->options.recorder.get();
  if (!recorder)
    return error;
  ErrorDescription description = describeError(std::move(error));
  recorder->keep(description.message);
  // An executor that has failed has said so itself.
  if (std::string where = recorder->write();
      !llvm::StringRef(description.message).contains(where))
    description.message += where;
  return makeError(description.code, description.message);
}
