//===- PredictTime.cpp - How long commands take ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A roofline of each command: what it multiplies, or what it reads and writes,
// whichever takes longer, and the time to begin it. What is fused is one
// command, which the operations of a plan do not tell.
//
//===----------------------------------------------------------------------===//
#include "PredictTime.h"

#include <algorithm>
#include <map>
#include <variant>

using namespace ax;
using namespace ax::codegen;
using sharding::StepKind;

static StepKind stepOf(rt::CollectiveKind kind) {
  switch (kind) {
  case rt::CollectiveKind::AllReduce:
    return StepKind::AllReduce;
  case rt::CollectiveKind::ReduceScatter:
    return StepKind::ReduceScatter;
  case rt::CollectiveKind::AllGather:
    return StepKind::AllGather;
  case rt::CollectiveKind::AllToAll:
    return StepKind::AllToAll;
  case rt::CollectiveKind::Permute:
    return StepKind::CollectivePermute;
  }
  llvm_unreachable("no such collective");
}

namespace {

class Clock {
public:
  Clock(const rt::StageProgram &stage, const cost::Machine &machine)
      : stage(stage), machine(machine) {}

  double getNow() const { return now; }

  void pass(const rt::Command &command) {
    double bytes = static_cast<double>(command.bytes);
    if (const auto *library = std::get_if<rt::LibraryCommand>(&command.body))
      compute(productSeconds(library->desc), bytes);
    else if (std::holds_alternative<rt::KernelCommand>(command.body) ||
             std::holds_alternative<rt::CopyCommand>(command.body))
      compute(0, bytes);
    else if (const auto *wait = std::get_if<rt::WaitCommand>(&command.body))
      now = std::max(now, ends[wait->request]);
    else if (const auto *collective =
                 std::get_if<rt::CollectiveCommand>(&command.body))
      exchange(*collective);
  }

private:
  void compute(double products, double bytes) {
    now += machine.commandLatency +
           std::max(products, bytes / machine.bytesPerSecond);
  }

  double productSeconds(const rt::LibraryDesc &desc) const {
    auto flops = static_cast<double>(rt::countFlops(desc));
    if (flops == 0)
      return 0;
    DType type = rt::argumentDesc(desc, 0).dtype;
    switch (byteSize(type)) {
    case 1:
      // Cards multiply eight bits twice as fast as 16.
      return flops / (machine.target.empty()
                          ? machine.flopsPerSecond
                          : 2 * machine.narrowFlopsPerSecond);
    case 2:
      return flops / machine.narrowFlopsPerSecond;
    case 8:
      return 2 * flops / machine.flopsPerSecond;
    default:
      return flops / machine.flopsPerSecond;
    }
  }

  cost::Spread spreadOf(const rt::GroupSet &groups) const {
    auto spread = [&](llvm::ArrayRef<int32_t> group) {
      return cost::spreadOf(
          llvm::SmallVector<int64_t>(group.begin(), group.end()),
          machine.ranksPerHost);
    };
    cost::Spread worst = spread(groups.groups.front());
    // On one host all are alike.
    if (machine.ranksPerHost)
      for (const std::vector<int32_t> &group : groups.groups)
        worst = cost::worseOf(worst, spread(group));
    return worst;
  }

  void exchange(const rt::CollectiveCommand &collective) {
    int64_t bytes = 0;
    for (const rt::CollectivePart &part : collective.parts)
      bytes += std::max(rt::sourceBytes(part), rt::destinationBytes(part));
    double seconds =
        cost::exchangeSeconds(stepOf(collective.parts.front().kind),
                              spreadOf(stage.groups[collective.groupSet]),
                              static_cast<double>(bytes), machine);
    // Exchanges take their turns.
    free = std::max(now, free) + seconds;
    if (collective.request >= 0 && machine.overlapsCollectives)
      ends[collective.request] = free;
    else
      now = free;
  }

  const rt::StageProgram &stage;
  const cost::Machine &machine;
  double now = 0, free = 0;
  std::map<int32_t, double> ends;
};

} // namespace

double codegen::predictSeconds(const rt::CommandList &list,
                               const rt::StageProgram &stage,
                               const rt::Program &program,
                               const cost::Machine &machine) {
  // Of commands that take turns, those of most micro-batches.
  bool hasSeveral = program.mesh.numTimeSlices() > 1;
  rt::MicroBatches idle =
      hasSeveral ? rt::MicroBatches::First : rt::MicroBatches::AllButFirst;
  Clock clock(stage, machine);
  for (const rt::Command &command : list.commands)
    if (command.microBatches != rt::MicroBatches::Once &&
        command.microBatches != idle)
      clock.pass(command);
  return clock.getNow();
}
