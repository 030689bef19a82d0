//===- Report.cpp - How long runs took ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"

#include "Profile.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>

using namespace ax;

static double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

static double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

RankTime ax::sumRankTime(const std::vector<rt::CommandTime> &times,
                         const rt::Program &program,
                         const Measurement &measurement) {
  RankTime spent;
  for (const rt::CommandTime &command : times) {
    // Who waits for others does so first, and beside its computing as long as
    // it has something to compute.
    double held = seconds(command.held), total = seconds(command.total),
           waiting = std::clamp(seconds(command.waiting) -
                                    std::max(total - held, 0.0),
                                0.0, held);
    (command.isExchange ? spent.exchanging : spent.computing) += held - waiting;
    spent.waiting += waiting;
  }
  double busy = spent.computing + spent.exchanging + spent.waiting;
  spent.total =
      std::max(busy, measurement.totalSeconds *
                         static_cast<double>(program.mesh.numRanks()));
  spent.between = spent.total - busy;
  return spent;
}

static double perSecond(const Measurement &measurement) {
  return measurement.totalSeconds > 0
             ? measurement.times.size() / measurement.totalSeconds
             : 0;
}

std::string ax::describe(const Measurement &measurement,
                         const rt::Program &program) {
  rt::TimeSummary summary = rt::summarise(measurement.times);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << measurement.times.size()
     << (measurement.times.size() == 1 ? " run: median " : " runs: median ")
     << llvm::format("%.3f ms, p90 %.3f ms, p99 %.3f ms, %.1f runs/s, "
                     "%.1f GFLOP/s",
                     milliseconds(summary.median), milliseconds(summary.p90),
                     milliseconds(summary.p99), perSecond(measurement),
                     1e-9 * measurement.flops * perSecond(measurement));
  if (measurement.bubble)
    os << llvm::format(", bubble %.0f %%", 100 * *measurement.bubble);
  if (program.predictedSeconds > 0)
    os << llvm::format("; predicted: %.3f ms on '",
                       1e3 * program.predictedSeconds)
       << program.predictedFor << "'";
  return text;
}

std::string ax::describe(llvm::StringRef name, const HostTensor &tensor) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name << ": " << tensor.typeToString();
  double least = INFINITY, largest = -INFINITY, sum = 0;
  int64_t count = tensor.numElements(), numNaN = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = tensor.getDouble(i);
    numNaN += std::isnan(value);
    if (std::isnan(value))
      continue;
    least = std::min(least, value);
    largest = std::max(largest, value);
    sum += value;
  }
  if (count > numNaN)
    os << llvm::format(", from %.6g to %.6g, mean %.6g", least, largest,
                       sum / static_cast<double>(count - numNaN));
  if (numNaN)
    os << ", " << numNaN << " NaN";
  constexpr int64_t shown = 4;
  for (int64_t i = 0; i < std::min(count, shown); ++i)
    os << (i ? ", " : "; ") << llvm::format("%.6g", tensor.getDouble(i));
  os << (count > shown ? ", ..." : "");
  return text;
}

static llvm::json::Value ratesToJSON(const rt::DeviceRates &rates) {
  llvm::json::Object products;
  for (auto [type, rate] : rates.flopsPerSecond)
    products[toString(type)] = rate;
  return llvm::json::Object{{"flops_per_second", std::move(products)},
                            {"bytes_per_second", rates.bytesPerSecond}};
}

std::string ax::toJSON(const Measurement &measurement,
                       const rt::Executor &executor) {
  const rt::Program &program = executor.getProgram();
  rt::TimeSummary summary = rt::summarise(measurement.times);
  llvm::json::Array stages;
  for (const rt::StageProgram &stage : program.stages)
    stages.push_back(llvm::json::Object{
        {"name", stage.name},
        {"ranks", static_cast<int64_t>(stage.ranks.size())},
        {"commands", static_cast<int64_t>(stage.allCommands().size())},
        {"arena_bytes", stage.arenaBytes}});
  llvm::json::Array memory;
  for (const rt::RankMemory &rank : executor.getMemory())
    memory.push_back(llvm::json::Object{{"arena_bytes", rank.arenaBytes},
                                        {"buffer_bytes", rank.bufferBytes},
                                        {"state_bytes", rank.stateBytes}});
  std::vector<rt::CommandTime> times = executor.getCommandTimes();
  llvm::json::Array commands;
  for (const rt::CommandTime &command : times) {
    llvm::json::Array nodes;
    for (const std::string &node : command.nodes)
      nodes.push_back(llvm::json::fixUTF8(node));
    commands.push_back(
        llvm::json::Object{{"stage", command.stage},
                           {"name", llvm::json::fixUTF8(command.name)},
                           {"what", llvm::json::fixUTF8(command.what)},
                           {"kind", command.kind},
                           {"nodes", std::move(nodes)},
                           {"exchange", command.isExchange},
                           {"flops", command.flops},
                           {"bytes", command.bytes},
                           {"ranks", command.ranks},
                           {"executions", command.executions},
                           {"seconds", seconds(command.total)},
                           {"held_seconds", seconds(command.held)},
                           {"waiting_seconds", seconds(command.waiting)}});
  }
  llvm::json::Object report{
      {"iterations", static_cast<int64_t>(measurement.times.size())},
      {"median_ms", milliseconds(summary.median)},
      {"p90_ms", milliseconds(summary.p90)},
      {"p99_ms", milliseconds(summary.p99)},
      {"min_ms", milliseconds(summary.least)},
      {"runs_per_second", perSecond(measurement)},
      {"flops", measurement.flops},
      {"flops_per_second", measurement.flops * perSecond(measurement)},
      {"load_seconds", measurement.loadSeconds},
      {"ranks", program.mesh.numRanks()},
      {"stages", std::move(stages)},
      {"memory", std::move(memory)},
      {"commands", std::move(commands)}};
  if (!times.empty()) {
    RankTime spent = sumRankTime(times, program, measurement);
    report["rank_seconds"] =
        llvm::json::Object{{"computing", spent.computing},
                           {"exchanging", spent.exchanging},
                           {"waiting", spent.waiting},
                           {"between_commands", spent.between},
                           {"total", spent.total}};
  }
  if (measurement.bubble)
    report["bubble"] = *measurement.bubble;
  if (program.predictedSeconds > 0) {
    report["predicted_ms"] = 1e3 * program.predictedSeconds;
    report["predicted_for"] = llvm::json::fixUTF8(program.predictedFor);
  }
  if (measurement.rates)
    report["device_rates"] = ratesToJSON(*measurement.rates);
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report)));
  return text;
}

static llvm::Error writeGathered(const RunOptions &options,
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

llvm::Error ax::writeReports(const RunOptions &options, rt::Executor &executor,
                             Measurement measurement) {
  rt::World &world = executor.getWorld();
  bool isAsked =
      options.profile || !options.trace.empty() || !options.json.empty();
  if (isAsked)
    if (llvm::Error error = executor.gatherReports())
      return error;
  llvm::Error error = llvm::Error::success();
  if (world.isFirst()) {
    measurement.bubble = executor.getBubble();
    if (options.iterations)
      tell("axrun", describe(measurement, executor.getProgram()));
    error = writeGathered(options, executor, measurement);
  }
  return rt::agree(world, "reports", std::move(error));
}
