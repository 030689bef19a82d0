//===- StepGraphs.cpp - A rank's steps, as graphs -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step puts the same work on the same streams as the one before, at addresses
// that come in turns. So from the second on it is captured, once for each turn,
// and launched: what is computed, exchanged and received, what goes up behind
// the first micro-batch, and what comes down. The first inputs go up beside it
// (ListPorts.h). What cannot be captured is done as before, and nothing else
// changes.
//
//===----------------------------------------------------------------------===//

#include "RankExecutor.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace ax::rt {

std::string RankExecutor::whyNotCaptured() const {
  if (!context.device.canCapture())
    return std::string("device '") + context.device.getName() +
           "' has no graphs";
  if (isBlocking)
    return "ranks wait for each command";
  if (recorder)
    return "each command is timed";
  auto mayCapture = [](const std::unique_ptr<StreamOperation> &operation) {
    return !operation || operation->canCapture();
  };
  for (const Step &step : steps) {
    if (step.hostOp)
      return "the CPU does " +
             toString(std::get<LibraryCommand>(step.command->body).desc);
    if (!mayCapture(step.operation))
      return "'" + step.command->name +
             "' meets other ranks on a card that they share, or by way of the "
             "host";
  }
  for (const Incoming &in : incoming)
    if (!llvm::all_of(in.receives, mayCapture))
      return "values of other stages come on a card that ranks share, or by "
             "way of the host";
  return "";
}

llvm::Error RankExecutor::prepareGraphs() {
  if (!isCaptured || !whyNotCaptured().empty())
    return llvm::Error::success();
  size_t period = 1;
  for (ListPorts &ports : listPorts) {
    period = std::lcm(period, ports.getPeriod());
    if (llvm::Error error = ports.prepareCapture())
      return error;
  }
  for (const Incoming &in : incoming)
    for (const auto &[list, first] : firstAction)
      if (list == in.list)
        period = std::lcm(
            period, in.slots.size() /
                        std::gcd(in.slots.size(),
                                 static_cast<size_t>(turns[first].perStep)));
  auto begun = context.device.createEvent();
  if (!begun)
    return begun.takeError();
  graphs.emplace(period, std::move(*begun));
  return llvm::Error::success();
}

llvm::Error RankExecutor::startCaptured() {
  StepGraph &graph = graphs->of(numEnded);
  if (!graph.graph)
    if (llvm::Error error = capture(graph)) {
      // Nothing of it was done.
      std::string why = describeError(std::move(error)).message;
      graphs.reset();
      if (warn)
        warn("steps of rank " + std::to_string(context.rank) +
             " are not captured any more: " + why);
      return startPlain();
    }
  return launch(graph);
}

llvm::Error RankExecutor::capture(StepGraph &graph) {
  Stream &compute = *streams.compute;
  if (llvm::Error error = compute.beginCapture())
    return error;
  graphs->beginCapture(graph);
  progress.beginCapture();
  context.communicator.beginCapture();
  for (ListPorts &ports : listPorts)
    ports.beginCapture(graphs->getBegun());
  llvm::Error error = compute.record(graphs->getBegun());
  if (!error)
    error = runActions();
  for (ListPorts &ports : listPorts)
    ports.endCapture();
  graph.operations = context.communicator.endCapture();
  graph.numBegun = progress.endCapture();
  graphs->endCapture();
  llvm::Expected<std::unique_ptr<StreamGraph>> made = compute.endCapture();
  if (error) {
    // What made the capture invalid says more than that it is.
    llvm::consumeError(made.takeError());
    return error;
  }
  if (!made)
    return made.takeError();
  graph.graph = std::move(*made);
  return llvm::Error::success();
}

llvm::Error RankExecutor::launch(StepGraph &graph) {
  uint64_t first = progress.beginLaunch(graph.numBegun);
  for (size_t i = 0; i < stage->schedule.size(); ++i) {
    const Action &action = stage->schedule[i];
    if (llvm::Error error =
            listPorts[static_cast<size_t>(action.list)].beginLaunch(
                turnOf(i, numEnded), action.microBatch))
      return error;
  }
  if (graph.operations)
    if (llvm::Error error = graph.operations->beginLaunch())
      return error;
  for (const CapturedCommand &each : graph.commands)
    if (each.isEnd)
      flight->end(each.command, first + each.count);
    else
      flight->begin(each.command, each.microBatch);
  return graph.graph->launch(*streams.compute);
}

} // namespace ax::rt
