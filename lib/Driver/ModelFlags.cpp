//===- ModelFlags.cpp - Flags of input, layout and training ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Driver/ModelFlags.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Cost/Schedule.h"
#include "ax/Passes/Passes.h"
#include "ax/Runtime/Npy.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"

#include <set>

using namespace ax;
using namespace ax::driver;

namespace {
#define AX_FLAGS_INC "axoptFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

llvm::Error readDims(const CommandLine &flags, import::ImportOptions &options,
                     std::vector<std::string> &files) {
  for (const std::string &text : flags.list(OPT_dim))
    if (llvm::Error error = import::addDim(options, text))
      return error;
  for (const std::string &text : flags.list(OPT_shape))
    if (llvm::Error error = import::addShape(options, text))
      return error;
  flags.read(OPT_unbatched, options.unbatched);
  for (const std::string &text : flags.list(OPT_const)) {
    auto [name, file] = splitAtFile(text);
    if (name.empty() || file.empty())
      return usage("--const=" + text + ": expected INPUT=FILE.npy");
    files.push_back(file.str());
    llvm::Expected<HostTensor> tensor = rt::readNpy(file.str());
    if (!tensor)
      return tensor.takeError();
    if (!options.constants.try_emplace(name.str(), std::move(*tensor)).second)
      return usage("--const of '" + name + "' is given twice");
  }
  for (const std::string &text : flags.list(OPT_max)) {
    auto [node, number] = llvm::StringRef(text).rsplit('=');
    int64_t count = 0;
    if (node.empty() || number.getAsInteger(10, count) || count < 1 ||
        count > (1 << 24))
      return usage("--max=" + text + ": expected NODE=N, N from 1 to 16777216");
    options.maxResults.emplace_back(node.str(), count);
  }
  for (const std::string &text : flags.list(OPT_carry))
    if (llvm::Error error = import::addCarry(options, text))
      return error;
  for (const std::string &text : flags.list(OPT_prefill))
    if (llvm::Error error = import::addPrefill(options, text))
      return error;
  if (!options.prefill.empty() && options.carried.empty())
    return usage("--prefill is for models that carry something (--carry)");
  if (!options.carried.empty() && (options.training || options.evaluationMode))
    return usage("--carry is not for " +
                 llvm::Twine(options.training ? "--train" : "--eval") +
                 ": it takes a model for inference as it was exported");
  if (!options.maxResults.empty() && options.training)
    return usage("--max is not for --train: --eval takes the model for "
                 "inference");
  std::string testData = flags.text(OPT_test_data);
  if (testData.empty())
    return llvm::Error::success();
  for (const char *prefix : {"input", "output"})
    llvm::append_range(files, import::filesOfTestData(testData, prefix));
  auto examples = import::readTestData(testData, "input");
  if (!examples)
    return examples.takeError();
  if (examples->empty())
    return makeError(ExitCode::InputOutput,
                     "--test-data=" + testData + ": there is no input_0.pb");
  options.examples = std::move(*examples);
  return llvm::Error::success();
}

llvm::Error readValues(const CommandLine &flags, Training &training) {
  flags.read(OPT_trainable, training.trainable);
  flags.read(OPT_frozen, training.frozen);
  llvm::Error error = llvm::Error::success();
  auto parse = [&](unsigned flag, auto &value) {
    if (!error)
      error = flags.parse(flag, value);
  };
  parse(OPT_clip_norm, training.clipNorm);
  parse(OPT_dropout, training.dropout);
  if (flags.has(OPT_loss))
    parse(OPT_loss, training.loss.emplace());
  parse(OPT_optimizer, training.optimizer);
  parse(OPT_lr_schedule, training.learningRateSchedule);
  parse(OPT_param_group, training.groups);
  parse(OPT_frozen_rows, training.frozenRows);
  parse(OPT_recompute, training.recompute);
  parse(OPT_batchnorm, training.batchNorm);
  return error;
}

/// Flags beside what a strategy's file says.
llvm::Error readTraining(const CommandLine &flags, bool onlyLooks,
                         ModelOptions &options) {
  std::optional<Training> &training = options.strategy.training;
  if (flags.has(OPT_train) && !flags.isOn(OPT_train))
    training.reset();
  if (!flags.isOn(OPT_train) && !training) {
    std::string idle =
        flags.firstOf({OPT_help3_training, OPT_schedule, OPT_virtual_stages});
    if (idle.empty() || flags.has(OPT_train))
      return llvm::Error::success();
    if (!onlyLooks)
      return usage(idle + " is for training: add --train");
  }
  if (flags.isOn(OPT_eval))
    return usage("--eval has no use beside --train: the plan has a program in "
                 "evaluation mode");
  if (!training)
    training.emplace();
  if (llvm::Error error = readValues(flags, *training))
    return error;
  if (!training->loss && !onlyLooks)
    return usage("--train needs a loss: --loss='cross_entropy(logits,labels)'");
  if (!(training->dropout >= 0 && training->dropout < 1))
    return usage("--dropout is a rate from 0 to less than 1");
  options.import.batchStatistics = training->batchNorm.isByBatch;
  options.import.batchParts = training->batchNorm.numParts;
  if (!(training->clipNorm >= 0))
    return usage("--clip-norm must not be negative");
  options.import.training = true;
  return llvm::Error::success();
}

/// Scales of eight bits are what training has seen.
llvm::Error checkPrecision(const Strategy &strategy) {
  if (strategy.training || strategy.precision.type != Precision::FP8)
    return llvm::Error::success();
  return usage("--precision=fp8 is for training: add --train; for inference "
               "take bf16, or a model that is quantised");
}

/// Checks that there is something for ZeRO to split, which only training keeps,
/// and an axis over which it does.
llvm::Error checkZero(const Strategy &strategy, bool isWhole) {
  if (!strategy.zero)
    return llvm::Error::success();
  if (strategy.zero < 0 || strategy.zero > 3)
    return usage("--zero is 1, 2 or 3");
  std::string zero = "--zero=" + std::to_string(strategy.zero);
  if (!strategy.training)
    return usage(zero + " splits what training keeps: add --train");
  if (isWhole && strategy.data < 2 && strategy.context < 2)
    return usage(zero + " splits what training keeps over data: add --dp=D (or "
                        "--cp=C), at least 2");
  return llvm::Error::success();
}

/// What it splits lies between pairs of one all-reduce.
llvm::Error checkSequence(const Strategy &strategy) {
  const TensorGrid &tensor = strategy.tensor;
  if (!strategy.sequenceParallel || (tensor.col > 1 && tensor.row == 1))
    return llvm::Error::success();
  if (tensor.row > 1)
    return usage("--sequence-parallel is for --tp of one row: over more, what "
                 "lies between layers is split already");
  return usage("--sequence-parallel splits what lies between tensor-parallel "
               "pairs: add --tp=T, at least 2");
}

/// Checks that what flags say of a schedule fits a pipeline.
llvm::Error checkSchedule(const CommandLine &flags, const Strategy &strategy) {
  if (strategy.pipe == 1 &&
      (flags.has(OPT_schedule) || flags.has(OPT_virtual_stages)))
    return usage("--schedule and --virtual-stages are for pipelines: add "
                 "--pp=2 or more");
  return strategy.checkSchedule();
}

/// Reads what a search is to find, and what stays.
llvm::Error readSearch(const CommandLine &flags, ModelOptions &options) {
  if (!flags.isOn(OPT_auto)) {
    std::string idle =
        flags.firstOf({OPT_devices, OPT_dry_run, OPT_memory, OPT_time_limit});
    return idle.empty() ? llvm::Error::success()
                        : usage(idle + " is for --auto");
  }
  if (!flags.has(OPT_devices))
    return usage("--auto needs --devices=N: how many ranks there are");
  for (unsigned flag : {OPT_strategy, OPT_virtual_stages, OPT_cut})
    if (std::string given = flags.firstOf({flag}); !given.empty())
      return usage(given + " has no use beside --auto: give the flags that are "
                           "to stay");
  search::Options &search = options.search.emplace();
  flags.read(OPT_devices, search.devices);
  if (search.devices < 1 || search.devices > Strategy::maxRanks)
    return usage("--devices is from 1 to " + llvm::Twine(Strategy::maxRanks));
  if (flags.has(OPT_memory)) {
    std::string size = flags.text(OPT_memory);
    std::optional<int64_t> bytes = parseBytes(size);
    // 80 is hardly meant to be bytes.
    if (!bytes || llvm::isDigit(size.back()))
      return usage("--memory=" + flags.text(OPT_memory) +
                   ": give a size, as 24GiB (units: " + byteUnits + ")");
    search.memoryBytes = *bytes;
  }
  if (flags.has(OPT_time_limit)) {
    std::optional<double> seconds = parseNumber(flags.text(OPT_time_limit));
    if (!seconds || *seconds < 0)
      return usage("--time-limit=" + flags.text(OPT_time_limit) +
                   ": give seconds");
    search.timeLimit = *seconds;
  }
  search.fixed.data = flags.has(OPT_dp);
  search.fixed.context = flags.has(OPT_cp);
  search.fixed.tensor = flags.has(OPT_tp);
  search.fixed.pipe = flags.has(OPT_pp);
  search.fixed.micro = flags.has(OPT_micro_batches);
  search.fixed.schedule = flags.has(OPT_schedule);
  search.fixed.sequenceParallel = flags.has(OPT_sequence_parallel);
  search.fixed.zero = flags.has(OPT_zero);
  search.fixed.recompute = flags.has(OPT_recompute);
  return llvm::Error::success();
}

/// `data,depth,row,col,pipe`.
llvm::Error readOrder(llvm::StringRef text, Strategy &strategy) {
  llvm::SmallVector<llvm::StringRef> names;
  text.split(names, ',');
  strategy.order.clear();
  for (llvm::StringRef name : names)
    strategy.order.push_back(name.trim().str());
  auto mesh = strategy.mesh();
  return mesh ? llvm::Error::success()
              : addContext(mesh.takeError(), "--order=" + text);
}

/// `isWhole`: no search makes up what flags have no use without.
llvm::Error readStrategy(const CommandLine &flags, bool isWhole,
                         Strategy &strategy) {
  if (std::string file = flags.text(OPT_strategy); !file.empty()) {
    auto read = Strategy::fromFile(file);
    if (!read)
      return read.takeError();
    strategy = *read;
  }
  flags.read(OPT_dp, strategy.data);
  flags.read(OPT_cp, strategy.context);
  flags.read(OPT_pp, strategy.pipe);
  flags.read(OPT_micro_batches, strategy.micro);
  if (flags.has(OPT_virtual_stages))
    flags.read(OPT_virtual_stages, strategy.virtualStages.emplace());
  flags.read(OPT_sequence_parallel, strategy.sequenceParallel);
  flags.read(OPT_zero, strategy.zero);
  flags.read(OPT_cut, strategy.cuts);
  if (llvm::Error error = flags.parse(OPT_precision, strategy.precision))
    return error;
  if (llvm::Error error = flags.parse(OPT_schedule, strategy.schedule))
    return error;
  if (llvm::Error error = flags.parse(OPT_tp, strategy.tensor))
    return error;
  if (flags.has(OPT_order))
    if (llvm::Error error = readOrder(flags.text(OPT_order), strategy))
      return error;
  std::vector<ShardPin> pins;
  if (llvm::Error error = flags.parse(OPT_shard, pins))
    return error;
  llvm::append_range(strategy.shard, pins);
  if (isWhole) {
    if (llvm::Error error = checkSequence(strategy))
      return error;
    if (llvm::Error error = checkSchedule(flags, strategy))
      return error;
  }
  auto mesh = strategy.mesh();
  return mesh ? llvm::Error::success() : mesh.takeError();
}
} // namespace

