//===- ClusterReports.cpp - What a process tells of its ranks -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LocalCluster.h"

#include <map>
#include <utility>

namespace ax::rt {

llvm::Error LocalCluster::gatherReports() {
  if (shared->world->isAlone())
    return llvm::Error::success();
  std::vector<RankReport> mine;
  for (const std::unique_ptr<LocalRank> &rank : shared->ranks)
    mine.push_back(
        {std::as_const(rank->executor).getTrace(), rank->executor.getMemory()});
  auto all = gatherRankReports(*shared->world, *shared->program, mine);
  if (!all)
    return all.takeError();
  gathered = std::move(*all);
  return llvm::Error::success();
}

std::vector<RankMemory> LocalCluster::getMemory() const {
  std::vector<RankMemory> result;
  for (const RankReport &report : gathered)
    result.push_back(report.memory);
  if (gathered.empty())
    for (const std::unique_ptr<LocalRank> &rank : shared->ranks)
      result.push_back(rank->executor.getMemory());
  return result;
}

void LocalCluster::clearTrace() {
  gathered.clear();
  for (std::unique_ptr<LocalRank> &rank : shared->ranks)
    rank->executor.getTrace().events.clear();
}

std::vector<const RankTrace *> LocalCluster::getTraces() const {
  std::vector<const RankTrace *> traces;
  for (const RankReport &report : gathered)
    traces.push_back(&report.trace);
  if (gathered.empty())
    for (const std::unique_ptr<LocalRank> &rank : shared->ranks)
      traces.push_back(&std::as_const(rank->executor).getTrace());
  return traces;
}

std::vector<CommandTime> LocalCluster::getCommandTimes() const {
  if (!options.trace)
    return {};
  return sumCommandTimes(*shared->program, getTraces());
}

std::optional<double> LocalCluster::getBubble() const {
  return measureBubble(*shared->program, getTraces());
}

llvm::Error LocalCluster::writeTrace(const std::string &path) const {
  return writeChromeTrace(path, *shared->program, getTraces());
}

void LocalCluster::tellHostOps() const {
  std::map<std::string, std::string> kinds;
  for (const std::unique_ptr<LocalRank> &rank : shared->ranks)
    kinds.insert(rank->executor.getHostOps().begin(),
                 rank->executor.getHostOps().end());
  if (!options.warn)
    return;
  for (const auto &[kind, why] : kinds)
    options.warn(
        "device '" + std::string(shared->backends.devices.front()->getName()) +
        "' lacks " + kind +
        ": the CPU does it, between a download and an upload (" + why + ")");
}

void LocalCluster::tellPlainSteps() const {
  if (!options.warn || options.capture != CaptureMode::On)
    return;
  for (const std::unique_ptr<LocalRank> &rank : shared->ranks) {
    std::string why = rank->executor.whyNotCaptured();
    if (!why.empty())
      return options.warn("steps of rank " +
                          std::to_string(rank->executor.getRank()) +
                          " are not captured: " + why);
  }
}

} // namespace ax::rt
