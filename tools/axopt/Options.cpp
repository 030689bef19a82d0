//===- Options.cpp - The command line of axopt ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"
#include "ax/Cost/Schedule.h"
#include "ax/Passes/Passes.h"
#include "ax/Runtime/Npy.h"
#include "ax/Support/Error.h"
#include "ax/Support/FlagTable.h"
#include "ax/Support/Flags.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/PlanFiles.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"

using namespace ax;

namespace {
#define AX_FLAGS_INC "axoptFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

/// `NAME=VALUE`.
llvm::Expected<std::pair<llvm::StringRef, llvm::StringRef>>
splitPair(llvm::StringRef flag, llvm::StringRef text) {
  auto [name, value] = text.rsplit('=');
  if (name.empty() || value.empty())
    return usage("--" + flag + "=" + text + ": expected NAME=VALUE");
  return std::pair(name, value);
}

llvm::Error twice(llvm::StringRef flag, llvm::StringRef name) {
  return usage("--" + flag + " of '" + name + "' is given twice");
}

llvm::Error readDims(const CommandLine &flags, import::ImportOptions &options,
                     std::vector<std::string> &files) {
  for (const std::string &text : flags.list(OPT_dim)) {
    auto pair = splitPair("dim", text);
    if (!pair)
      return pair.takeError();
    int64_t size;
    if (pair->second.getAsInteger(10, size) || size < 0)
      return usage("--dim=" + text + ": the size must be 0 or more");
    if (!options.dims.try_emplace(pair->first.str(), size).second)
      return twice("dim", pair->first);
  }
  for (const std::string &text : flags.list(OPT_shape)) {
    auto pair = splitPair("shape", text);
    if (!pair)
      return pair.takeError();
    llvm::SmallVector<llvm::StringRef> parts;
    pair->second.split(parts, 'x');
    Shape shape;
    for (llvm::StringRef part : parts)
      if (int64_t size; !part.getAsInteger(10, size) && size >= 0)
        shape.push_back(size);
    if (shape.size() != parts.size())
      return usage("--shape=" + text + ": expected sizes like 8x128");
    if (!options.shapes.try_emplace(pair->first.str(), shape).second)
      return twice("shape", pair->first);
  }
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
      return twice("const", name);
  }
  for (const std::string &text : flags.list(OPT_max)) {
    auto [node, number] = llvm::StringRef(text).rsplit('=');
    int64_t count = 0;
    if (node.empty() || number.getAsInteger(10, count) || count < 1 ||
        count > (1 << 24))
      return usage("--max=" + text + ": expected NODE=N, N from 1 to 16777216");
    options.maxResults.emplace_back(node.str(), count);
  }
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

/// Flags beside what a strategy's file says.
llvm::Error readTraining(const CommandLine &flags, Options &options) {
  std::optional<Training> &training = options.strategy.training;
  if (flags.has(OPT_train) && !flags.isOn(OPT_train))
    training.reset();
  bool onlyLooks = options.inspect != Inspect::No;
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
  flags.read(OPT_loss, training->loss);
  flags.read(OPT_optimizer, training->optimizer);
  flags.read(OPT_lr_schedule, training->learningRateSchedule);
  flags.read(OPT_param_group, training->groups);
  flags.read(OPT_clip_norm, training->clipNorm);
  flags.read(OPT_trainable, training->trainable);
  flags.read(OPT_frozen, training->frozen);
  flags.read(OPT_frozen_rows, training->frozenRows);
  flags.read(OPT_checkpoint, training->recompute);
  flags.read(OPT_precision, training->precision);
  flags.read(OPT_dropout, training->dropout);
  flags.read(OPT_batchnorm, training->batchNorm);
  if (training->loss.empty() && !onlyLooks)
    return usage("--train needs a loss: --loss='cross_entropy(logits,labels)'");
  if (!(training->dropout >= 0 && training->dropout < 1))
    return usage("--dropout is a rate from 0 to less than 1");
  if (!training->batchNorm.empty()) {
    if (training->batchNorm != "train" && training->batchNorm != "frozen")
      return usage("--batchnorm=" + training->batchNorm +
                   ": expected train or frozen");
    options.import.batchStatistics = training->batchNorm == "train";
    if (*options.import.batchStatistics && options.strategy.micro > 1)
      return usage("--batchnorm=train needs all of the batch at once: with "
                   "--micro-batches use --batchnorm=frozen");
  }
  if (!(training->clipNorm >= 0))
    return usage("--clip-norm must not be negative");
  options.import.training = true;
  return llvm::Error::success();
}

/// Of what ZeRO splits only training has any, and only data splits it.
llvm::Error checkZero(const Strategy &strategy) {
  if (!strategy.zero)
    return llvm::Error::success();
  if (strategy.zero < 0 || strategy.zero > 3)
    return usage("--zero is 1, 2 or 3");
  std::string zero = "--zero=" + std::to_string(strategy.zero);
  if (!strategy.training)
    return usage(zero + " splits what training keeps: add --train");
  if (strategy.data < 2)
    return usage(zero + " splits what training keeps over data: add --dp=D, "
                        "at least 2");
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

/// Of a pipeline that trains.
llvm::Error checkSchedule(const CommandLine &flags, const Strategy &strategy) {
  if (strategy.pipe == 1 &&
      (flags.has(OPT_schedule) || flags.has(OPT_virtual_stages)))
    return usage("--schedule and --virtual-stages are for pipelines: add "
                 "--pp=2 or more");
  return strategy.checkSchedule();
}

/// `data,depth,row,col,pipe`.
static llvm::Error readOrder(llvm::StringRef text, Strategy &strategy) {
  llvm::SmallVector<llvm::StringRef> names;
  text.split(names, ',');
  strategy.order.clear();
  for (llvm::StringRef name : names)
    strategy.order.push_back(name.trim().str());
  auto mesh = strategy.mesh();
  return mesh ? llvm::Error::success()
              : addContext(mesh.takeError(), "--order=" + text);
}

llvm::Error readStrategy(const CommandLine &flags, Strategy &strategy) {
  if (std::string file = flags.text(OPT_strategy); !file.empty()) {
    auto read = Strategy::fromFile(file);
    if (!read)
      return read.takeError();
    strategy = *read;
  }
  flags.read(OPT_dp, strategy.data);
  flags.read(OPT_pp, strategy.pipe);
  flags.read(OPT_micro_batches, strategy.micro);
  flags.read(OPT_schedule, strategy.schedule);
  if (flags.has(OPT_virtual_stages))
    flags.read(OPT_virtual_stages, strategy.virtualStages.emplace());
  flags.read(OPT_sequence_parallel, strategy.sequenceParallel);
  flags.read(OPT_zero, strategy.zero);
  flags.read(OPT_cut, strategy.cuts);
  if (flags.has(OPT_tp)) {
    auto tensor = TensorGrid::parse(flags.text(OPT_tp));
    if (!tensor)
      return tensor.takeError();
    strategy.tensor = *tensor;
  }
  if (flags.has(OPT_order))
    if (llvm::Error error = readOrder(flags.text(OPT_order), strategy))
      return error;
  for (const std::string &text : flags.list(OPT_shard)) {
    auto pin = ShardPin::parse(text);
    if (!pin)
      return pin.takeError();
    strategy.shard.push_back(std::move(*pin));
  }
  if (llvm::Error error = checkSequence(strategy))
    return error;
  if (llvm::Error error = checkSchedule(flags, strategy))
    return error;
  auto mesh = strategy.mesh();
  return mesh ? llvm::Error::success() : mesh.takeError();
}
/// Flags of MLIR's pass manager, which LLVM's command line parses.
llvm::Error readMLIR(const CommandLine &flags) {
  registerAxPasses();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  std::vector<std::string> words{"axopt"};
  for (const std::string &text : flags.list(OPT_mlir))
    words.push_back("--mlir-" + text);
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  std::string errors;
  llvm::raw_string_ostream os(errors);
  if (llvm::cl::ParseCommandLineOptions(static_cast<int>(arguments.size()),
                                        arguments.data(), "", &os))
    return llvm::Error::success();
  llvm::StringRef first = llvm::StringRef(errors).split('\n').first;
  first.consume_front("axopt: ");
  return usage("a flag of MLIR's: " + first);
}

/// What is compiled, and for what.
llvm::Error readTarget(const CommandLine &flags, Options &options) {
  std::string idle = flags.firstOf({OPT_target, OPT_embed_weights});
  if (!flags.isOn(OPT_compile))
    return idle.empty() ? llvm::Error::success()
                        : usage(idle + " is for --compile");
  flags.read(OPT_embed_weights, options.embedWeights);
  if (!llvm::StringRef(options.output).ends_with(compiledPlanEnding))
    return usage("--compile makes a file that ends in .axc: -o model.axc");
  auto target = CpuTarget::parse(flags.has(OPT_target) ? flags.text(OPT_target)
                                                       : "native");
  if (!target)
    return target.takeError();
  options.target = std::move(*target);
  return llvm::Error::success();
}

/// A flag that would do nothing is an error.
llvm::Error checkUse(const CommandLine &flags, const Options &options) {
  if (options.verifyOnly && !options.isPlan)
    return usage("--verify checks a plan (.mlir), not a model: '" +
                 options.input + "'");
  bool isExport = flags.has(OPT_export_onnx);
  if (options.inspect != Inspect::No) {
    if (options.isPlan)
      return usage(
          "--inspect is for models: --explain and --report tell of the "
          "plan '" +
          options.input + "'");
    if (std::string idle =
            flags.firstOf({OPT_o, OPT_verify, OPT_export_onnx, OPT_weights,
                           OPT_partial, OPT_explain, OPT_report, OPT_strict,
                           OPT_save_strategy, OPT_help6_debugging});
        !idle.empty())
      return usage(idle +
                   " has no use beside --inspect, which compiles nothing");
    return llvm::Error::success();
  }
  if (!isExport && flags.has(OPT_weights))
    return usage("--weights is for --export-onnx: axrun has its own");
  if (!isExport && flags.has(OPT_partial))
    return usage("--partial is for --export-onnx");
  if (isExport && options.weights.empty())
    return usage("--export-onnx needs --weights=FILE: what is to be written "
                 "into the model");
  if (options.isCompiledPlan && !flags.has(OPT_explain))
    return usage("'" + options.input +
                 "' is a compiled plan: --explain tells of it, axrun runs it");
  std::string ofModels =
      flags.firstOf({OPT_help1_input, OPT_help2_layout, OPT_help3_training,
                     OPT_help6_debugging, OPT_export_onnx});
  if (options.isPlan && !ofModels.empty())
    return usage(ofModels + " is for models: '" + options.input +
                 "' is a plan already");
  std::string ofPlans =
      flags.firstOf({OPT_help1_input, OPT_help2_layout, OPT_help3_training,
                     OPT_help6_debugging});
  std::string ofResults = flags.firstOf({OPT_o, OPT_quiet, OPT_help5_looking});
  if (std::string idle = ofPlans.empty() ? ofResults : ofPlans;
      isExport && !idle.empty())
    return usage(idle + " has no use beside --export-onnx");
  std::string ofText = flags.firstOf({OPT_o, OPT_compile, OPT_report});
  if (options.isCompiledPlan && !ofText.empty())
    return usage(ofText + " is for models and plans as text: '" +
                 options.input + "' is compiled");
  if (options.verifyOnly && !ofResults.empty())
    return usage("--verify only checks: " + ofResults +
                 " has no use beside it");
  return llvm::Error::success();
}
} // namespace

llvm::Expected<Options> ax::parseOptions(int argc, char **argv) {
  FlagTable table("axopt", "an ONNX model as a plan that many ranks run",
                  "MODEL.onnx|PLAN.mlir [FLAG]...", AX_FLAG_TABLE);
  table.setValues(OPT_schedule, cost::PipelineSchedules::get().names());
  table.setValues(OPT_optimizer, optimizerNames());
  auto parsed = table.parse(argc, argv);
  if (!parsed)
    return parsed.takeError();
  const CommandLine &flags = *parsed;
  auto input = flags.onlyInput("MODEL.onnx|PLAN.mlir");
  if (!input)
    return input.takeError();

  Options options;
  options.input = *input;
  llvm::StringRef extension = llvm::sys::path::extension(options.input);
  options.isCompiledPlan = extension == compiledPlanEnding;
  options.isPlan = extension == ".mlir" || options.isCompiledPlan;
  flags.read(OPT_o, options.output);
  flags.read(OPT_export_onnx, options.exportOnnx);
  flags.read(OPT_weights, options.weights);
  flags.read(OPT_partial, options.isPartial);
  flags.read(OPT_save_strategy, options.saveStrategy);
  flags.read(OPT_strict, options.strict);
  flags.read(OPT_verify, options.verifyOnly);
  flags.read(OPT_quiet, options.quiet);
  flags.read(OPT_report, options.report);
  flags.read(OPT_eval, options.import.evaluationMode);
  flags.read(OPT_dump_after, options.dumpAfter);
  flags.read(OPT_dump_tensors, options.import.keptValues);
  if (llvm::Error error = readTarget(flags, options))
    return error;
  if (flags.has(OPT_explain))
    options.explain =
        flags.text(OPT_explain) == "json" ? Explain::JSON : Explain::Text;
  if (flags.has(OPT_inspect))
    options.inspect = llvm::StringSwitch<Inspect>(flags.text(OPT_inspect))
                          .Case("all", Inspect::All)
                          .Case("json", Inspect::JSON)
                          .Default(Inspect::Text);
  if (llvm::Error error = checkUse(flags, options))
    return error;
  auto ties = parseTies(flags.list(OPT_tied));
  if (!ties)
    return ties.takeError();
  options.tied = std::move(*ties);
  if (!options.tied.empty() && options.weights.empty())
    return usage("--tied is for --weights");
  options.leaveOut = flags.list(OPT_leave_out);
  if (!options.leaveOut.empty() && options.weights.empty())
    return usage("--leave-out is for --weights");
  if (llvm::Error error = readMLIR(flags))
    return error;
  for (llvm::StringRef text : flags.list(OPT_mlir))
    if (text.consume_front("pass-pipeline-crash-reproducer="))
      options.reproducer = text.str();
  flags.read(OPT_strategy, options.strategyFile);
  if (llvm::Error error = readStrategy(flags, options.strategy))
    return error;
  if (llvm::Error error = readTraining(flags, options))
    return error;
  if (llvm::Error error = checkZero(options.strategy))
    return error;
  if (llvm::Error error = readDims(flags, options.import, options.otherInputs))
    return error;
  return options;
}