FlagTable driver::axoptFlags() {
  FlagTable table("axopt", "an ONNX model as a plan that many ranks run",
                  "MODEL.onnx|PLAN.mlir [FLAG]...", AX_FLAG_TABLE);
  table.setValues(OPT_schedule, cost::PipelineSchedules::get().names());
  table.setValues(OPT_optimizer, optimizerNames());
  table.addValues(OPT_dump_after, codegen::stepNames());
  return table;
}

llvm::Error driver::readModelFlags(const CommandLine &flags, bool onlyLooks,
                                   ModelOptions &options) {
  flags.read(OPT_strict, options.strict);
  flags.read(OPT_eval, options.import.evaluationMode);
  flags.read(OPT_dump_tensors, options.import.keptValues);
  flags.read(OPT_strategy, options.strategyFile);
  if (llvm::Error error = readSearch(flags, options))
    return error;
  if (llvm::Error error =
          readStrategy(flags, /*isWhole=*/!options.search, options.strategy))
    return error;
  int64_t context = options.strategy.context;
  if (options.search && options.search->devices % context)
    return usage("--devices=" + llvm::Twine(options.search->devices) +
                 ": --cp=" + llvm::Twine(context) + " does not divide them");
  if (flags.has(OPT_machine))
    if (llvm::Error error = flags.parse(OPT_machine, options.machine.emplace()))
      return error;
  if (llvm::Error error = readTraining(flags, onlyLooks, options))
    return error;
  if (llvm::Error error = checkPrecision(options.strategy))
    return error;
  if (llvm::Error error =
          checkZero(options.strategy, /*isWhole=*/!options.search))
    return error;
  return readDims(flags, options.import, options.otherInputs);
}

