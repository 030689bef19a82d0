//===- Session.cpp - A plan, ready to run ---------------------------------===//
#include "ax/Session/Session.h"

#include "Weights.h"
#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/Evaluation.h"
#include "ax/Dialect/Random.h"
#include "ax/Plan/Plan.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <thread>

using namespace ax;

struct Session::Impl {
  std::shared_ptr<rt::Program> program, evaluationProgram, preparationProgram;
  rt::BackendOptions backends;
  rt::ExecutorOptions options;
  std::optional<Resumed> resumed;
  std::vector<std::string> files;
  bool isUntrained = false;
  /// The second uses the states of the first.
  std::unique_ptr<rt::Executor> executor, evaluation;
};

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

const rt::Program &Session::getProgram() const { return *impl->program; }
rt::Executor &Session::getExecutor() { return *impl->executor; }
rt::Executor *Session::getEvaluation() { return impl->evaluation.get(); }
const std::vector<std::string> &Session::getFiles() const {
  return impl->files;
}
bool Session::isUntrained() const { return impl->isUntrained; }
const Resumed *Session::getResumed() const {
  return impl->resumed ? &*impl->resumed : nullptr;
}

static std::string defaultCache() {
  llvm::SmallString<128> folder;
  if (auto cache = llvm::sys::Process::GetEnv("AXOPT_CACHE")) {
    folder = *cache;
  } else {
    if (!llvm::sys::path::home_directory(folder))
      return "";
    llvm::sys::path::append(folder, ".cache", "axopt");
  }
  llvm::sys::path::append(folder, "kernels");
  return folder.str().str();
}

static llvm::Expected<ProgramOp> findProgram(mlir::ModuleOp module,
                                             llvm::StringRef name,
                                             llvm::StringRef preferred) {
  if (name.empty() && !preferred.empty())
    for (auto plan : module.getOps<PlanOp>())
      if (auto program = plan.lookupSymbol<ProgramOp>(preferred))
        return program;
  std::string known;
  for (auto plan : module.getOps<PlanOp>())
    for (auto program : plan.getBody().getOps<ProgramOp>()) {
      bool isFirst = name.empty() && program.getSymName() != preparationProgram;
      if (isFirst || program.getSymName() == name)
        return program;
      known += " " + program.getSymName().str();
    }
  bool isOfTraining = name == ax::evaluationProgram;
  return makeError(ExitCode::Usage,
                   "the plan has no program '" + name + "', but:" + known +
                       (isOfTraining ? "; compile it with axopt --train" : ""));
}

