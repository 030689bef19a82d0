//===- Predict.cpp - A program's outputs for any number of samples --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BatchRunner.h"

#include "ax/Session/Session.h"
#include "ax/Session/Train.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace ax;

namespace {

class Predictor {
public:
  Predictor(rt::Executor &executor, Samples samples)
      : executor(executor), program(executor.getProgram()),
        samples(std::move(samples)) {}

  llvm::Error run();
  rt::NamedTensors takeResults() { return std::move(results); }
  /// Which outputs are left out; empty when none is.
  const std::string &getWarning() const { return warning; }

private:
  llvm::Error chooseOutputs();
  void keep(const rt::Request &request, int64_t first, int64_t valid);

  rt::Executor &executor;
  const rt::Program &program;
  Samples samples;
  std::vector<size_t> chosen;
  rt::NamedTensors results;
  std::string warning;
};

} // namespace

/// Those of which a dimension counts samples, and data decide no other.
llvm::Error Predictor::chooseOutputs() {
  int64_t batch = samples.getBatch();
  std::vector<bool> counts = areCounts(program.outputs);
  std::vector<std::string> unknown, counted;
  for (auto [i, port] : llvm::enumerate(program.outputs)) {
    if (counts[i])
      continue;
    std::string described =
        "'" + port.name + "' (" + shapeToString(port.shape) + ")";
    if (port.count || !port.samples) {
      (port.count ? counted : unknown).push_back(std::move(described));
      continue;
    }
    Shape shape = port.shape;
    int64_t &count = shape[*port.samples];
    count = count / batch * samples.size();
    chosen.push_back(i);
    if (!executor.hasOutput(static_cast<int32_t>(i))) {
      results.emplace_back(port.name, HostTensor());
      continue;
    }
    auto all = HostTensor::allocate(port.dtype, shape);
    if (!all)
      return all.takeError();
    results.emplace_back(port.name, std::move(*all));
  }
  std::string why;
  if (!unknown.empty()) {
    why = "no one dimension is known to count samples of " +
          llvm::join(unknown, ", ");
    if (batch == 1)
      why += "; a plan for a larger batch may tell";
  }
  if (!counted.empty())
    why += (why.empty() ? "" : "; ") +
           ("data decide how many results there are of " +
            llvm::join(counted, ", "));
  if (why.empty())
    return llvm::Error::success();
  if (chosen.empty())
    return makeError(ExitCode::Usage,
                     "program '" + program.name +
                         "' gives nothing for each sample: " + why);
  warning = "left out: " + why;
  return llvm::Error::success();
}

void Predictor::keep(const rt::Request &request, int64_t first, int64_t valid) {
  int64_t batch = samples.getBatch();
  for (auto [result, output] : llvm::zip_equal(results, chosen)) {
    if (!executor.hasOutput(static_cast<int32_t>(output)))
      continue;
    const HostTensor &made = request.outputs[output];
    int64_t dim = *program.outputs[output].samples;
    int64_t outer = 1;
    for (int64_t size : llvm::ArrayRef(made.getShape()).take_front(dim))
      outer *= size;
    // What one sample has in one row of what comes before its dimension.
    int64_t bytes = outer ? made.numBytes() / outer / batch : 0;
    for (int64_t row = 0; row < outer; ++row)
      std::memcpy(result.second.mutableData() +
                      (row * samples.size() + first) * bytes,
                  made.data() + row * batch * bytes,
                  static_cast<size_t>(valid * bytes));
  }
}

llvm::Error Predictor::run() {
  if (llvm::Error error = chooseOutputs())
    return error;
  auto ended = BatchRunner(executor).run(
      samples, samples.size(),
      [&](const rt::Request &request, int64_t first, int64_t valid) {
        keep(request, first, valid);
      },
      [] { return true; });
  return ended.takeError();
}

llvm::Expected<rt::NamedTensors>
ax::predict(Session &session, const std::string &data, Tokens tokens,
            const std::function<void(const std::string &)> &warn) {
  rt::Executor &executor = session.getExecutor();
  const rt::Program &program = executor.getProgram();
  if (isTraining(program))
    return makeError(ExitCode::Usage,
                     "program '" + program.name +
                         "' trains, and the plan has none that predicts: "
                         "compile it again with axopt --train, or with --eval");
  auto samples = Samples::open(program.inputs, data, tokens, "data");
  if (!samples)
    return samples.takeError();
  samples->readFor(executor);
  Predictor predictor(executor, std::move(*samples));
  if (llvm::Error error = predictor.run())
    return error;
  if (!predictor.getWarning().empty())
    warn(predictor.getWarning());
  return predictor.takeResults();
}