llvm::Error driver::readTarget(const CommandLine &flags,
                               ModelOptions &options) {
  flags.read(OPT_embed_weights, options.embedWeights);
  options.targets = {Target::native()};
  if (llvm::Error error = flags.parse(OPT_target, options.targets))
    return error;
  std::set<std::string> names;
  for (const Target &target : options.targets)
    if (!names.insert(target.toText()).second)
      return usage("--target has '" + target.toText() + "' twice");
  return llvm::Error::success();
}

/// Returns a flag of the tool alone that is given; empty: there is none.
static std::string firstOfTool(const CommandLine &flags) {
  return flags.firstOf({OPT_save_strategy, OPT_dry_run, OPT_o, OPT_compile,
                        OPT_verify, OPT_export_onnx, OPT_weights, OPT_partial,
                        OPT_quiet, OPT_tied, OPT_leave_out, OPT_help5_looking,
                        OPT_dump_after, OPT_mlir, OPT_help9_about});
}

llvm::Expected<ModelOptions>
driver::parseModelFlags(llvm::ArrayRef<std::string> words) {
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  FlagTable table = axoptFlags();
  auto flags = table.parseFlags(arguments);
  if (!flags)
    return flags.takeError();
  if (auto input = flags->onlyInput("")) {
    return usage("'" + *input + "' is no flag");
  } else {
    llvm::consumeError(input.takeError());
  }
  if (std::string idle = firstOfTool(*flags); !idle.empty())
    return usage(idle + " is for the program axopt, not for its library");
  ModelOptions options;
  if (llvm::Error error = readTarget(*flags, options))
    return error;
  if (llvm::Error error = readModelFlags(*flags, /*onlyLooks=*/false, options))
    return error;
  return options;
}
