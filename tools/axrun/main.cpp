//===- main.cpp - axrun: run a plan ---------------------------------------===//
#include "Compare.h"
#include "Inputs.h"
#include "Options.h"
#include "Report.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>

using namespace ax;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// True when all outputs are as expected; says what differs.
static llvm::Expected<bool> check(const RunOptions &options,
                                  const std::vector<rt::Port> &ports,
                                  const std::vector<HostTensor> &outputs,
                                  const rt::NamedTensors &expected) {
  bool agrees = true;
  for (const auto &[name, wanted] : expected) {
    auto port = llvm::find_if(
        ports, [&, name = name](const rt::Port &p) { return p.name == name; });
    const HostTensor &got = outputs[port - ports.begin()];
    if (got.getShape() != wanted.getShape() ||
        got.getType() != wanted.getType()) {
      llvm::errs() << "axrun: " << name << " is " << got.typeToString()
                   << ", expected is " << wanted.typeToString() << '\n';
      agrees = false;
      continue;
    }
    Difference difference = compare(got, wanted, options.rtol, options.atol);
    llvm::errs() << "axrun: " << describe(name, difference, got, wanted)
                 << '\n';
    agrees &= difference.numDiffering == 0;
  }
  return agrees;
}

static llvm::Expected<ExitCode> run(const RunOptions &options) {
  Clock::time_point start = Clock::now();
  auto session = Session::load(options.plan, options.session);
  if (!session)
    return session.takeError();
  Measurement measurement;
  measurement.loadSeconds = secondsSince(start);
  auto inputs = readInputs(options, (*session)->getInputs());
  if (!inputs)
    return inputs.takeError();
  auto expected = readExpected(options, (*session)->getOutputs());
  if (!expected)
    return expected.takeError();

  llvm::Expected<std::vector<HostTensor>> outputs = (*session)->run(*inputs);
  for (int64_t i = 0; outputs && i < options.warmup; ++i)
    outputs = (*session)->run(*inputs);
  start = Clock::now();
  for (int64_t i = 0; outputs && i < options.iterations; ++i) {
    Clock::time_point began = Clock::now();
    outputs = (*session)->run(*inputs);
    measurement.seconds.push_back(secondsSince(began));
  }
  measurement.totalSeconds = secondsSince(start);
  if (!options.trace.empty())
    if (llvm::Error error =
            writeFileAtomically(options.trace, (*session)->takeTrace()))
      return llvm::joinErrors(outputs.takeError(), std::move(error));
  if (!outputs)
    return outputs.takeError();

  measurement.flops = (*session)->countFlops();
  if (options.iterations)
    llvm::errs() << "axrun: " << describe(measurement) << '\n';
  if (!options.json.empty())
    if (llvm::Error error = writeFileAtomically(
            options.json, toJSON(measurement, (*session)->getProgram())))
      return std::move(error);
  if (!options.output.empty())
    if (llvm::Error error =
            writeOutputs(options.output, (*session)->getOutputs(), *outputs))
      return std::move(error);
  auto agrees = check(options, (*session)->getOutputs(), *outputs, *expected);
  if (!agrees)
    return agrees.takeError();
  return *agrees ? ExitCode::Success : ExitCode::Differs;
}

int main(int argc, char **argv) {
  llvm::Expected<RunOptions> options = parseOptions(argc, argv);
  if (!options)
    return reportError("axrun", options.takeError());
  llvm::Expected<ExitCode> code = run(*options);
  if (!code)
    return reportError("axrun", code.takeError());
  return static_cast<int>(*code);
}
