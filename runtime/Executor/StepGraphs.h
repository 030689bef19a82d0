//===- StepGraphs.h - A rank's steps, as graphs -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_STEPGRAPHS_H
#define AX_RUNTIME_STEPGRAPHS_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/Device.h"

namespace ax::rt {

/// What a rank's log of exchanges is told of a command, once for each launch.
struct CapturedCommand {
  /// Behind the command, not before.
  bool isEnd = false;
  size_t command = 0;
  int32_t microBatch = 0;
  /// Where it ends: how many commands of the step had begun.
  uint64_t count = 0;
};

/// A step as a graph, and what the host does of it.
struct StepGraph {
  /// Null until it is captured.
  std::unique_ptr<StreamGraph> graph;
  /// Null where there are none.
  std::unique_ptr<CapturedOperations> operations;
  std::vector<CapturedCommand> commands;
  /// How many begin.
  uint64_t numBegun = 0;
};

/// One graph for each of the steps that differ in their addresses, which come
/// in turns.
class StepGraphs {
public:
  StepGraphs(size_t period, std::unique_ptr<Event> begun)
      : begun(std::move(begun)), graphs(period) {}

  StepGraph &of(uint64_t step) { return graphs[step % graphs.size()]; }
  /// Where compute is at the beginning of a capture.
  Event &getBegun() { return *begun; }

  void beginCapture(StepGraph &graph) {
    captured = &graph;
    graph.commands.clear();
  }
  void endCapture() { captured = nullptr; }
  bool captures() const { return captured; }
  /// Adds to what is captured.
  void add(const CapturedCommand &command) {
    captured->commands.push_back(command);
  }

private:
  std::unique_ptr<Event> begun;
  std::vector<StepGraph> graphs;
  StepGraph *captured = nullptr;
};

} // namespace ax::rt

#endif // AX_RUNTIME_STEPGRAPHS_H
