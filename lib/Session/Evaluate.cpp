//===- Evaluate.cpp - How good states are ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Evaluate.h"

#include "Interrupt.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace ax;

llvm::StringRef ax::toString(Metric metric) {
  switch (metric) {
  case Metric::Loss:
    return "loss";
  case Metric::Accuracy:
    return "accuracy";
  case Metric::Perplexity:
    return "perplexity";
  }
  return "";
}

double Measured::get(Metric metric) const {
  switch (metric) {
  case Metric::Loss:
    return loss;
  case Metric::Accuracy:
    return accuracy.value_or(0);
  case Metric::Perplexity:
    return std::exp(loss);
  }
  return 0;
}

std::optional<size_t> Evaluator::findOutput(rt::Role role) const {
  const std::vector<rt::Port> &outputs = executor.getProgram().outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].role == role && outputs[i].dtype == DType::F32 &&
        outputs[i].shape.size() <= 1)
      return i;
  return std::nullopt;
}

llvm::Expected<Evaluator> Evaluator::create(rt::Executor &executor,
                                            const EvalOptions &options,
                                            Tokens tokens) {
  const rt::Program &program = executor.getProgram();
  auto samples = Samples::open(program.inputs, options.data, tokens, "eval");
  if (!samples)
    return samples.takeError();
  samples->readFor(executor);
  Evaluator made(executor, std::move(*samples));
  auto sum = made.findOutput(rt::Role::LossSum),
       count = made.findOutput(rt::Role::LossCount);
  if (!sum || !count)
    return makeError(ExitCode::Usage,
                     "program '" + program.name +
                         "' does not measure a loss: compile the plan with "
                         "axopt --train");
  made.lossSum = *sum;
  made.lossCount = *count;
  made.correct = made.findOutput(rt::Role::Correct);
  made.metrics.push_back(Metric::Loss);
  for (Metric metric : options.metrics) {
    if (metric != Metric::Loss && !made.correct)
      return makeError(ExitCode::Usage,
                       "--metric=" + toString(metric) +
                           " needs a loss over classes: cross_entropy, or "
                           "bce_with_logits");
    if (!llvm::is_contained(made.metrics, metric))
      made.metrics.push_back(metric);
  }
  return made;
}

double Evaluator::sum(const rt::Request &request, size_t output,
                      int64_t count) const {
  const HostTensor &sums = request.outputs[output];
  double total = 0;
  int64_t size = sums.numElements();
  // Some losses are of a batch as a whole.
  if (executor.getProgram().outputs[output].samples)
    size = size / samples.getBatch() * count;
  for (int64_t i = 0; i < size; ++i)
    total += sums.getDouble(i);
  return total;
}

llvm::Expected<std::optional<Measured>> Evaluator::run() {
  int64_t batch = samples.getBatch();
  bool isBySample = executor.getProgram().outputs[lossSum].samples.has_value();
  Measured result;
  double loss = 0, count = 0, right = 0;
  int64_t end = isBySample ? samples.size() : samples.size() / batch * batch;
  auto ended = runner.run(
      samples, end,
      [&](const rt::Request &request, int64_t, int64_t valid) {
        loss += sum(request, lossSum, valid);
        count += sum(request, lossCount, valid);
        if (correct)
          right += sum(request, *correct, valid);
        result.samples += valid;
      },
      [] { return !Interrupt::isRequested(); });
  if (!ended)
    return ended.takeError();
  if (!*ended)
    return std::nullopt;
  if (!(count > 0))
    return samples.fault(
        result.samples ? "every label is ignored: there is no loss"
                       : llvm::Twine(samples.size()) +
                             " samples are less than one batch of " +
                             llvm::Twine(batch) + ", of which the loss is");
  result.loss = loss / count;
  if (correct)
    result.accuracy = right / count;
  return result;
}

std::string Evaluator::describe(const Measured &measured) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (Metric metric : metrics)
    os << toString(metric) << ' ' << llvm::format("%.6g", measured.get(metric))
       << ", ";
  os << measured.samples << " samples";
  return text;
}

llvm::Error ax::evaluate(Session &session, const EvalOptions &options,
                         Tokens tokens, llvm::raw_ostream &progress,
                         const std::function<void(const std::string &)> &warn) {
  auto evaluator = Evaluator::create(session.getExecutor(), options, tokens);
  if (!evaluator)
    return evaluator.takeError();
  if (std::string unused = evaluator->describeUnused(); !unused.empty())
    warn(unused);
  auto measured = evaluator->run();
  if (!measured)
    return measured.takeError();
  if (llvm::Error error = checkMappedFiles())
    return error;
  if (*measured && session.getWorld()->isFirst())
    progress << "axrun: evaluation: " << evaluator->describe(**measured)
             << '\n';
  return llvm::Error::success();
}
