//===- DryRun.cpp - What the best layouts really take ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DryRun.h"

#include "ax/Dialect/Ax.h"
#include "ax/Driver/MakePlan.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace ax;

static std::string readAll(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

static llvm::Expected<std::string> findAxrun() {
  std::string own = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&findAxrun));
  auto found = llvm::sys::findProgramByName(
      "axrun", {llvm::sys::path::parent_path(own)});
  if (!found)
    return makeError(ExitCode::InputOutput,
                     "--dry-run: there is no axrun beside '" + own + "'");
  return *found;
}

namespace {

class DryRun {
public:
  DryRun(std::string axrun, std::string folder, const Options &options)
      : axrun(std::move(axrun)), folder(std::move(folder)), options(options) {}

  /// Returns the seconds of a step.
  llvm::Expected<double> measure(const Strategy &strategy, size_t number,
                                 bool isFirst) const {
    if (isFirst)
      if (llvm::Error error = writePlan(strategy, number))
        return error;
    std::vector<std::string> words = {axrun,
                                      planOf(number),
                                      "--random-inputs=1",
                                      "--warmup=1",
                                      "--random-weights=1",
                                      "--iterations=3",
                                      "--in-flight=1",
                                      "--json=" + inFolder("times.json")};
    if (auto machine = driver::machineOf(options);
        machine && !machine->target.empty())
      words.push_back("--device=cuda");
    std::string output = inFolder("output");
    std::optional<llvm::StringRef> streams[] = {"", output, output};
    int code = llvm::sys::ExecuteAndWait(
        axrun, llvm::SmallVector<llvm::StringRef>(words.begin(), words.end()),
        std::nullopt, streams);
    std::optional<double> milliseconds = readMedian();
    if (code || !milliseconds)
      return makeError(ExitCode::RunFailed,
                       "--dry-run: " + search::flagsOf(strategy) + ": " +
                           llvm::StringRef(readAll(output)).trim());
    return *milliseconds * 1e-3;
  }

private:
  /// Makes the plan of a strategy, which has this number from then on.
  llvm::Error writePlan(const Strategy &strategy, size_t number) const;
  /// Nothing where axrun has not come so far.
  std::optional<double> readMedian() const {
    auto times = llvm::json::parse(readAll(inFolder("times.json")));
    if (!times) {
      llvm::consumeError(times.takeError());
      return std::nullopt;
    }
    const llvm::json::Object *object = times->getAsObject();
    return object ? object->getNumber("median_ms") : std::nullopt;
  }

  std::string inFolder(llvm::StringRef name) const {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }

  std::string planOf(size_t number) const {
    return inFolder(std::to_string(number) + ".mlir");
  }

  std::string axrun, folder;
  const Options &options;
};

} // namespace

llvm::Error DryRun::writePlan(const Strategy &strategy, size_t number) const {
  mlir::MLIRContext context;
  context.loadDialect<AxDialect>();
  driver::Diagnostics diagnostics(context);
  driver::ModelOptions one = options;
  one.search.reset();
  one.strategy = strategy;
  auto plan = driver::makePlan(options.input, one, diagnostics,
                               [](const std::string &) {});
  if (!plan)
    return plan.takeError();
  return plan::writePlan(**plan, planOf(number));
}

llvm::Error ax::measureBest(search::Result &found, int64_t count,
                            const Options &options) {
  auto axrun = findAxrun();
  if (!axrun)
    return axrun.takeError();
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("axopt-dry-run", folder))
    return makeError(ExitCode::InputOutput,
                     "--dry-run: cannot make a folder for plans: " +
                         code.message());
  llvm::scope_exit remove([&] { llvm::sys::fs::remove_directories(folder); });
  DryRun run(*axrun, folder.str().str(), options);
  llvm::MutableArrayRef<search::Candidate> all(found.candidates);
  auto numFit = llvm::count_if(all, [](const auto &one) { return one.fits; });
  auto best = all.take_front(std::min<int64_t>(count, numFit));
  // In turns, so that what else the machine does for a while disturbs all.
  constexpr int numRounds = 3;
  std::string cause;
  for (int round = 0; round < numRounds; ++round)
    for (auto [number, one] : llvm::enumerate(best)) {
      if (!one.fault.empty())
        continue;
      auto seconds = run.measure(one.strategy, number, /*isFirst=*/round == 0);
      if (seconds)
        one.measuredSeconds =
            std::min(*seconds, one.measuredSeconds.value_or(*seconds));
      else
        one.fault = describeError(seconds.takeError()).message;
      one.fits = one.fault.empty();
      if (cause.empty())
        cause = one.fault;
    }
  llvm::stable_sort(all, search::isBetter);
  return all.front().measuredSeconds || cause.empty()
             ? llvm::Error::success()
             : makeError(ExitCode::RunFailed, cause);
}
