//===- main.cpp - axrun: run a plan ---------------------------------------===//
#include "Compare.h"
#include "Inputs.h"
#include "Options.h"
#include "Profile.h"
#include "Report.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"
#include "ax/Support/Process.h"
#include "ax/Support/Stack.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <csignal>

using namespace ax;
using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// True when all outputs are as expected; says what differs, and what was not
/// looked at.
static bool check(const RunOptions &options, const std::vector<rt::Port> &ports,
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
  std::string others;
  for (const rt::Port &port : ports)
    if (llvm::none_of(expected, [&](const auto &pair) {
          return pair.first == port.name;
        }))
      others += " " + port.name;
  if (!expected.empty() && !others.empty())
    llvm::errs() << "axrun: note: not compared:" << others << '\n';
  return agrees;
}

/// Runs that are measured: several in flight, so that every stage of a pipeline
/// has something to do.
static llvm::Error measure(const RunOptions &options, rt::Executor &executor,
                           const std::vector<HostTensor> &inputs,
                           Measurement &measurement) {
  int64_t inFlight =
      options.inFlight
          ? options.inFlight
          : static_cast<int64_t>(executor.getProgram().stages.size());
  std::vector<std::unique_ptr<rt::Request>> requests;
  for (int64_t i = 0; i < std::min(inFlight, options.iterations); ++i) {
    auto request = executor.createRequest();
    if (!request)
      return request.takeError();
    (*request)->inputs = inputs;
    requests.push_back(std::move(*request));
  }
  Clock::time_point start = Clock::now();
  auto numRequests = static_cast<int64_t>(requests.size());
  for (int64_t i = 0; i < options.iterations + numRequests; ++i) {
    if (numRequests == 0)
      break;
    rt::Request &request = *requests[i % numRequests];
    if (i >= numRequests) {
      if (llvm::Error error = executor.wait(request))
        return error;
      measurement.times.push_back(request.duration);
    }
    if (i < options.iterations)
      if (llvm::Error error = executor.submit(request))
        return error;
  }
  measurement.totalSeconds = secondsSince(start);
  return llvm::Error::success();
}

/// What is told about what was measured, and the files about it.
static llvm::Error writeReports(const RunOptions &options,
                                const rt::Executor &executor,
                                const Measurement &measurement) {
  if (options.profile)
    printProfile(executor, measurement, *options.profile, llvm::outs());
  if (!options.trace.empty())
    if (llvm::Error error = executor.writeTrace(options.trace))
      return error;
  if (options.json.empty())
    return llvm::Error::success();
  return writeFileAtomically(options.json, toJSON(measurement, executor));
}

/// Of steps of training.
static llvm::Error report(const RunOptions &options,
                          const rt::Executor &executor,
                          const std::vector<std::chrono::nanoseconds> &times,
                          double loadSeconds) {
  Measurement measurement;
  measurement.times = times;
  for (std::chrono::nanoseconds time : times)
    measurement.totalSeconds += std::chrono::duration<double>(time).count();
  measurement.flops = countFlops(executor.getProgram());
  measurement.loadSeconds = loadSeconds;
  measurement.bubble = executor.getBubble();
  return writeReports(options, executor, measurement);
}

/// What shells give for a process that SIGINT has ended.
constexpr int interruptedCode = 128 + SIGINT;

