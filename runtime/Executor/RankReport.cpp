//===- RankReport.cpp - What a rank tells of itself -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankReport.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/Error.h"
#include "ax/Support/WireFormat.h"

namespace ax::rt {

namespace {

enum Field : uint32_t { Host = 1, Now, Rank, Stage, Memory, Event };

uint64_t toNumber(Clock::time_point time) {
  return static_cast<uint64_t>(time.time_since_epoch().count());
}

std::string encodeNumbers(llvm::ArrayRef<uint64_t> numbers) {
  std::string bytes;
  for (uint64_t number : numbers)
    appendVarint(bytes, number);
  return bytes;
}

std::string encode(const std::string &host, llvm::ArrayRef<RankReport> ranks) {
  std::string out;
  appendBytesField(out, Host, host);
  appendVarintField(out, Now, toNumber(Clock::now()));
  for (const auto &[trace, memory] : ranks) {
    appendVarintField(out, Rank, static_cast<uint64_t>(trace.rank));
    appendVarintField(out, Stage, static_cast<uint64_t>(trace.stage));
    appendBytesField(out, Memory,
                     encodeNumbers({static_cast<uint64_t>(memory.arenaBytes),
                                    static_cast<uint64_t>(memory.bufferBytes),
                                    static_cast<uint64_t>(memory.stateBytes)}));
    for (const TraceEvent &event : trace.events)
      appendBytesField(
          out, Event,
          encodeNumbers({static_cast<uint64_t>(event.command + 1),
                         static_cast<uint64_t>(event.microBatch),
                         toNumber(event.begin), toNumber(event.end),
                         static_cast<uint64_t>(event.stream)}));
  }
  return out;
}

class Decoder {
public:
  Decoder(const Program &program, const std::string &ownHost,
          std::vector<RankReport> &reports)
      : program(program), ownHost(ownHost), reports(reports) {}

  bool decode(llvm::StringRef bytes);

private:
  bool take(const WireField &field);
  bool takeMemory(WireReader numbers);
  bool takeEvent(WireReader numbers);

  const Program &program;
  const std::string &ownHost;
  std::vector<RankReport> &reports;
  bool isOwnHost = false;
  /// Of the stage of the last rank.
  size_t numCommands = 0;
  /// What is added to the times of its clock.
  uint64_t shift = 0;
};

} // namespace

bool Decoder::decode(llvm::StringRef bytes) {
  size_t before = reports.size();
  WireReader reader({bytes.bytes_begin(), bytes.bytes_end()});
  WireField field;
  while (reader.read(field))
    if (!take(field))
      return false;
  return !reader.isMalformed() && reports.size() > before;
}

bool Decoder::take(const WireField &field) {
  switch (field.number) {
  case Host:
    isOwnHost = field.text() == ownHost;
    return true;
  case Now:
    // Of one host all processes have one clock.
    shift = isOwnHost ? 0 : toNumber(Clock::now()) - field.value;
    return true;
  case Rank:
    if (field.value >= static_cast<uint64_t>(program.mesh.numRanks()))
      return false;
    reports.emplace_back();
    reports.back().trace.rank = static_cast<int32_t>(field.value);
    return true;
  default:
    break;
  }
  if (reports.empty())
    return false;
  WireReader numbers(field.bytes);
  switch (field.number) {
  case Stage:
    if (field.value >= program.stages.size())
      return false;
    reports.back().trace.stage = static_cast<int32_t>(field.value);
    numCommands = program.stages[field.value].allCommands().size();
    return true;
  case Memory:
    return takeMemory(numbers);
  case Event:
    return takeEvent(numbers);
  default:
    return false;
  }
}

bool Decoder::takeMemory(WireReader numbers) {
  uint64_t arena, buffers, states;
  if (!numbers.readVarint(arena) || !numbers.readVarint(buffers) ||
      !numbers.readVarint(states))
    return false;
  reports.back().memory = {static_cast<int64_t>(arena),
                           static_cast<int64_t>(buffers),
                           static_cast<int64_t>(states)};
  return true;
}

bool Decoder::takeEvent(WireReader numbers) {
  // Counted from 1: ports are 0.
  uint64_t command, microBatch, begin, end, stream;
  if (!numbers.readVarint(command) || !numbers.readVarint(microBatch) ||
      !numbers.readVarint(begin) || !numbers.readVarint(end) ||
      !numbers.readVarint(stream))
    return false;
  RankTrace &trace = reports.back().trace;
  if (command > numCommands || stream >= numStreamKinds)
    return false;
  auto timeOf = [&](uint64_t number) {
    return Clock::time_point(
        Clock::duration(static_cast<Clock::rep>(number + shift)));
  };
  trace.events.push_back({static_cast<int32_t>(command) - 1,
                          static_cast<int32_t>(microBatch), timeOf(begin),
                          timeOf(end), static_cast<StreamKind>(stream)});
  return true;
}

llvm::Expected<std::vector<RankReport>>
gatherRankReports(World &world, const Program &program,
                  llvm::ArrayRef<RankReport> mine) {
  // So that none is long on its way.
  if (llvm::Error error = world.barrier("clocks of ranks"))
    return error;
  const std::string &host = world.getPlace().host;
  auto all = gatherLong(world, "what ranks did", encode(host, mine));
  if (!all)
    return all.takeError();
  std::vector<RankReport> reports;
  Decoder decoder(program, host, reports);
  for (const std::string &bytes : *all)
    if (!decoder.decode(bytes))
      return makeError(ExitCode::RunFailed,
                       "what another process has sent of its ranks is none of "
                       "what they can do");
  return reports;
}

} // namespace ax::rt
