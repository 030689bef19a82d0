//===- Trace.cpp - What each rank did when --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Trace.h"

#include "ax/Support/AtomicFile.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ax::rt {

std::optional<double>
measureBubble(const Program &program,
              const std::vector<const RankTrace *> &traces) {
  if (program.stages.size() < 2)
    return std::nullopt;
  Clock::time_point begin = Clock::time_point::max(),
                    end = Clock::time_point::min();
  Clock::duration busy{0};
  for (const RankTrace *trace : traces) {
    const std::vector<const Command *> commands =
        program.stages[static_cast<size_t>(trace->stage)].allCommands();
    for (const TraceEvent &event : trace->events) {
      if (event.stream != StreamKind::Compute)
        continue;
      begin = std::min(begin, event.begin);
      end = std::max(end, event.end);
      const auto &body = commands[static_cast<size_t>(event.command)]->body;
      if (!std::holds_alternative<RecvCommand>(body) &&
          !std::holds_alternative<SendCommand>(body))
        busy += event.end - event.begin;
    }
  }
  if (begin >= end)
    return std::nullopt;
  using Seconds = std::chrono::duration<double>;
  return 1 - Seconds(busy) /
                 (Seconds(end - begin) * static_cast<double>(traces.size()));
}

llvm::Error writeChromeTrace(const std::string &path, const Program &program,
                             const std::vector<const RankTrace *> &traces) {
  Clock::time_point origin = Clock::time_point::max();
  std::set<StreamKind> streams = {StreamKind::Compute};
  for (const RankTrace *trace : traces)
    for (const TraceEvent &event : trace->events) {
      origin = std::min(origin, event.begin);
      streams.insert(event.stream);
    }
  // Tracks of a rank are beside each other.
  constexpr auto numKinds = static_cast<int64_t>(numStreamKinds);
  auto trackOf = [&](const RankTrace &trace, StreamKind kind) -> int64_t {
    return streams.size() == 1
               ? trace.rank
               : trace.rank * numKinds + static_cast<int64_t>(kind);
  };
  auto microseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("displayTimeUnit", "ms");
    json.attributeArray("traceEvents", [&] {
      for (const RankTrace *trace : traces) {
        const StageProgram &stage =
            program.stages[static_cast<size_t>(trace->stage)];
        const std::vector<const Command *> commands = stage.allCommands();
        for (StreamKind kind : streams)
          json.object([&] {
            json.attribute("ph", "M");
            json.attribute("name", "thread_name");
            json.attribute("pid", 0);
            json.attribute("tid", trackOf(*trace, kind));
            json.attributeObject("args", [&] {
              std::string name = "rank " + std::to_string(trace->rank) +
                                 ", stage " + stage.name;
              if (streams.size() > 1)
                name += std::string(", ") + toString(kind);
              json.attribute("name", name);
            });
          });
        for (const TraceEvent &event : trace->events) {
          const Command *command =
              event.command == TraceEvent::ports
                  ? nullptr
                  : commands[static_cast<size_t>(event.command)];
          const char *ports =
              event.stream == StreamKind::Upload ? "inputs" : "outputs";
          json.object([&] {
            json.attribute("ph", "X");
            json.attribute("name", command ? command->name.c_str() : ports);
            json.attribute("pid", 0);
            json.attribute("tid", trackOf(*trace, event.stream));
            json.attribute("ts", microseconds(event.begin - origin));
            json.attribute("dur", microseconds(event.end - event.begin));
            json.attributeObject("args", [&] {
              if (command) {
                json.attribute("what", describe(program, stage, *command));
                json.attributeArray("nodes", [&] {
                  for (const std::string &node : command->nodes)
                    json.value(llvm::json::fixUTF8(node));
                });
              }
              json.attribute("micro-batch", event.microBatch);
            });
          });
        }
      }
    });
  });
  return writeFileAtomically(path, llvm::StringRef(os.str()));
}

TimeSummary summarise(std::vector<std::chrono::nanoseconds> times) {
  TimeSummary summary;
  if (times.empty())
    return summary;
  std::sort(times.begin(), times.end());
  // The smallest that at least so many do not exceed.
  auto quantile = [&](double share) {
    double rank = std::ceil(share * static_cast<double>(times.size()));
    return times[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  size_t middle = times.size() / 2;
  summary.least = times.front();
  summary.median = times.size() % 2 ? times[middle]
                                    : (times[middle - 1] + times[middle]) / 2;
  summary.p90 = quantile(0.9);
  summary.p99 = quantile(0.99);
  std::chrono::nanoseconds sum{0};
  for (std::chrono::nanoseconds time : times)
    sum += time;
  summary.mean = sum / static_cast<int64_t>(times.size());
  return summary;
}

} // namespace ax::rt
