//===- Options.cpp - The command line of axrun ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"

#include "ax/Dialect/ProgramNames.h"
#include "ax/Runtime/Launcher.h"
#include "ax/Session/Job.h"
#include "ax/Support/Error.h"
#include "ax/Support/FlagTable.h"
#include "ax/Support/Flags.h"
#include "ax/Support/GivenWeights.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cstdlib>

using namespace ax;

namespace {
/// What flags are for; the names are those of Flags.td.
constexpr unsigned ForRuns = FirstUse << 0, ForComparing = FirstUse << 1,
                   ForTiming = FirstUse << 2, ForSamples = FirstUse << 3,
                   ForTraining = FirstUse << 4, ForSaving = FirstUse << 5,
                   ForEvaluation = FirstUse << 6,
                   ForEvaluationInTraining = FirstUse << 7,
                   ForTracedSteps = FirstUse << 8, ForCards = FirstUse << 9,
                   ForProcesses = FirstUse << 10,
                   ForGenerating = FirstUse << 11;

#define AX_FLAGS_INC "axrunFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

/// Whether two paths say the same, of what may not be there yet.
bool isSamePath(llvm::StringRef one, llvm::StringRef other) {
  auto normal = [](llvm::StringRef path) {
    llvm::SmallString<256> text(path);
    llvm::sys::path::remove_dots(text);
    while (text.size() > 1 && text.ends_with("/"))
      text.pop_back();
    return text;
  };
  return !one.empty() && normal(one) == normal(other);
}

/// As the command line says, or else the environment.
std::string findDevice(const CommandLine &flags) {
  std::string name = SessionOptions().device;
  if (const char *known = std::getenv("AXRUN_DEVICE"); known && *known)
    name = known;
  flags.read(OPT_device, name);
  return name;
}

/// What the command line asks for: a bit for each thing that flags are for.
unsigned findUses(const CommandLine &flags) {
  bool lists = flags.isOn(OPT_list_commands), data = flags.has(OPT_data),
       predicts = flags.has(OPT_predict), evaluates = flags.has(OPT_eval),
       generates = !lists && flags.has(OPT_generate);
  bool runs = !lists && !data && !evaluates && !generates,
       trains = !lists && data && !predicts;
  auto when = [](bool holds, unsigned use) { return holds ? use : 0; };
  return when(runs, ForRuns) | when(generates, ForGenerating) |
         when(runs && (flags.has(OPT_expect) || flags.has(OPT_test_data)),
              ForComparing) |
         when(runs && (flags.has(OPT_iterations) || flags.has(OPT_profile)),
              ForTiming) |
         when(data && !lists, ForSamples) | when(trains, ForTraining) |
         when(trains && flags.has(OPT_save), ForSaving) |
         when(evaluates && !lists && !predicts, ForEvaluation) |
         when(trains && evaluates, ForEvaluationInTraining) |
         when(trains && (flags.has(OPT_trace) || flags.has(OPT_profile) ||
                         flags.has(OPT_json)),
              ForTracedSteps) |
         when(findDevice(flags) != "cpu", ForCards) |
         when(rt::isLaunched(), ForProcesses);
}

/// What kernels are compiled for, where that is asked. A compiled plan has
/// some.
llvm::Error readTarget(const CommandLine &flags, llvm::StringRef plan,
                       std::optional<Target> &target) {
  std::string name;
  if (const char *known = std::getenv("AXRUN_TARGET");
      known && !plan.ends_with(compiledPlanEnding))
    name = known;
  flags.read(OPT_target, name);
  if (name.empty() && !flags.has(OPT_target))
    return llvm::Error::success();
  auto parsed = Target::parse(name);
  if (!parsed)
    return addContext(parsed.takeError(), "--target=" + name);
  target = std::move(*parsed);
  return llvm::Error::success();
}

/// A flag that would change nothing is a slip.
llvm::Error checkUses(const FlagTable &table, const CommandLine &flags) {
  unsigned flag = flags.firstUseless(findUses(flags));
  if (!flag)
    return llvm::Error::success();
  std::string idle = table.nameOf(flag) + " has no use in this run: ";
  if (flags.isOn(OPT_list_commands))
    return usage(idle + "--list-commands runs nothing");
  constexpr std::pair<unsigned, const char *> texts[] = {
      {ForRuns,
       "runs of one set of inputs (without --data, --eval and --generate)"},
      {ForComparing, "comparing outputs (--expect or --test-data)"},
      {ForTiming, "measuring runs (--iterations or --profile)"},
      {ForGenerating, "generating tokens (--generate)"},
      {ForSamples, "samples (--data)"},
      {ForTraining, "training (--data, without --predict)"},
      {ForSaving, "training that saves (--save)"},
      {ForEvaluation, "evaluation (--eval, without --predict)"},
      {ForEvaluationInTraining, "evaluation in training (--data and --eval)"},
      {ForTracedSteps, "steps that are traced (--trace, --profile or --json, "
                       "with --data)"},
      {ForCards, "cards (--device=cuda)"},
      {ForProcesses, "processes that mpirun, srun or torchrun starts"}};
  std::vector<std::string> uses;
  for (auto [use, text] : texts)
    if (table.usesOf(flag) & use)
      uses.push_back(text);
  return usage(idle + "it is for " + llvm::join(uses, ", or "));
}

void readPrediction(const CommandLine &flags, RunOptions &options) {
  flags.read(OPT_data, options.predict);
  flags.read(OPT_predict, options.output);
  options.session.preferredProgram = "predict";
}

/// `A..B`, or one step.
llvm::Error readTracedSteps(const CommandLine &flags, TrainOptions &training) {
  if (!flags.has(OPT_trace_steps))
    return llvm::Error::success();
  std::string text = flags.text(OPT_trace_steps);
  auto [first, last] = llvm::StringRef(text).split("..");
  if (last.empty())
    last = first;
  if (first.getAsInteger(10, training.traceFirst) ||
      last.getAsInteger(10, training.traceLast) || training.traceFirst < 1 ||
      training.traceLast < training.traceFirst)
    return usage("--trace-steps=" + text + ": expected A..B, of steps from 1");
  return llvm::Error::success();
}

llvm::Error readTraining(const CommandLine &flags, RunOptions &options) {
  bool trains = flags.has(OPT_data), measures = flags.has(OPT_eval);
  if (!trains && !measures)
    return llvm::Error::success();
  if (flags.has(OPT_tokens))
    options.tokens =
        flags.text(OPT_tokens) == "uint16" ? Tokens::U16 : Tokens::U32;
  if (flags.has(OPT_predict)) {
    readPrediction(flags, options);
    return llvm::Error::success();
  }
  std::optional<EvalOptions> eval;
  if (measures)
    eval = {flags.text(OPT_eval), {}};
  for (const std::string &name : flags.list(OPT_metric))
    for (Metric metric : {Metric::Loss, Metric::Accuracy, Metric::Perplexity})
      if (toString(metric) == name)
        eval->metrics.push_back(metric);
  if (!trains) {
    if (!flags.has(OPT_program))
      options.session.program = "eval";
    options.eval = std::move(eval);
    return llvm::Error::success();
  }
  TrainOptions &training = options.training.emplace();
  flags.read(OPT_data, training.data);
  flags.read(OPT_steps, training.steps);
  flags.read(OPT_epochs, training.epochs);
  flags.read(OPT_log_every, training.logEvery);
  if (flags.has(OPT_steps) == flags.has(OPT_epochs))
    return usage("--data needs --steps=N or --epochs=N, one of them, to train; "
                 "--predict=OUT gives what the model makes of it");
  if (training.steps < 0 || training.epochs < 0 || training.logEvery < 1 ||
      training.steps + training.epochs < 1)
    return usage("--steps, --epochs and --log-every are at least 1");
  if (llvm::Error error = readTracedSteps(flags, training))
    return error;
  training.tokens = options.tokens;
  if (flags.has(OPT_no_shuffle))
    training.shuffle = !flags.isOn(OPT_no_shuffle);
  if (flags.has(OPT_seed)) {
    flags.read(OPT_seed, training.seed.emplace());
    options.session.seed = training.seed;
  }
  if (flags.text(OPT_last) == "pad")
    training.last = LastBatch::Pad;
  if (flags.text(OPT_on_nonfinite) == "skip")
    training.onNonfinite = OnNonfinite::Skip;
  flags.read(OPT_log, training.log);
  flags.read(OPT_tensorboard, training.tensorboard);
  flags.read(OPT_save, training.save);
  flags.read(OPT_save_every, training.saveEvery);
  flags.read(OPT_save_keep, training.saveKeep);
  flags.read(OPT_save_weights, training.saveWeights);
  flags.read(OPT_eval_every, training.evalEvery);
  flags.read(OPT_quiet, training.quiet);
  flags.read(OPT_resume, options.session.resume);
  // What is started again and again has one command line.
  options.session.resumeIfAny =
      isSamePath(options.session.resume, training.save);
  if (flags.has(OPT_resume) && flags.has(OPT_weights))
    return usage("--weights has no use beside --resume");
  if (training.saveEvery < 0 || training.saveKeep < 0 || training.evalEvery < 0)
    return usage("--save-every, --save-keep and --eval-every must not be "
                 "negative");
  if (!training.saveWeights.empty() &&
      !llvm::StringRef(training.saveWeights).ends_with(".safetensors"))
    return usage("--save-weights=" + training.saveWeights +
                 ": expected FILE.safetensors, which --weights reads");
  training.eval = std::move(eval);
  training.warn = options.session.warn;
  if (training.eval)
    options.session.secondProgram = evaluationProgram.str();
  return llvm::Error::success();
}

/// `ROLE=NAME`.
llvm::Error readNames(const CommandLine &flags, GenerateOptions &generate) {
  for (const std::string &text : flags.list(OPT_names)) {
    auto [role, name] = llvm::StringRef(text).split('=');
    if (!llvm::is_contained({"tokens", "mask", "positions", "logits"}, role) ||
        name.empty())
      return usage("--names=" + text +
                   ": expected tokens, mask, positions or logits, and =NAME");
    generate.names[role.str()] = name.str();
  }
  return llvm::Error::success();
}

llvm::Error readGenerating(const CommandLine &flags, RunOptions &options) {
  if (!flags.has(OPT_generate))
    return llvm::Error::success();
  GenerateOptions &generate = options.generate.emplace();
  options.session.secondProgram = prefillProgram.str();
  SamplingOptions &sampling = generate.sampling;
  flags.read(OPT_generate, generate.count);
  flags.read(OPT_prompt, options.prompt);
  flags.read(OPT_temperature, sampling.temperature);
  flags.read(OPT_top_k, sampling.topK);
  flags.read(OPT_top_p, sampling.topP);
  flags.read(OPT_seed, sampling.seed);
  for (const std::string &text : flags.list(OPT_stop))
    llvm::StringRef(text).getAsInteger(10, generate.stops.emplace_back());
  if (flags.has(OPT_data) || flags.has(OPT_eval))
    return usage("--generate and " + flags.firstOf({OPT_data, OPT_eval}) +
                 " are two things to do");
  if (generate.count < 1)
    return usage("--generate is at least 1");
  if (options.prompt.empty())
    return usage(
        "--generate needs --prompt=FILE.npy, the tokens to begin with");
  if (!(sampling.temperature >= 0) || !(sampling.topP > 0) || sampling.topP > 1)
    return usage("--temperature is not negative, and --top-p above 0 and at "
                 "most 1");
  constexpr unsigned choosing[] = {OPT_top_k, OPT_top_p, OPT_seed};
  if (std::string idle = flags.firstOf(choosing);
      sampling.temperature == 0 && !idle.empty())
    return usage(idle + " has no use without --temperature: the likeliest "
                        "token is chosen");
  return readNames(flags, generate);
}

/// A run that is not told how often is measured some times.
void readProfile(const CommandLine &flags, RunOptions &options) {
  constexpr int64_t lines = 20, runs = 10;
  if (!flags.has(OPT_profile))
    return;
  options.profile = lines;
  if (!flags.text(OPT_profile).empty())
    flags.read(OPT_profile, *options.profile);
  if (!flags.has(OPT_iterations) && !flags.has(OPT_data) &&
      !flags.has(OPT_generate))
    options.iterations = runs;
}

llvm::Error check(const CommandLine &flags, const RunOptions &options) {
  if (options.warmup < 0 ||
      (flags.has(OPT_iterations) && options.iterations < 1) ||
      (flags.has(OPT_in_flight) && options.inFlight < 1))
    return usage("--iterations and --in-flight are at least 1, --warmup is "
                 "not negative");
  if (!(options.rtol >= 0) || !(options.atol >= 0))
    return usage("--rtol and --atol must not be negative");
  return llvm::Error::success();
}
} // namespace

