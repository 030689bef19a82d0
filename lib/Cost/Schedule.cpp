//===- Schedule.cpp - Pipeline schedules by name --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Schedule.h"

#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace ax::cost {

// A function of each file in Schedules/.
#define AX_FILE(Name) void add##Name(PipelineSchedules &schedules);
#include "Schedules.inc"
#undef AX_FILE

PipelineSchedule::~PipelineSchedule() = default;

int64_t PipelineSchedule::slots(const Pipeline &pipeline, int64_t coordinate,
                                ActionKind kind,
                                const ActionOrder &order) const {
  // The stages before and behind may be on the same coordinate.
  auto partOn = [&](int64_t stage) {
    bool isHere = stage >= 0 && stage < pipeline.coordinates * pipeline.parts &&
                  coordinateOf(stage, pipeline.coordinates) == coordinate;
    return isHere ? stage / pipeline.coordinates : -1;
  };
  int64_t stage = kind.part * pipeline.coordinates;
  while (coordinateOf(stage, pipeline.coordinates) != coordinate)
    ++stage;
  auto uses = [&](ActionKind other) {
    if (other.action == kind.action)
      return (kind.action == Action::Forward &&
              other.part == partOn(stage + 1)) ||
             (kind.action == Action::Backward &&
              other.part == partOn(stage - 1));
    return other.part == kind.part && other.action > kind.action;
  };
  int64_t begun = 0, most = 1;
  for (const ScheduledAction &action : order) {
    begun += action.kind == kind;
    if (uses(action.kind))
      most = std::max(most, begun - action.microBatch);
  }
  return most;
}

const PipelineSchedules &PipelineSchedules::get() {
  static const PipelineSchedules all = [] {
    PipelineSchedules schedules;
#define AX_FILE(Name) add##Name(schedules);
#include "Schedules.inc"
#undef AX_FILE
    return schedules;
  }();
  return all;
}

void PipelineSchedules::add(std::unique_ptr<PipelineSchedule> schedule) {
  std::string name = schedule->name().str();
  byName.emplace(std::move(name), std::move(schedule));
}

std::vector<llvm::StringRef> PipelineSchedules::names() const {
  std::vector<llvm::StringRef> names;
  for (const auto &[name, schedule] : byName)
    names.push_back(name);
  return names;
}

llvm::Expected<const PipelineSchedule *>
PipelineSchedules::parse(llvm::StringRef name) const {
  if (auto found = byName.find(std::string_view(name)); found != byName.end())
    return found->second.get();
  return makeErrorf(ExitCode::Usage, "there is no schedule '{0}', but {1}{2}",
                    name, llvm::join(names(), ", "),
                    suggestNearest(name, names()));
}

llvm::Error check(const PipelineSchedule &schedule, const Pipeline &pipeline) {
  auto [least, most] = schedule.parts();
  if (pipeline.parts < least || pipeline.parts > most)
    return makeErrorf(ExitCode::Usage,
                      "--virtual-stages={0} with --schedule={1}: it takes {2} "
                      "of the model's parts on each stage",
                      pipeline.parts, schedule.name(),
                      least == most
                          ? std::to_string(least)
                          : llvm::formatv("{0} to {1}", least, most).str());
  if (std::string fault = schedule.findFault(pipeline); !fault.empty())
    return makeErrorf(ExitCode::Usage, "--schedule={0} {1}", schedule.name(),
                      fault);
  return llvm::Error::success();
}

} // namespace ax::cost
