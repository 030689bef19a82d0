//===- Search.cpp - Which strategy is the fastest -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A beam search. It begins with every way to split the ranks by batch, by
// columns and by stages; then it looks around the best ones, one after another,
// until it has looked around the best few, and the best of each number of
// stages: what makes a pipeline fast, another schedule or more slices, is often
// several steps away from one that is slow.
//
//   --dp=8            12 ms, does not fit    ─▶  --dp=8 --zero=1, --dp=4
//   --tp=2, ...
//   --dp=4 --tp=2     14 ms                  ─▶  --dp=4 --tp=2 --zero=1, ...
//   --tp=8            31 ms
//
// What does not fit is in the order of what it needs, so that the search first
// finds what fits, and then what is fast.
//
//===----------------------------------------------------------------------===//
#include "ax/Search/Search.h"

#include "Moves.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Diagnostics.h"

#include <chrono>
#include <numeric>
#include <set>

using namespace ax;
using namespace ax::search;

/// Around how many of the best it looks.
static constexpr size_t beamWidth = 4;
/// By how much a plan has to be faster, in the prediction, for each thing more
/// that its flags say.
static constexpr double worthOfFlag = 0.01;

/// What a search does not change is in no flags, which so stand for a strategy.
static int64_t numFlags(const Strategy &strategy) {
  return llvm::StringRef(flagsOf(strategy)).count("--");
}

bool search::isBetter(const Candidate &a, const Candidate &b) {
  auto rank = [](const Candidate &one) {
    int group = !one.fault.empty() ? 3 : !one.fits ? 2 : !one.measuredSeconds;
    double price = one.fits ? one.measuredSeconds.value_or(one.seconds)
                            : static_cast<double>(one.peakBytes);
    double simple = static_cast<double>(numFlags(one.strategy));
    return std::pair(group, price * (1 + worthOfFlag * simple));
  };
  return rank(a) < rank(b);
}

/// The types of the first program's inputs that have samples.
static std::vector<mlir::RankedTensorType>
typesOfSamples(mlir::ModuleOp model) {
  std::vector<mlir::RankedTensorType> types;
  for (auto plan : model.getOps<PlanOp>()) {
    auto unbatched = plan->getAttrOfType<mlir::ArrayAttr>(kUnbatched);
    auto program = *plan.getBody().getOps<ProgramOp>().begin();
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
      auto name =
          mlir::StringAttr::get(model.getContext(), program.getArgName(i));
      auto tensor = mlir::cast<mlir::RankedTensorType>(type);
      bool isBatched =
          !unbatched || !llvm::is_contained(unbatched.getValue(), name);
      if (isBatched && tensor.getRank() > 0)
        types.push_back(tensor);
    }
  }
  return types;
}

/// Returns how many samples the model's inputs have, or what these numbers have
/// in common, but for those that have one for all; 0 where it has no inputs.
static int64_t findBatch(mlir::ModuleOp model) {
  int64_t batch = 0;
  std::vector<mlir::RankedTensorType> types = typesOfSamples(model);
  for (mlir::RankedTensorType type : types)
    if (int64_t samples = type.getDimSize(0); samples > 1)
      batch = std::gcd(batch, samples);
  return batch == 0 && !types.empty() ? 1 : batch;
}

/// Returns how many tokens a sample has, by inputs of their numbers or of their
/// features; 0 where there are no such.
static int64_t findSequence(mlir::ModuleOp model) {
  for (mlir::RankedTensorType type : typesOfSamples(model)) {
    bool isNumbers = type.getElementType().isInteger();
    if (type.getRank() == (isNumbers ? 2 : 3) && type.getDimSize(1) > 1)
      return type.getDimSize(1);
  }
  return 0;
}

namespace {

class Searcher {
public:
  Searcher(mlir::ModuleOp model, const CompileOptions &compileOptions,
           const Options &options)
      : model(model), compileOptions(compileOptions), options(options) {
    result.memoryBytes = options.memoryBytes;
    if (!result.memoryBytes && compileOptions.machine)
      result.memoryBytes = compileOptions.machine->memoryBytes;
  }

  llvm::Expected<Result> run();

private:
  double getSeconds() const {
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    return took.count();
  }
  /// Not before something was tried.
  bool isOver() {
    bool isLate =
        !result.candidates.empty() && getSeconds() >= options.timeLimit;
    result.isWhole &= !isLate;
    return isLate;
  }
  /// Puts the candidates in order, and returns the one to look around next;
  /// null where there is none.
  const Candidate *findNext();
  /// Returns whether there is such a plan.
  bool tryOnce(const Strategy &strategy);
  void price(Candidate &candidate);
  llvm::Error check() const;