llvm::Expected<RunOptions> ax::parseOptions(int argc, char **argv,
                                            const Toolkit &toolkit) {
  FlagTable table(toolkit.name,
                  "runs the ranks of a plan: all in this process, or one in "
                  "each of several",
                  toolkit.input + std::string(" [FLAG]..."), AX_FLAG_TABLE);
  table.setValues(OPT_dump_after,
                  llvm::to_vector_of<llvm::StringRef>(toolkit.steps));
  if (!toolkit.testCases)
    table.hide(OPT_test_data);
  if (!toolkit.compiler) {
    table.inExamples("axrun plan.mlir",
                     toolkit.name + std::string(" plan.axc"));
    for (unsigned flag : {OPT_cache_dir, OPT_dump_after, OPT_timing,
                          OPT_separate_kernels, OPT_target})
      table.hide(flag);
  }
  auto parsed = table.parse(argc, argv);
  if (!parsed)
    return parsed.takeError();
  const CommandLine &flags = *parsed;
  if (llvm::Error error = checkUses(table, flags))
    return error;
  auto plan = flags.onlyInput(toolkit.input);
  if (!plan)
    return plan.takeError();

  RunOptions options;
  options.plan = *plan;
  for (const std::string &text : flags.list(OPT_input)) {
    auto [name, file] = splitAtFile(text);
    if (name.empty() || file.empty())
      return usage("--input=" + text + ": expected NAME=FILE.npy");
    if (llvm::any_of(options.inputs, [name = name](const auto &known) {
          return known.first == name;
        }))
      return usage("--input=" + text + ": '" + name + "' has a file already");
    options.inputs.emplace_back(name, file);
  }
  if (flags.has(OPT_random_inputs))
    flags.read(OPT_random_inputs, options.randomSeed.emplace());
  flags.read(OPT_inputs, options.inputArchive);
  flags.read(OPT_test_data, options.testData);
  options.testCases = toolkit.testCases;
  if (!options.testData.empty() && !options.testCases)
    return usage("--test-data needs ONNX's library, which is not here: give "
                 "--inputs=FILE.npz and --expect=FILE.npz");
  flags.read(OPT_output, options.output);
  options.isPadded = flags.isOn(OPT_padded);
  flags.read(OPT_expect, options.expect);
  flags.read(OPT_rtol, options.rtol);
  flags.read(OPT_atol, options.atol);
  flags.read(OPT_warmup, options.warmup);
  flags.read(OPT_iterations, options.iterations);
  flags.read(OPT_in_flight, options.inFlight);
  flags.read(OPT_list_commands, options.listing);
  flags.read(OPT_json, options.json);
  flags.read(OPT_trace, options.trace);
  readProfile(flags, options);
  SessionOptions &session = options.session;
  session.compiler = toolkit.compiler;
  flags.read(OPT_weights, session.weights);
  if (flags.has(OPT_random_weights)) {
    if (std::string other = flags.firstOf({OPT_weights, OPT_resume});
        !other.empty())
      return usage(other + " has no use beside --random-weights");
    flags.read(OPT_random_weights, session.randomWeights.emplace());
  }
  flags.read(OPT_model_dir, session.modelDir);
  auto ties = parseTies(flags.list(OPT_tied));
  if (!ties)
    return ties.takeError();
  session.tied = std::move(*ties);
  if (!session.tied.empty() && session.weights.empty())
    return usage("--tied is for --weights");
  session.leaveOut = flags.list(OPT_leave_out);
  if (!session.leaveOut.empty() && session.weights.empty())
    return usage("--leave-out is for --weights");
  flags.read(OPT_program, session.program);
  session.device = findDevice(flags);
  if (flags.has(OPT_devices)) {
    auto cards = rt::parseCards(flags.text(OPT_devices));
    if (!cards)
      return cards.takeError();
    session.cards = std::move(*cards);
  }
  constexpr double severalTimeout = 600;
  if (isOneOfSeveral())
    session.timeoutSeconds = severalTimeout;
  if (const char *name = std::getenv("AXRUN_COMM"); name && *name)
    session.communicator = name;
  flags.read(OPT_comm, session.communicator);
  options.hasCommunicator = flags.has(OPT_comm);
  flags.read(OPT_control, options.control);
  // Hosts may have their own.
  options.shared = flags.describe({OPT_cache_dir, OPT_control, OPT_model_dir});
  int64_t threads = session.threadsPerRank;
  flags.read(OPT_threads_per_rank, threads);
  // Session says what is too many.
  session.threadsPerRank =
      static_cast<int32_t>(std::clamp<int64_t>(threads, INT32_MIN, INT32_MAX));
  flags.read(OPT_flush_denormals, session.flushDenormals);
  flags.read(OPT_tf32, session.tf32);
  flags.read(OPT_nondeterministic, session.nondeterministic);
  flags.read(OPT_launch_blocking, session.launchBlocking);
  if (flags.text(OPT_capture) == "on")
    session.capture = rt::CaptureMode::On;
  else if (flags.text(OPT_capture) == "off")
    session.capture = rt::CaptureMode::Off;
  flags.read(OPT_no_host_fallback, session.noHostFallback);
  flags.read(OPT_timeout, session.timeoutSeconds);
  flags.read(OPT_flight_recorder, session.flightRecorder);
  flags.read(OPT_cache_dir, session.cacheDir);
  if (llvm::Error error = readTarget(flags, options.plan, session.target))
    return error;
  flags.read(OPT_separate_kernels, session.separateKernels);
  session.dumpAfter = flags.list(OPT_dump_after);
  flags.read(OPT_timing, session.tellTimes);
  session.trace = !options.trace.empty() || options.profile;
  session.predictsTimes =
      options.iterations || session.trace || !options.json.empty();
  session.warn = [name = toolkit.name](const std::string &text) {
    tell(name, "warning: " + text);
  };
  // Who waits looks at a terminal; a log has no use for it.
  if (llvm::errs().is_displayed() && !flags.isOn(OPT_quiet))
    session.note = [name = toolkit.name](const std::string &text) {
      tell(name, text);
    };
  if (llvm::Error error = readTraining(flags, options))
    return error;
  if (llvm::Error error = readGenerating(flags, options))
    return error;
  if (llvm::Error error = check(flags, options))
    return error;
  return options;
}
