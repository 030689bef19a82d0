//===- Options.cpp - The command line of axopt ----------------------------===//
#include "Options.h"
#include "ax/Cost/Schedule.h"
#include "ax/Runtime/Npy.h"
#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <functional>

using namespace ax;
namespace cl = llvm::cl;

llvm::ArrayRef<llvm::StringRef> ax::phaseNames() {
  static const llvm::StringRef names[] = {
      "import", "normalize",  "raise",    "stage",   "train",
      "shard",  "checkpoint", "optimize", "pipeline"};
  return names;
}

namespace {
cl::OptionCategory category("axopt options");

struct Flags {
  cl::opt<std::string> input{cl::Positional, cl::Required,
                             cl::desc("MODEL.onnx | PLAN.mlir"),
                             cl::cat(category)};
  cl::opt<std::string> output{
      "o", cl::desc("Where the plan goes (- : standard output)"),
      cl::value_desc("FILE"), cl::init("-"), cl::cat(category)};
  cl::opt<std::string> tp{"tp",
                          cl::desc("Tensor parallel: T, or ROWSxCOLUMNSxDEPTH "
                                   "(or --tensor-parallel-size)"),
                          cl::value_desc("T|RxCxZ"), cl::cat(category)};
  Flag<int64_t> dp{"dp",
                   cl::desc("Data parallel: batch split D ways (or "
                            "--data-parallel-size)"),
                   cl::value_desc("D"), cl::cat(category)};
  Flag<int64_t> pp{"pp",
                   cl::desc("Pipeline stages (or --pipeline-parallel-size)"),
                   cl::value_desc("P"), cl::cat(category)};
  Flag<int64_t> micro{"micro-batches",
                      cl::desc("Slices of the batch, one after another"),
                      cl::value_desc("M"), cl::cat(category)};
  cl::opt<std::string> pipeSchedule{
      "schedule",
      cl::desc("Order of a pipeline that trains: 1f1b, gpipe, "
               "interleaved or zero-bubble"),
      cl::value_desc("SCHEDULE"), cl::cat(category)};
  Flag<int64_t> virtualStages{
      "virtual-stages", cl::desc("Parts of the model that each stage has"),
      cl::value_desc("V"), cl::cat(category)};
  cl::alias tpLong{"tensor-parallel-size", cl::aliasopt(tp),
                   cl::desc("Alias of --tp"), cl::cat(category)};
  cl::alias dpLong{"data-parallel-size", cl::aliasopt(dp),
                   cl::desc("Alias of --dp"), cl::cat(category)};
  cl::alias ppLong{"pipeline-parallel-size", cl::aliasopt(pp),
                   cl::desc("Alias of --pp"), cl::cat(category)};
  cl::opt<std::string> order{
      "order",
      cl::desc("Axes of the mesh, outermost first (pipe,data,depth,row,col)"),
      cl::value_desc("AXES"), cl::cat(category)};
  Flag<bool> sequenceParallel{
      "sequence-parallel",
      cl::desc("Split what lies between tensor-parallel pairs by sequence"),
      cl::cat(category)};
  Flag<int64_t> zero{
      "zero",
      cl::desc("Split over data: optimizer state and gradients (1, 2), and "
               "weights (3)"),
      cl::value_desc("1|2|3"), cl::cat(category)};
  cl::list<std::string> shard{
      "shard",
      cl::desc("Layout of a layer or tensor: colwise, rowwise, replicate, or "
               "the text of a layout"),
      cl::value_desc("PATTERN=LAYOUT"), cl::cat(category)};
  cl::list<std::string> cut{
      "cut", cl::desc("End a pipeline stage after this node or module"),
      cl::value_desc("NODE"), cl::cat(category)};
  Flag<bool> train{"train", cl::desc("A plan that trains the model"),
                   cl::cat(category)};
  cl::opt<std::string> loss{
      "loss", cl::desc("cross_entropy(logits,labels), mse(OUTPUT,TARGET), ..."),
      cl::value_desc("LOSS"), cl::cat(category)};
  cl::opt<std::string> optimizer{
      "optimizer", cl::desc("sgd(...), adam(...) or adamw(lr=1e-3,...)"),
      cl::value_desc("OPTIMIZER"), cl::init("adamw"), cl::cat(category)};
  cl::opt<std::string> schedule{
      "lr-schedule",
      cl::desc("constant, linear(...) or cosine(warmup=W,steps=N,final=F)"),
      cl::value_desc("SCHEDULE"), cl::init("constant"), cl::cat(category)};
  cl::list<std::string> paramGroup{
      "param-group",
      cl::desc("Other options of the optimizer for some weights"),
      cl::value_desc("PATTERN|rank<N:lr=..,weight_decay=.."),
      cl::cat(category)};
  Flag<double> clipNorm{"clip-norm",
                        cl::desc("Largest global norm of the gradient"),
                        cl::value_desc("NORM"), cl::cat(category)};
  Flag<double> dropout{
      "dropout",
      cl::desc("Put dropout back where exporters removed it: on embeddings, "
               "attention probabilities, and Linears before the sum with the "
               "residual"),
      cl::value_desc("RATE"), cl::cat(category)};
  cl::opt<std::string> precision{
      "precision",
      cl::desc(
          "Of Linears, products and convolutions: fp32, bf16 or fp16; weights, "
          "sums of gradients and the optimizer stay in fp32"),
      cl::value_desc("fp32|bf16|fp16"), cl::init("fp32"), cl::cat(category)};
  cl::opt<std::string> batchNorm{
      "batchnorm",
      cl::desc("BatchNormalization by the batch's statistics (train) or the "
               "running ones (frozen); as the model says if not given"),
      cl::value_desc("train|frozen"), cl::cat(category)};
  cl::opt<std::string> checkpoint{
      "checkpoint",
      cl::desc("What the backward pass computes again instead of keeping it: "
               "none, selective, full, a glob over names of nodes, or "
               "budget:2GiB (as much as makes a rank fit)"),
      cl::value_desc("MODE"), cl::init("none"), cl::cat(category)};
  cl::list<std::string> trainable{"trainable", cl::desc("Weights to train"),
                                  cl::value_desc("PATTERN"), cl::cat(category)};
  cl::list<std::string> frozen{"frozen", cl::desc("Weights not to train"),
                               cl::value_desc("PATTERN"), cl::cat(category)};
  cl::opt<std::string> strategy{"strategy",
                                cl::desc("Read all the above from a YAML file; "
                                         "flags beside it win"),
                                cl::value_desc("FILE"), cl::cat(category)};
  cl::opt<std::string> saveStrategy{
      "save-strategy", cl::desc("Write all the above to a YAML file"),
      cl::value_desc("FILE"), cl::cat(category)};
  cl::list<std::string> dim{"dim", cl::desc("Size of a symbolic dimension"),
                            cl::value_desc("NAME=N"), cl::cat(category)};
  cl::list<std::string> shape{"shape", cl::desc("Shape of an input: x=8x128"),
                              cl::value_desc("INPUT=SHAPE"), cl::cat(category)};
  cl::list<std::string> constant{
      "const", cl::desc("An input with a fixed value"),
      cl::value_desc("INPUT=FILE.npy"), cl::cat(category)};
  cl::opt<std::string> testData{
      "test-data",
      cl::desc("Take the shapes of inputs from an ONNX test-case folder"),
      cl::value_desc("DIR"), cl::cat(category)};
  Flag<bool> strict{"strict",
                    cl::desc("What cannot be split as asked is an error"),
                    cl::cat(category)};
  Flag<bool> verify{"verify", cl::desc("Only check the plan"),
                    cl::cat(category)};
  Flag<bool> quiet{"quiet", cl::desc("No summary"), cl::cat(category)};
  cl::opt<std::string> explain{
      "explain",
      cl::desc("How each layer is split and why each collective is there: "
               "text (default) or json"),
      cl::value_desc("text|json"), cl::ValueOptional, cl::cat(category)};
  cl::opt<std::string> report{
      "report", cl::desc("JSON of what every rank holds and does"),
      cl::value_desc("FILE"), cl::cat(category)};
  cl::opt<std::string> exportOnnx{
      "export-onnx", cl::desc("Only write the model again, with --weights"),
      cl::value_desc("FILE.onnx"), cl::cat(category)};
  cl::opt<std::string> weights{"weights",
                               cl::desc("Trained weights for --export-onnx"),
                               cl::value_desc("FILE|DIR"), cl::cat(category)};
  cl::list<std::string> dumpAfter{
      "dump-after",
      cl::desc("Print the IR after a phase: import, normalize, raise, stage, "
               "train, shard, checkpoint, optimize, pipeline"),
      cl::value_desc("PHASE"), cl::CommaSeparated, cl::cat(category)};
};

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

llvm::Error readDims(const Flags &flags, import::ImportOptions &options) {
  for (llvm::StringRef text : flags.dim) {
    auto pair = splitPair("dim", text);
    if (!pair)
      return pair.takeError();
    int64_t size;
    if (pair->second.getAsInteger(10, size) || size < 1)
      return usage("--dim=" + text + ": the size must be a positive number");
    options.dims[pair->first.str()] = size;
  }
  for (llvm::StringRef text : flags.shape) {
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
    options.shapes[pair->first.str()] = shape;
  }
  for (llvm::StringRef text : flags.constant) {
    auto [name, file] = splitAtFile(text);
    if (name.empty() || file.empty())
      return usage("--const=" + text + ": expected INPUT=FILE.npy");
    llvm::Expected<HostTensor> tensor = rt::readNpy(file.str());
    if (!tensor)
      return tensor.takeError();
    options.constants.emplace(name.str(), std::move(*tensor));
  }
  if (flags.testData.empty())
    return llvm::Error::success();
  auto examples = import::readTestData(flags.testData, "input");
  if (!examples)
    return examples.takeError();
  if (examples->empty())
    return makeError(ExitCode::InputOutput, "--test-data=" + flags.testData +
                                                ": there is no input_0.pb");
  options.examples = std::move(*examples);
  return llvm::Error::success();
}

/// Flags beside what a strategy's file says.
llvm::Error readTraining(const Flags &flags, Options &options) {
  std::optional<Training> &training = options.strategy.training;
  if (flags.train.getNumOccurrences() && !flags.train)
    training.reset();
  if (!flags.train && !training) {
    for (const cl::Option &option :
         std::initializer_list<std::reference_wrapper<const cl::Option>>{
             flags.loss, flags.optimizer, flags.schedule, flags.paramGroup,
             flags.clipNorm, flags.trainable, flags.frozen, flags.pipeSchedule,
             flags.virtualStages, flags.checkpoint, flags.batchNorm,
             flags.precision, flags.dropout})
      if (option.getNumOccurrences())
        return usage("--" + option.ArgStr + " is for training: add --train");
    return llvm::Error::success();
  }
  if (!training)
    training.emplace();
  if (flags.loss.getNumOccurrences())
    training->loss = flags.loss;
  if (training->loss.empty())
    return usage("--train needs a loss: --loss='cross_entropy(logits,labels)'");
  if (flags.optimizer.getNumOccurrences())
    training->optimizer = flags.optimizer;
  if (flags.schedule.getNumOccurrences())
    training->schedule = flags.schedule;
  if (flags.clipNorm.getNumOccurrences())
    training->clipNorm = flags.clipNorm;
  if (flags.checkpoint.getNumOccurrences())
    training->checkpoint = flags.checkpoint;
  if (flags.precision.getNumOccurrences())
    training->precision = flags.precision;
  if (flags.dropout.getNumOccurrences())
    training->dropout = flags.dropout;
  if (!(training->dropout >= 0 && training->dropout < 1))
    return usage("--dropout is a rate from 0 to less than 1");
  if (flags.batchNorm.getNumOccurrences())
    training->batchNorm = flags.batchNorm;
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
  for (auto [flag, list] : {std::pair(&flags.paramGroup, &training->groups),
                            {&flags.trainable, &training->trainable},
                            {&flags.frozen, &training->frozen}})
    if (!flag->empty())
      list->assign(flag->begin(), flag->end());
  // Weights do not stay what they are.
  options.import.foldWeights = false;
  options.import.training = true;
  options.training = training;
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

/// Of a pipeline that trains.
llvm::Error checkSchedule(const Flags &flags, const Strategy &strategy) {
  auto policy = cost::parsePolicy(strategy.schedule);
  if (!policy)
    return usage("--schedule=" + strategy.schedule +
                 ": there are 1f1b, gpipe, interleaved and zero-bubble");
  if (strategy.pipe == 1 && (flags.pipeSchedule.getNumOccurrences() ||
                             flags.virtualStages.getNumOccurrences()))
    return usage("--schedule and --virtual-stages are for pipelines: add "
                 "--pp=2 or more");
  bool isInterleaved = policy == cost::SchedulePolicy::Interleaved;
  if (strategy.virtualStages < 1 || strategy.virtualStages > 1024 ||
      isInterleaved != (strategy.virtualStages > 1))
    return usage("--virtual-stages=" + llvm::Twine(strategy.virtualStages) +
                 " with --schedule=" + strategy.schedule +
                 ": interleaved takes 2 or more, others 1");
  if (isInterleaved && strategy.micro % strategy.pipe != 0)
    return usage("--schedule=interleaved takes micro-batches in groups of "
                 "--pp=" +
                 llvm::Twine(strategy.pipe) + ", which " +
                 llvm::Twine(strategy.micro) + " are no multiple of");
  return llvm::Error::success();
}

llvm::Error readStrategy(const Flags &flags, Strategy &strategy) {
  if (!flags.strategy.empty()) {
    auto buffer = llvm::MemoryBuffer::getFile(flags.strategy);
    if (!buffer)
      return makeError(ExitCode::InputOutput,
                       "cannot read '" + flags.strategy +
                           "': " + buffer.getError().message());
    auto read = Strategy::fromYAML((*buffer)->getBuffer(), flags.strategy);
    if (!read)
      return read.takeError();
    strategy = *read;
  }
  if (flags.dp.getNumOccurrences())
    strategy.data = flags.dp;
  if (flags.pp.getNumOccurrences())
    strategy.pipe = flags.pp;
  if (flags.micro.getNumOccurrences())
    strategy.micro = flags.micro;
  if (flags.pipeSchedule.getNumOccurrences())
    strategy.schedule = flags.pipeSchedule;
  if (flags.virtualStages.getNumOccurrences())
    strategy.virtualStages = flags.virtualStages;
  if (flags.sequenceParallel.getNumOccurrences())
    strategy.sequenceParallel = flags.sequenceParallel;
  if (flags.zero.getNumOccurrences())
    strategy.zero = flags.zero;
  if (!flags.cut.empty())
    strategy.cuts.assign(flags.cut.begin(), flags.cut.end());
  if (flags.tp.getNumOccurrences())
    if (llvm::Error error = strategy.setTensorParallel(flags.tp))
      return error;
  if (flags.order.getNumOccurrences())
    if (llvm::Error error = strategy.setOrder(flags.order))
      return error;
  for (const std::string &text : flags.shard)
    if (llvm::Error error = strategy.addShard(text))
      return error;
  if (llvm::Error error = checkSchedule(flags, strategy))
    return error;
  auto mesh = strategy.mesh();
  return mesh ? llvm::Error::success() : mesh.takeError();
}
/// A flag that would do nothing is an error.
llvm::Error checkUse(const Flags &flags, bool isPlan) {
  if (flags.verify && !isPlan)
    return usage("--verify checks a plan (.mlir), not a model: '" +
                 flags.input + "'");
  using AnyFlag = std::reference_wrapper<const cl::Option>;
  const AnyFlag ofModels[] = {flags.exportOnnx,
                              flags.train,
                              flags.zero,
                              flags.tp,
                              flags.dp,
                              flags.pp,
                              flags.micro,
                              flags.pipeSchedule,
                              flags.virtualStages,
                              flags.order,
                              flags.shard,
                              flags.cut,
                              flags.sequenceParallel,
                              flags.strategy,
                              flags.saveStrategy,
                              flags.strict,
                              flags.dim,
                              flags.shape,
                              flags.constant,
                              flags.testData,
                              flags.dumpAfter};
  if (flags.exportOnnx.empty() && flags.weights.getNumOccurrences())
    return usage("--weights is for --export-onnx: axrun has its own");
  if (!flags.exportOnnx.empty() && flags.weights.empty())
    return usage("--export-onnx needs --weights=FILE: what is to be written "
                 "into the model");
  const AnyFlag ofResults[] = {flags.output, flags.quiet, flags.explain,
                               flags.report};
  for (const cl::Option &option : ofModels)
    if (isPlan && option.getNumOccurrences())
      return usage("--" + option.ArgStr + " is for models: '" + flags.input +
                   "' is a plan already");
  for (llvm::ArrayRef<AnyFlag> others :
       {llvm::ArrayRef(ofModels), llvm::ArrayRef(ofResults)})
    for (const cl::Option &option : others)
      if (!flags.exportOnnx.empty() && &option != &flags.exportOnnx &&
          option.getNumOccurrences())
        return usage("--" + option.ArgStr + " has no use beside --export-onnx");
  for (const cl::Option &option : ofResults)
    if (flags.verify && option.getNumOccurrences())
      return usage("--verify only checks: " +
                   llvm::Twine(option.ArgStr.size() > 1 ? "--" : "-") +
                   option.ArgStr + " has no use beside it");
  return llvm::Error::success();
}
} // namespace

llvm::Expected<Options> ax::parseOptions(int argc, char **argv) {
  static Flags flags;
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  if (llvm::Error error =
          parseFlags(argc, argv, category,
                     "axopt: an ONNX model as a plan that many ranks run\n"))
    return error;

  Options options;
  options.input = flags.input;
  options.isPlan = llvm::sys::path::extension(flags.input) == ".mlir";
  if (llvm::Error error = checkUse(flags, options.isPlan))
    return error;
  options.output = flags.output;
  options.exportOnnx = flags.exportOnnx;
  options.weights = flags.weights;
  options.saveStrategy = flags.saveStrategy;
  options.strict = flags.strict;
  options.verifyOnly = flags.verify;
  options.quiet = flags.quiet;
  if (flags.explain.getNumOccurrences()) {
    if (flags.explain != "" && flags.explain != "text" &&
        flags.explain != "json")
      return usage("--explain=" + flags.explain + ": expected text or json");
    options.explain = flags.explain == "json" ? Explain::JSON : Explain::Text;
  }
  options.report = flags.report;
  options.dumpAfter.assign(flags.dumpAfter.begin(), flags.dumpAfter.end());
  for (const std::string &phase : options.dumpAfter)
    if (!llvm::is_contained(phaseNames(), phase))
      return usage("--dump-after=" + phase + ": there is no such phase, but " +
                   llvm::join(phaseNames(), ", "));
  if (llvm::Error error = readStrategy(flags, options.strategy))
    return error;
  if (llvm::Error error = readTraining(flags, options))
    return error;
  if (llvm::Error error = checkZero(options.strategy))
    return error;
  if (llvm::Error error = readDims(flags, options.import))
    return error;
  return options;
}
