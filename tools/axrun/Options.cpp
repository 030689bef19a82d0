//===- Options.cpp - The command line of axrun ----------------------------===//
#include "Options.h"

#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"

using namespace ax;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("axrun options");

struct Flags {
  cl::opt<std::string> plan{cl::Positional, cl::Required, cl::desc("PLAN.mlir"),
                            cl::cat(category)};
  cl::list<std::string> input{"input", cl::desc("Value of an input"),
                              cl::value_desc("NAME=FILE.npy"),
                              cl::cat(category)};
  cl::opt<std::string> inputs{"inputs", cl::desc("Values of inputs by name"),
                              cl::value_desc("FILE.npz"), cl::cat(category)};
  cl::opt<std::string> testData{
      "test-data",
      cl::desc("ONNX test-case folder: inputs, and outputs to compare with"),
      cl::value_desc("DIR"), cl::cat(category)};
  Flag<uint64_t> randomInputs{"random-inputs",
                              cl::desc("Make up inputs that are not given"),
                              cl::value_desc("SEED"), cl::cat(category)};
  cl::opt<std::string> output{"output",
                              cl::desc("Where outputs go: an archive, or a "
                                       "folder of one .npy each"),
                              cl::value_desc("FILE.npz|DIR"),
                              cl::cat(category)};
  cl::opt<std::string> expect{
      "expect", cl::desc("Outputs to compare with; exit code 1 if they differ"),
      cl::value_desc("FILE.npz"), cl::cat(category)};
  Flag<double> rtol{"rtol", cl::desc("Relative tolerance (1e-3)"),
                    cl::init(1e-3), cl::cat(category)};
  Flag<double> atol{"atol", cl::desc("Absolute tolerance (1e-5)"),
                    cl::init(1e-5), cl::cat(category)};
  cl::opt<std::string> weights{
      "weights", cl::desc("Other weights of the same names and shapes"),
      cl::value_desc("FILE|DIR"), cl::cat(category)};
  cl::opt<std::string> modelDir{"model-dir",
                                cl::desc("Folder of the plan's weight files"),
                                cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> program{
      "program", cl::desc("Which program of the plan to run (the first)"),
      cl::value_desc("NAME"), cl::cat(category)};
  Flag<int64_t> warmup{"warmup", cl::desc("Runs before those measured"),
                       cl::value_desc("N"), cl::cat(category)};
  Flag<int64_t> iterations{"iterations", cl::desc("Runs to measure"),
                           cl::value_desc("N"), cl::cat(category)};
  Flag<int64_t> inFlight{
      "in-flight",
      cl::desc("Runs at the same time, when measuring (one per stage)"),
      cl::value_desc("N"), cl::cat(category)};
  cl::opt<std::string> json{"json", cl::desc("Measurements as JSON"),
                            cl::value_desc("FILE"), cl::cat(category)};
  Flag<int32_t> threads{"threads-per-rank",
                        cl::desc("Threads that one rank computes with (1)"),
                        cl::value_desc("N"), cl::init(1), cl::cat(category)};
  cl::opt<std::string> trace{
      "trace", cl::desc("What each rank did when, for chrome://tracing"),
      cl::value_desc("FILE"), cl::cat(category)};
  Flag<double> timeout{
      "timeout",
      cl::desc("Seconds without progress of any rank that end the run (60)"),
      cl::value_desc("SECONDS"), cl::init(60), cl::cat(category)};
  cl::opt<std::string> cache{"cache-dir",
                             cl::desc("Folder of compiled kernels"),
                             cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> data{
      "data", cl::desc("Samples to train with, by input; or a file of tokens"),
      cl::value_desc("FILE.npz|DIR|TOKENS"), cl::cat(category)};
  cl::opt<Tokens> tokens{
      "tokens", cl::desc("--data and --eval are files of nothing but tokens"),
      cl::values(clEnumValN(Tokens::U16, "uint16", "two bytes each"),
                 clEnumValN(Tokens::U32, "uint32", "four bytes each")),
      cl::init(Tokens::No), cl::cat(category)};
  Flag<int64_t> steps{"steps", cl::desc("Steps to train"), cl::value_desc("N"),
                      cl::cat(category)};
  Flag<bool> noShuffle{"no-shuffle",
                       cl::desc("Samples in the order of the file"),
                       cl::cat(category)};
  Flag<uint64_t> seed{
      "seed",
      cl::desc("Decides the order of samples, and all that is random (0)"),
      cl::value_desc("SEED"), cl::cat(category)};
  cl::opt<std::string> log{"log", cl::desc("A line of JSON for each step"),
                           cl::value_desc("FILE"), cl::cat(category)};
  cl::opt<LastBatch> last{
      "last",
      cl::desc("Samples that make no whole batch at the end of an epoch"),
      cl::values(clEnumValN(LastBatch::Drop, "drop", "are left out (default)"),
                 clEnumValN(LastBatch::Pad, "pad",
                            "come with ignored ones beside them")),
      cl::init(LastBatch::Drop), cl::cat(category)};
  cl::opt<OnNonfinite> onNonfinite{
      "on-nonfinite",
      cl::desc("Steps whose loss or gradient is no finite number"),
      cl::values(clEnumValN(OnNonfinite::Stop, "stop", "end the run (default)"),
                 clEnumValN(OnNonfinite::Skip, "skip", "change nothing")),
      cl::init(OnNonfinite::Stop), cl::cat(category)};
  cl::opt<std::string> save{"save", cl::desc("Folder for checkpoints"),
                            cl::value_desc("DIR"), cl::cat(category)};
  Flag<int64_t> saveEvery{"save-every",
                          cl::desc("Steps between checkpoints (none before "
                                   "the end)"),
                          cl::value_desc("N"), cl::cat(category)};
  Flag<int64_t> saveKeep{"save-keep",
                         cl::desc("Newest checkpoints that stay (2; 0: all)"),
                         cl::value_desc("N"), cl::init(2), cl::cat(category)};
  cl::opt<std::string> saveWeights{
      "save-weights", cl::desc("The states afterwards, in one file"),
      cl::value_desc("FILE.safetensors"), cl::cat(category)};
  cl::opt<std::string> resume{
      "resume", cl::desc("Checkpoint, or folder of them, to go on from"),
      cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> eval{
      "eval", cl::desc("Samples to measure with; without --data that is all"),
      cl::value_desc("FILE.npz|DIR|TOKENS"), cl::cat(category)};
  Flag<int64_t> evalEvery{"eval-every",
                          cl::desc("Steps between measurements (none before "
                                   "the end)"),
                          cl::value_desc("N"), cl::cat(category)};
  cl::list<std::string> metric{
      "metric",
      cl::desc("What --eval measures beside the loss: accuracy (part of the "
               "labels that are predicted), perplexity (exponential of the "
               "loss), loss"),
      cl::value_desc("NAME,.."), cl::CommaSeparated, cl::cat(category)};
  Flag<bool> quiet{"quiet", cl::desc("No lines about steps"),
                   cl::cat(category)};
  Flag<bool> listing{"list-commands",
                     cl::desc("Print what every stage does, and stop"),
                     cl::cat(category)};
  Flag<bool> separate{"separate-kernels",
                      cl::desc("No fusion: every operation is a kernel"),
                      cl::cat(category)};
};

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

llvm::Error readTraining(const Flags &flags, RunOptions &options) {
  if (flags.eval.empty())
    for (const cl::Option &option :
         std::initializer_list<std::reference_wrapper<const cl::Option>>{
             flags.evalEvery, flags.metric})
      if (option.getNumOccurrences())
        return usage("--" + option.ArgStr + " is for measuring: give --eval");
  if (flags.data.empty())
    for (const cl::Option &option :
         std::initializer_list<std::reference_wrapper<const cl::Option>>{
             flags.steps, flags.noShuffle, flags.seed, flags.log, flags.save,
             flags.saveEvery, flags.saveKeep, flags.saveWeights, flags.resume,
             flags.evalEvery, flags.last, flags.onNonfinite, flags.quiet})
      if (option.getNumOccurrences())
        return usage("--" + option.ArgStr + " is for training: give --data");
  if (flags.data.empty() && flags.eval.empty())
    return flags.tokens.getNumOccurrences()
               ? usage("--tokens says what --data and --eval are: give one")
               : llvm::Error::success();
  for (const cl::Option &option :
       std::initializer_list<std::reference_wrapper<const cl::Option>>{
           flags.input, flags.inputs, flags.testData, flags.randomInputs,
           flags.output, flags.expect, flags.rtol, flags.atol, flags.warmup,
           flags.iterations, flags.inFlight, flags.json, flags.trace})
    if (option.getNumOccurrences())
      return usage("--" + option.ArgStr + " has no use in training (--data)");
  std::optional<EvalOptions> eval;
  if (!flags.eval.empty())
    eval = {flags.eval, {}};
  for (const std::string &name : flags.metric) {
    constexpr Metric all[] = {Metric::Loss, Metric::Accuracy,
                              Metric::Perplexity};
    auto found = llvm::find_if(
        all, [&](Metric metric) { return toString(metric) == name; });
    if (found == std::end(all))
      return usage("--metric=" + name +
                   ": expected loss, accuracy or perplexity");
    eval->metrics.push_back(*found);
  }
  options.tokens = flags.tokens;
  if (flags.data.empty()) {
    if (flags.program.empty())
      options.session.program = "eval";
    options.eval = std::move(eval);
    return llvm::Error::success();
  }
  if (flags.steps < 1)
    return usage("--data needs --steps=N, at least 1");
  for (const Flag<int64_t> *flag :
       {&flags.saveEvery, &flags.saveKeep, &flags.evalEvery})
    if (*flag < 0)
      return usage("--" + flag->ArgStr + " must not be negative");
  if (flags.save.empty())
    for (const cl::Option &option :
         std::initializer_list<std::reference_wrapper<const cl::Option>>{
             flags.saveEvery, flags.saveKeep})
      if (option.getNumOccurrences())
        return usage("--" + option.ArgStr + " needs --save=DIR");
  TrainOptions &training = options.training.emplace();
  training.data = flags.data;
  training.steps = flags.steps;
  training.tokens = flags.tokens;
  if (flags.noShuffle.getNumOccurrences())
    training.shuffle = !flags.noShuffle;
  if (flags.seed.getNumOccurrences())
    training.seed = options.session.seed = flags.seed;
  training.last = flags.last;
  training.onNonfinite = flags.onNonfinite;
  training.log = flags.log;
  training.save = flags.save;
  training.saveEvery = flags.saveEvery;
  training.saveKeep = flags.saveKeep;
  training.saveWeights = flags.saveWeights;
  training.evalEvery = flags.evalEvery;
  training.eval = std::move(eval);
  training.quiet = flags.quiet;
  training.warn = options.session.warn;
  options.session.resume = flags.resume;
  options.session.evaluation = training.eval.has_value();
  return llvm::Error::success();
}

llvm::Error check(const RunOptions &options) {
  if (options.warmup < 0 || options.iterations < 0 || options.inFlight < 0)
    return usage("--warmup, --iterations and --in-flight must not be negative");
  if (!(options.rtol >= 0) || !(options.atol >= 0))
    return usage("--rtol and --atol must not be negative");
  return llvm::Error::success();
}
} // namespace

llvm::Expected<RunOptions> ax::parseOptions(int argc, char **argv) {
  static Flags flags;
  if (llvm::Error error =
          parseFlags(argc, argv, category,
                     "axrun: all ranks of a plan, in this process\n"))
    return error;

  RunOptions options;
  options.plan = flags.plan;
  for (llvm::StringRef text : flags.input) {
    auto [name, file] = splitAtFile(text);
    if (name.empty() || file.empty())
      return usage("--input=" + text + ": expected NAME=FILE.npy");
    options.inputs.emplace_back(name, file);
  }
  options.inputArchive = flags.inputs;
  options.testData = flags.testData;
  if (flags.randomInputs.getNumOccurrences())
    options.randomSeed = flags.randomInputs;
  options.output = flags.output;
  options.expect = flags.expect;
  options.rtol = flags.rtol;
  options.atol = flags.atol;
  options.warmup = flags.warmup;
  options.iterations = flags.iterations;
  options.inFlight = flags.inFlight;
  options.listing = flags.listing;
  options.json = flags.json;
  options.trace = flags.trace;
  options.session.weights = flags.weights;
  options.session.modelDir = flags.modelDir;
  options.session.program = flags.program;
  options.session.threadsPerRank = flags.threads;
  options.session.timeoutSeconds = flags.timeout;
  options.session.cacheDir = flags.cache;
  options.session.separateKernels = flags.separate;
  options.session.trace = !flags.trace.empty();
  options.session.warn = [](const std::string &text) {
    llvm::errs() << "axrun: warning: " << text << '\n';
  };
  if (llvm::Error error = readTraining(flags, options))
    return error;
  if (llvm::Error error = check(options))
    return error;
  return options;
}