  mlir::ModuleOp model;
  const CompileOptions &compileOptions;
  const Options &options;
  Result result;
  /// By flags: those that were tried, and those that were looked around.
  std::set<std::string> tried, left;
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

} // namespace

llvm::Expected<Result> Searcher::run() {
  const Strategy &strategy = compileOptions.strategy;
  Space space{options.devices, options.fixed, findBatch(model),
              findSequence(model)};
  auto beginnings = findBeginnings(strategy, space);
  for (const std::vector<Strategy> &group : beginnings)
    for (const Strategy &first : group)
      if (isOver() || tryOnce(first))
        break;
  while (const Candidate *next = findNext()) {
    if (isOver())
      break;
    for (const Strategy &other : findNeighbours(next->strategy, space))
      if (!isOver())
        tryOnce(other);
  }
  result.seconds = getSeconds();
  if (llvm::Error error = check())
    return error;
  return std::move(result);
}

const Candidate *Searcher::findNext() {
  llvm::stable_sort(result.candidates, isBetter);
  std::set<int64_t> stages;
  for (auto [place, one] : llvm::enumerate(result.candidates)) {
    bool isFirst = stages.insert(one.strategy.pipe).second;
    if (one.fault.empty() && (isFirst || place < beamWidth) &&
        left.insert(flagsOf(one.strategy)).second)
      return &one;
  }
  return nullptr;
}

llvm::Error Searcher::check() const {
  std::string ranks = "--devices=" + std::to_string(options.devices);
  if (result.candidates.empty())
    return makeError(ExitCode::Usage,
                     ranks + ": what flags say leaves nothing to choose: sizes "
                             "do not divide it, or --zero has no --dp, "
                             "--sequence-parallel no --tp, --schedule no --pp");
  const Candidate &best = result.candidates.front();
  if (!best.fault.empty())
    return makeError(ExitCode::Usage,
                     ranks + ": no layout makes a plan; " +
                         flagsOf(best.strategy) + ": " + best.fault +
                         (result.isWhole ? ""
                                         : "; --time-limit left others "
                                           "out"));
  if (!best.fits)
    return makeError(
        ExitCode::Usage,
        ranks + ": no layout of " + llvm::Twine(result.candidates.size()) +
            " fits into " + bytesText(result.memoryBytes) + " a rank; " +
            flagsOf(best.strategy) + " needs " + bytesText(best.peakBytes) +
            ": take more devices, " +
            (result.isWhole
                 ? "a smaller batch, or an --optimizer or --precision that "
                   "needs less"
                 : "or a longer --time-limit"));
  return llvm::Error::success();
}

bool Searcher::tryOnce(const Strategy &strategy) {
  if (!tried.insert(flagsOf(strategy)).second)
    return false;
  Candidate &candidate = result.candidates.emplace_back();
  candidate.strategy = strategy;
  price(candidate);
  candidate.fits =
      candidate.fault.empty() &&
      (!result.memoryBytes || candidate.peakBytes <= result.memoryBytes);
  return candidate.fault.empty();
}

void Searcher::price(Candidate &candidate) {
  // What is said of a plan that nobody gets.
  mlir::ScopedDiagnosticHandler silent(
      model.getContext(), [](mlir::Diagnostic &diagnostic) {
        return mlir::success(diagnostic.getSeverity() !=
                             mlir::DiagnosticSeverity::Error);
      });
  CompileOptions how;
  how.strategy = candidate.strategy;
  how.strict = compileOptions.strict;
  how.evaluationMode = compileOptions.evaluationMode;
  how.machine = compileOptions.machine;
  mlir::OwningOpRef<mlir::ModuleOp> plan = model.clone();
  if (llvm::Error error = compile(*plan, how)) {
    candidate.fault = describeError(std::move(error)).message;
    return;
  }
  cost::Predictions predictions;
  for (auto each : plan->getOps<PlanOp>())
    for (auto program : each.getBody().getOps<ProgramOp>()) {
      auto lists = codegen::predict(program);
      if (!lists) {
        candidate.fault = describeError(lists.takeError()).message;
        return;
      }
      predictions.insert(lists->begin(), lists->end());
    }
  auto prediction = plan::predictStep(*plan, predictions);
  candidate.seconds = prediction.seconds;
  candidate.peakBytes = prediction.peakBytes;
}

llvm::Expected<Result> search::search(mlir::ModuleOp model,
                                      const CompileOptions &compileOptions,
                                      const Options &options) {
  return Searcher(model, compileOptions, options).run();
}