static llvm::Expected<int> run(const RunOptions &options) {
  Clock::time_point start = Clock::now();
  auto session = Session::compile(options.plan, options.session);
  if (!session)
    return session.takeError();
  const rt::Program &program = (*session)->getProgram();
  if (options.listing) {
    printListing(program, llvm::outs());
    return static_cast<int>(ExitCode::Success);
  }
  if (llvm::Error error = checkDestinations(options, **session))
    return error;
  if (options.training) {
    if (llvm::Error error = (*session)->start())
      return error;
    TrainOptions training = *options.training;
    double loadSeconds = secondsSince(start);
    if (!options.trace.empty() || !options.json.empty() || options.profile)
      training.onTraced = [&](const auto &times) {
        return report(options, (*session)->getExecutor(), times, loadSeconds);
      };
    auto end = train(**session, training, llvm::errs());
    if (!end)
      return end.takeError();
    return *end == TrainEnd::Done ? static_cast<int>(ExitCode::Success)
                                  : interruptedCode;
  }
  if ((options.eval || !options.predict.empty()) && (*session)->isUntrained())
    llvm::errs() << "axrun: note: the weights are those of the model's file, "
                    "from before training: --weights takes others\n";
  if (options.eval) {
    if (llvm::Error error = (*session)->start())
      return error;
    if (llvm::Error error =
            evaluate(**session, *options.eval, options.tokens, llvm::outs()))
      return error;
    return static_cast<int>(ExitCode::Success);
  }
  if (!options.predict.empty()) {
    if (llvm::Error error = (*session)->start())
      return error;
    auto predicted = predict(**session, options.predict, options.tokens,
                             options.session.warn);
    if (!predicted)
      return predicted.takeError();
    if (llvm::Error error = checkMappedFiles())
      return error;
    if (llvm::Error error = writeOutputs(options.output, *predicted))
      return error;
    return static_cast<int>(ExitCode::Success);
  }
  auto inputs = readInputs(options, program.inputs);
  if (!inputs)
    return inputs.takeError();
  std::vector<rt::Port> ports = program.outputs;
  if (!options.isPadded)
    ports = portsOfResults(program.outputs);
  auto expected = readExpected(options, ports);
  if (!expected)
    return expected.takeError();
  if (llvm::Error error = (*session)->start())
    return error;
  Measurement measurement;
  measurement.loadSeconds = secondsSince(start);

  rt::Executor &executor = (*session)->getExecutor();
  llvm::Expected<std::vector<HostTensor>> outputs = executor.run(*inputs);
  for (int64_t i = 0; outputs && i < options.warmup; ++i)
    outputs = executor.run(*inputs);
  if (!outputs)
    return outputs.takeError();
  if (!options.isPadded) {
    outputs = cutToResults(program.outputs, std::move(*outputs));
    if (!outputs)
      return outputs.takeError();
  }
  // What is measured is traced, and nothing else.
  if (options.iterations)
    executor.clearTrace();
  if (llvm::Error error = measure(options, executor, *inputs, measurement))
    return error;
  if (llvm::Error error = checkMappedFiles())
    return error;
  measurement.flops = countFlops(program);
  measurement.bubble = executor.getBubble();
  if (options.iterations)
    llvm::errs() << "axrun: " << describe(measurement) << '\n';
  if (llvm::Error error = writeReports(options, executor, measurement))
    return error;
  if (!options.output.empty()) {
    rt::NamedTensors named;
    for (auto [port, tensor] : llvm::zip_equal(ports, *outputs))
      named.emplace_back(port.name, tensor);
    if (llvm::Error error = writeOutputs(options.output, named))
      return error;
  }
  // Nobody has said what is to become of them.
  if (options.output.empty() && expected->empty() && !options.iterations &&
      options.json.empty() && options.trace.empty())
    for (auto [port, tensor] : llvm::zip_equal(ports, *outputs))
      llvm::outs() << describe(port.name, tensor) << '\n';
  bool agrees = check(options, ports, *outputs, *expected);
  return static_cast<int>(agrees ? ExitCode::Success : ExitCode::Differs);
}

static int runTool(int argc, char **argv) {
  llvm::Expected<RunOptions> options = parseOptions(argc, argv);
  if (!options)
    return reportError("axrun", options.takeError());
  llvm::Expected<int> code = run(*options);
  if (!code)
    return reportError("axrun", code.takeError());
  return *code;
}

int main(int argc, char **argv) {
  setUpProcess("axrun");
  return runWithLargeStacks("axrun", [&] { return runTool(argc, argv); });
}
