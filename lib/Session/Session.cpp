//===- Session.cpp - A plan, ready to run ---------------------------------===//
#include "ax/Session/Session.h"

#include "Weights.h"
#include "ax/Codegen/Codegen.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <thread>

using namespace ax;

struct Session::Impl {
  std::shared_ptr<rt::Program> program;
  std::unique_ptr<rt::Executor> executor;
};

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

const rt::Program &Session::getProgram() const { return *impl->program; }
rt::Executor &Session::getExecutor() { return *impl->executor; }

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
                                             llvm::StringRef name) {
  std::string known;
  for (auto plan : module.getOps<PlanOp>())
    for (auto program : plan.getBody().getOps<ProgramOp>()) {
      if (name.empty() || program.getSymName() == name)
        return program;
      known += " " + program.getSymName().str();
    }
  if (known.empty())
    return makeError(ExitCode::BadPlan, "the plan has no program");
  return makeError(ExitCode::Usage,
                   "the plan has no program '" + name + "', but:" + known);
}

llvm::Expected<std::unique_ptr<Session>>
Session::load(const std::string &planPath, const SessionOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  auto module = plan::readPlan(planPath, context);
  if (!module)
    return module.takeError();
  if (llvm::Error error = plan::verifyPlan(**module))
    return addContext(std::move(error), planPath);
  auto program = findProgram(**module, options.program);
  if (!program)
    return program.takeError();

  codegen::Options codegenOptions;
  codegenOptions.cacheDir =
      options.cacheDir.empty() ? defaultCache() : options.cacheDir;
  codegenOptions.numThreads =
      std::max<int64_t>(1, std::thread::hardware_concurrency());
  codegenOptions.separateKernels = options.separateKernels;
  auto generated = codegen::generate(*program, codegenOptions);
  if (!generated)
    return addContext(generated.takeError(), planPath);
  auto impl = std::make_unique<Impl>();
  impl->program = std::make_shared<rt::Program>(std::move(*generated));
  if (!options.weights.empty())
    if (llvm::Error error = useWeights(*impl->program, options.weights))
      return error;

  rt::ExecutorOptions executorOptions;
  executorOptions.dataFolder = options.modelDir;
  if (options.modelDir.empty())
    if (auto folder =
            (*program)->getParentOp()->getAttrOfType<mlir::StringAttr>(
                "ax.model_dir"))
      executorOptions.dataFolder = folder.str();
  executorOptions.threadsPerRank = options.threadsPerRank;
  executorOptions.timeout = std::chrono::milliseconds(
      static_cast<int64_t>(1000 * options.timeoutSeconds));
  executorOptions.trace = options.trace;
  // A stage more than there are requests would have nothing to do.
  executorOptions.maxInFlight =
      static_cast<int32_t>(impl->program->stages.size()) + 1;
  auto executor = rt::Executor::create(impl->program, executorOptions);
  if (!executor)
    return executor.takeError();
  impl->executor = std::move(*executor);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

llvm::Expected<std::vector<HostTensor>>
Session::run(const std::vector<HostTensor> &inputs) {
  return impl->executor->run(inputs);
}
