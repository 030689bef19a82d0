//===- RunGenerate.cpp - Tokens behind a prompt ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "Inputs.h"
#include "Rates.h"
#include "Report.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/Support/Format.h"

using namespace ax;

/// Values of the inputs that do not follow from tokens.
static llvm::Error readOthers(const Task &task, GenerateOptions &generate) {
  const rt::Program &program = task.session.getProgram();
  auto made = findGenerated(program, generate.names);
  if (!made)
    return made.takeError();
  std::vector<rt::Port> others;
  for (const rt::Port &port : program.inputs)
    if (!llvm::is_contained(*made, port.name))
      others.push_back(port);
  auto values = readInputs(task.options, others);
  if (!values)
    return values.takeError();
  for (auto [port, value] : llvm::zip_equal(others, *values))
    generate.others.emplace_back(port.name, std::move(value));
  auto prompt = rt::readNpy(task.options.prompt);
  if (!prompt)
    return prompt.takeError();
  generate.prompt = std::move(*prompt);
  return llvm::Error::success();
}

/// Of one sequence, tokens as they come.
static void printNext(llvm::ArrayRef<int64_t> tokens, bool isFirst) {
  llvm::outs() << (isFirst ? "" : " ") << tokens.front();
  llvm::outs().flush();
}

/// A line for each sequence: its tokens behind the prompt.
static void print(const HostTensor &tokens, int64_t promptLength) {
  int64_t length = tokens.getShape()[1];
  for (int64_t row = 0; row < tokens.getShape()[0]; ++row) {
    for (int64_t i = promptLength; i < length; ++i)
      llvm::outs() << (i > promptLength ? " " : "")
                   << tokens.getInt(row * length + i);
    llvm::outs() << '\n';
  }
}

/// How fast it was: the prompt, and each token behind the first.
static void tellSpeed(const Generated &generated, int64_t promptLength) {
  const Shape &shape = generated.tokens.getShape();
  int64_t following = shape[1] - promptLength - 1;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << shape[1] - promptLength << " tokens, of " << shape[0]
     << (shape[0] == 1 ? " sequence" : " sequences") << ": a prompt of "
     << promptLength
     << llvm::format(" took %.3f ms", 1e3 * generated.promptSeconds);
  if (following > 0)
    os << llvm::format(", each token behind the first %.3f ms, %.1f tokens/s",
                       1e3 * generated.restSeconds / following,
                       following * shape[0] / generated.restSeconds);
  tell("axrun", text);
}

llvm::Expected<int> ax::generateTokens(const Task &task) {
  const RunOptions &options = task.options;
  rt::World &world = *options.session.world;
  GenerateOptions generate = *options.generate;
  if (llvm::Error error =
          rt::agree(world, "prompt and inputs", readOthers(task, generate)))
    return error;
  auto rates = measureRates(options, task.session);
  if (!rates)
    return rates.takeError();
  if (llvm::Error error = task.session.start())
    return error;
  Measurement measurement;
  measurement.rates = std::move(*rates);
  measurement.loadSeconds = task.secondsSinceBegin();
  int64_t numPrinted = 0;
  bool isOne = generate.prompt.getShape().size() == 1 ||
               generate.prompt.getShape().front() == 1;
  if (isOne && options.output.empty())
    generate.chosen = [&](llvm::ArrayRef<int64_t> tokens) {
      printNext(tokens, numPrinted++ == 0);
    };
  auto generated = ax::generate(task.session, generate);
  if (numPrinted)
    llvm::outs() << '\n';
  if (!generated)
    return generated.takeError();
  if (llvm::Error error =
          rt::agree(world, "files that are read", checkMappedFiles()))
    return error;
  measurement.times = generated->times;
  for (std::chrono::nanoseconds time : generated->times)
    measurement.totalSeconds += std::chrono::duration<double>(time).count();
  measurement.flops = countFlops(task.session.getProgram());
  if (llvm::Error error = writeReports(options, task.session.getExecutor(),
                                       std::move(measurement)))
    return error;
  if (!world.isFirst())
    return static_cast<int>(ExitCode::Success);
  int64_t promptLength = generate.prompt.getShape().back();
  if (!options.output.empty()) {
    if (llvm::Error error =
            writeOutputs(options.output, {{"tokens", generated->tokens}}))
      return error;
  } else if (!numPrinted) {
    print(generated->tokens, promptLength);
  }
  tellSpeed(*generated, promptLength);
  return static_cast<int>(ExitCode::Success);
}