/// Whether steps of it change weights.
static bool doesTrain(ProgramOp program) {
  auto plan = program->getParentOfType<PlanOp>();
  return program
      .walk([&](StoreOp store) {
        auto state = plan.lookupSymbol<StateOp>(store.getState());
        return state && !state.getFile().empty() ? mlir::WalkResult::interrupt()
                                                 : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// 0: for ever.
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

/// A cache that cannot be had costs time, not results.
static std::string usableCache(const SessionOptions &options) {
  std::string folder =
      options.cacheDir.empty() ? defaultCache() : options.cacheDir;
  if (folder.empty())
    return folder;
  std::error_code code = llvm::sys::fs::create_directories(folder);
  if (!code)
    return folder;
  if (options.warn)
    options.warn("kernels are not cached: cannot make folder '" + folder +
                 "': " + code.message());
  return "";
}

/// Of the run that is gone on with.
static uint64_t seedOf(const std::optional<Resumed> &resumed) {
  const llvm::json::Object *data =
      resumed ? resumed->progress.getObject("data") : nullptr;
  const llvm::json::Value *seed = data ? data->get("seed") : nullptr;
  return seed ? seed->getAsUINT64().value_or(0) : 0;
}

static void setSeed(rt::Program &program, uint64_t seed) {
  for (rt::State &state : program.states)
    if (state.name == kRandomSeed.str()) {
      state.value = HostTensor(state.dtype, state.shape);
      state.value.mutableValues<int64_t>()[0] = static_cast<int64_t>(seed);
      state.isZeroAtFirst = false;
    }
}

/// A plan may have moved, or its model.
static llvm::Error checkFiles(const rt::Program &program,
                              const std::string &folder) {
  for (const rt::State &state : program.states) {
    if (state.file.empty() || !findEscape(folder, state.file).empty())
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

/// Text that axopt-opt goes on with.
static void printDump(llvm::StringRef step, PlanOp plan) {
  llvm::errs() << "// after " << step << '\n';
  plan.print(llvm::errs(), mlir::OpPrintingFlags().enableDebugInfo());
  llvm::errs() << '\n';
}

llvm::Expected<std::unique_ptr<Session>>
Session::compile(const std::string &planPath, const SessionOptions &options) {
  auto impl = std::make_unique<Impl>();
  auto timeout = toTimeout(options.timeoutSeconds);
  if (!timeout)
    return timeout.takeError();
  if (llvm::Error error = rt::checkThreads(1, options.threadsPerRank))
    return error;
  impl->backends.device = options.device;
  impl->backends.communicator = options.communicator;
  impl->backends.devices = {options.threadsPerRank, options.flushDenormals};
  if (llvm::Error error = rt::allBackends().check(impl->backends))
    return error;

  if (llvm::sys::path::extension(planPath) == ".onnx")
    return makeError(ExitCode::BadPlan,
                     "'" + planPath +
                         "' is an ONNX model: compile it with axopt first");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  auto module = plan::readPlan(planPath, context);
  if (!module)
    return module.takeError();
  // Before any work is done for each rank.
  for (auto plan : (*module)->getOps<PlanOp>())
    if (llvm::Error error =
            rt::checkThreads(plan.getMesh().numRanks(), options.threadsPerRank))
      return addContext(std::move(error), planPath);
  if (llvm::Error error = plan::verifyPlan(**module))
    return addContext(std::move(error), planPath);
  auto program =
      findProgram(**module, options.program, options.preferredProgram);
  if (!program)
    return program.takeError();

  codegen::Options codegenOptions;
  codegenOptions.cacheDir = usableCache(options);
  codegenOptions.numThreads =
      std::max<int64_t>(1, std::thread::hardware_concurrency());
  codegenOptions.separateKernels = options.separateKernels;
  bool isTold = false;
  if (options.note)
    codegenOptions.onMany = [&](int64_t count) {
      if (!std::exchange(isTold, true))
        options.note("compiling " + std::to_string(count) + " kernels" +
                     (codegenOptions.cacheDir.empty()
                          ? ""
                          : ", which '" + codegenOptions.cacheDir +
                                "' keeps for later runs"));
    };
  codegenOptions.after = [&](llvm::StringRef step, PlanOp plan) {
    if (llvm::is_contained(options.dumpAfter, step))
      printDump(step, plan);
  };
  mlir::DefaultTimingManager timing;
  timing.setEnabled(options.tellTimes);
  codegenOptions.timing = &timing;
  auto generate = [&](ProgramOp from,
                      std::shared_ptr<rt::Program> &to) -> llvm::Error {
    auto generated = codegen::generate(from, codegenOptions);
    if (!generated)
      return addContext(generated.takeError(), planPath);
    to = std::make_shared<rt::Program>(std::move(*generated));
    return llvm::Error::success();
  };
  // What is trained is saved with all else that the plan has.
  codegenOptions.allWeights = doesTrain(*program);
  if (llvm::Error error = generate(*program, impl->program))
    return error;
  codegenOptions.allWeights = false;
  std::vector<rt::Program *> programs{impl->program.get()};
  auto plan = (*program)->getParentOfType<PlanOp>();
  if (auto evaluation = plan.lookupSymbol<ProgramOp>(evaluationProgram);
      evaluation && evaluation != *program && options.evaluation) {
    if (llvm::Error error = generate(evaluation, impl->evaluationProgram))
      return error;
    programs.push_back(impl->evaluationProgram.get());
  }
  impl->isUntrained =
      options.weights.empty() && options.resume.empty() &&
      llvm::any_of(plan.getBody().getOps<StateOp>(),
                   [](StateOp state) { return state.getTrainable(); });
  if (auto preparation = plan.lookupSymbol<ProgramOp>(preparationProgram);
      preparation && preparation != *program) {
    if (llvm::Error error = generate(preparation, impl->preparationProgram))
      return error;
    programs.push_back(impl->preparationProgram.get());
  }
  if (options.modelDir.empty())
    if (llvm::Error error = plan::checkModelFolder(plan, planPath))
      return error;
  impl->options.dataFolder = options.modelDir.empty()
                                 ? plan::findModelFolder(plan, planPath)
                                 : options.modelDir;
  impl->files = plan::filesOf(plan, planPath, impl->options.dataFolder);
  if (!options.weights.empty()) {
    WeightsRequest request{options.weights,          options.tied,
                           options.leaveOut,         {},
                           impl->options.dataFolder, options.warn};
    for (auto state : plan.getBody().getOps<StateOp>())
      request.names.insert(state.getSymName().str());
    if (llvm::Error error = useWeights(programs, request))
      return error;
  }
  if (!options.resume.empty()) {
    auto resumed = resumeFrom(programs, options.resume,
                              impl->options.dataFolder, options.warn);
    if (!resumed)
      return resumed.takeError();
    impl->resumed = std::move(*resumed);
  }
  setSeed(*impl->program, options.seed ? *options.seed : seedOf(impl->resumed));

  impl->options.timeout = *timeout;
  impl->options.trace = options.trace;
  // A stage more than there are requests would have nothing to do.
  impl->options.maxInFlight =
      static_cast<int32_t>(impl->program->stages.size()) + 1;
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

static llvm::Expected<std::unique_ptr<rt::Executor>>
createExecutor(std::shared_ptr<const rt::Program> program,
               const rt::BackendOptions &backends,
               const rt::ExecutorOptions &options) {
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

llvm::Error Session::start() {
  for (const auto &program :
       {impl->program, impl->evaluationProgram, impl->preparationProgram})
    if (program)
      if (llvm::Error error = checkFiles(*program, impl->options.dataFolder))
        return error;
  if (impl->preparationProgram)
    if (llvm::Error error = prepareStates(impl->preparationProgram,
                                          impl->backends, impl->options))
      return error;
  auto executor = createExecutor(impl->program, impl->backends, impl->options);
  if (!executor)
    return executor.takeError();
  impl->executor = std::move(*executor);
  // Its ranks hold what they use of it.
  impl->options.prepared.reset();
  if (!impl->evaluationProgram)
    return llvm::Error::success();
  rt::ExecutorOptions options = impl->options;
  options.owner = impl->executor.get();
  auto evaluation =
      createExecutor(impl->evaluationProgram, impl->backends, options);
  if (!evaluation)
    return evaluation.takeError();
  impl->evaluation = std::move(*evaluation);
  return llvm::Error::success();
}

llvm::Expected<std::vector<HostTensor>>
Session::run(const std::vector<HostTensor> &inputs) {
  return impl->executor->run(inputs);
}
