//===- RunInputs.cpp - One set of inputs, once or many times --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "Agree.h"
#include "Inputs.h"
#include "Rates.h"
#include "Report.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/ExitCode.h"
#include "ax/Support/MappedFile.h"

using namespace ax;
using Clock = std::chrono::steady_clock;

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
  measurement.totalSeconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  return llvm::Error::success();
}

/// What the outputs are to be; at other processes than 0 nothing.
static llvm::Expected<rt::NamedTensors>
expectedOf(const RunOptions &options, const std::vector<rt::Port> &ports) {
  if (!options.session.world->isFirst())
    return rt::NamedTensors();
  return readExpected(options, ports);
}

/// Writes, prints and compares outputs, and returns the exit code.
static llvm::Expected<int> useOutputs(const RunOptions &options,
                                      const std::vector<rt::Port> &ports,
                                      const std::vector<HostTensor> &outputs,
                                      const rt::NamedTensors &expected) {
  if (!options.output.empty()) {
    rt::NamedTensors named;
    for (auto [port, tensor] : llvm::zip_equal(ports, outputs))
      named.emplace_back(port.name, tensor);
    if (llvm::Error error = writeOutputs(options.output, named))
      return error;
  }
  // Nobody has said what is to become of them.
  if (options.output.empty() && expected.empty() && !options.iterations &&
      options.json.empty() && options.trace.empty())
    for (auto [port, tensor] : llvm::zip_equal(ports, outputs))
      llvm::outs() << describe(port.name, tensor) << '\n';
  bool agrees = agree(options, ports, outputs, expected);
  return static_cast<int>(agrees ? ExitCode::Success : ExitCode::Differs);
}

llvm::Expected<int> ax::runInputs(const Task &task) {
  const RunOptions &options = task.options;
  rt::World &world = *options.session.world;
  const rt::Program &program = task.session.getProgram();
  auto inputs = readInputs(options, program.inputs);
  if (llvm::Error error = rt::agree(world, "inputs", inputs.takeError()))
    return error;
  std::vector<rt::Port> ports = program.outputs;
  if (!options.isPadded)
    ports = portsOfResults(program.outputs);
  auto expected = expectedOf(options, ports);
  if (llvm::Error error =
          rt::agree(world, "expected outputs", expected.takeError()))
    return error;
  auto rates = measureRates(options, task.session);
  if (!rates)
    return rates.takeError();
  if (llvm::Error error = task.session.start())
    return error;
  Measurement measurement;
  measurement.rates = std::move(*rates);
  measurement.loadSeconds = task.secondsSinceBegin();

  rt::Executor &executor = task.session.getExecutor();
  llvm::Expected<std::vector<HostTensor>> outputs = executor.run(*inputs);
  for (int64_t i = 0; outputs && i < options.warmup; ++i)
    outputs = executor.run(*inputs);
  if (!outputs)
    return outputs.takeError();
  if (!options.isPadded && world.isFirst()) {
    outputs = cutToResults(program.outputs, std::move(*outputs));
    if (!outputs)
      return outputs.takeError();
  }
  // What is measured is traced, and nothing else.
  if (options.iterations)
    executor.clearTrace();
  if (llvm::Error error = measure(options, executor, *inputs, measurement))
    return error;
  if (llvm::Error error =
          rt::agree(world, "files that are read", checkMappedFiles()))
    return error;
  measurement.flops = countFlops(program);
  if (llvm::Error error = writeReports(options, executor, measurement))
    return error;
  if (!world.isFirst())
    return static_cast<int>(ExitCode::Success);
  return useOutputs(options, ports, *outputs, *expected);
}
