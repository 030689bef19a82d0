//===- Report.cpp - How long runs took ------------------------------------===//
#include "Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>

using namespace ax;

/// The smallest value that at least `share` of all do not exceed.
static double quantile(std::vector<double> sorted, double share) {
  if (sorted.empty())
    return 0;
  size_t rank = std::ceil(share * sorted.size());
  return sorted[std::min(std::max<size_t>(rank, 1), sorted.size()) - 1];
}

static double median(const std::vector<double> &sorted) {
  if (sorted.empty())
    return 0;
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle]
                           : (sorted[middle - 1] + sorted[middle]) / 2;
}

static std::vector<double> sorted(const Measurement &measurement) {
  std::vector<double> seconds = measurement.seconds;
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

static double perSecond(const Measurement &measurement) {
  return measurement.totalSeconds > 0
             ? measurement.seconds.size() / measurement.totalSeconds
             : 0;
}

std::string ax::describe(const Measurement &measurement) {
  std::vector<double> seconds = sorted(measurement);
  std::string text;
  llvm::raw_string_ostream(text)
      << seconds.size() << " runs: median "
      << llvm::format("%.3f ms, p90 %.3f ms, p99 %.3f ms, %.1f runs/s, "
                      "%.1f GFLOP/s",
                      1e3 * median(seconds), 1e3 * quantile(seconds, 0.9),
                      1e3 * quantile(seconds, 0.99), perSecond(measurement),
                      1e-9 * measurement.flops * perSecond(measurement));
  return text;
}

std::string ax::toJSON(const Measurement &measurement,
                       const rt::Executor &executor) {
  const rt::Program &program = executor.getProgram();
  std::vector<double> seconds = sorted(measurement);
  llvm::json::Array stages;
  for (const rt::StageProgram &stage : program.stages)
    stages.push_back(llvm::json::Object{
        {"name", stage.name},
        {"ranks", static_cast<int64_t>(stage.ranks.size())},
        {"commands", static_cast<int64_t>(stage.commands.size())},
        {"arena_bytes", stage.arenaBytes}});
  llvm::json::Array memory;
  for (const rt::RankMemory &rank : executor.getMemory())
    memory.push_back(llvm::json::Object{{"arena_bytes", rank.arenaBytes},
                                        {"buffer_bytes", rank.bufferBytes},
                                        {"state_bytes", rank.stateBytes}});
  llvm::json::Array commands;
  for (const rt::CommandTime &command : executor.getCommandTimes())
    commands.push_back(llvm::json::Object{
        {"stage", command.stage},
        {"name", command.name},
        {"what", command.what},
        {"flops", command.flops},
        {"bytes", command.bytes},
        {"executions", command.executions},
        {"seconds", std::chrono::duration<double>(command.total).count()}});
  llvm::json::Object report{
      {"iterations", static_cast<int64_t>(seconds.size())},
      {"median_ms", 1e3 * median(seconds)},
      {"p90_ms", 1e3 * quantile(seconds, 0.9)},
      {"p99_ms", 1e3 * quantile(seconds, 0.99)},
      {"min_ms", seconds.empty() ? 0 : 1e3 * seconds.front()},
      {"runs_per_second", perSecond(measurement)},
      {"flops", measurement.flops},
      {"flops_per_second", measurement.flops * perSecond(measurement)},
      {"load_seconds", measurement.loadSeconds},
      {"ranks", program.mesh.numRanks()},
      {"stages", std::move(stages)},
      {"memory", std::move(memory)},
      {"commands", std::move(commands)}};
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(report)));
  return text;
}
