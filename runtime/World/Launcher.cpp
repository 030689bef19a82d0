//===- Launcher.cpp - Who has started this process ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Launcher.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

namespace ax::rt {

namespace {

/// No job has more.
constexpr int64_t mostProcesses = 1 << 20;

/// `variable` is there, with something in it.
bool isSet(Environment variable, const char *name) {
  const char *value = variable(name);
  return value && *value;
}

std::string textOf(Environment variable, const char *name) {
  const char *value = variable(name);
  return value ? value : "";
}

std::optional<int64_t> numberOf(Environment variable, const char *name) {
  int64_t number;
  if (llvm::StringRef(textOf(variable, name)).getAsInteger(10, number))
    return std::nullopt;
  return number;
}

bool hasRanks(Environment variable) {
  return isSet(variable, "RANK") && isSet(variable, "WORLD_SIZE") &&
         isSet(variable, "MASTER_ADDR");
}

/// srun's variables, of a step of several tasks. A batch script, which is none,
/// has some of them, too.
bool hasTasks(Environment variable) {
  auto count = numberOf(variable, "SLURM_STEP_NUM_TASKS");
  return count && *count > 1 && isSet(variable, "SLURM_PROCID");
}

bool hasPmi(Environment variable) {
  return variable("PMIX_RANK") || variable("PMI_RANK");
}

llvm::Error wrong(Environment variable, const char *name,
                  const llvm::Twine &expected) {
  return makeErrorf(ExitCode::Usage, "{0}={1} in the environment: {2}", name,
                    textOf(variable, name), expected.str());
}

llvm::Expected<int64_t> readNumber(Environment variable, const char *name,
                                   int64_t least, int64_t most) {
  auto number = numberOf(variable, name);
  if (number && *number >= least && *number <= most)
    return *number;
  return wrong(variable, name,
               "expected a number from " + llvm::Twine(least) + " to " +
                   llvm::Twine(most));
}

class MeetingReader {
public:
  MeetingReader(llvm::StringRef control, Environment variable)
      : variable(variable), control(control), ofRanks(hasRanks(variable)) {}

  llvm::Expected<Meeting> read() {
    if (llvm::Error error = readPlace())
      return error;
    if (llvm::Error error = readPlaceOnHost())
      return error;
    if (llvm::Error error = readHost())
      return error;
    if (llvm::Error error = readPort())
      return error;
    findAddress();
    meeting.key = makeKey();
    return std::move(meeting);
  }

private:
  llvm::Error readPlace() {
    const char *ofAll = ofRanks ? "WORLD_SIZE" : "SLURM_STEP_NUM_TASKS";
    const char *own = ofRanks ? "RANK" : "SLURM_PROCID";
    auto count = readNumber(variable, ofAll, 1, mostProcesses);
    if (!count)
      return count.takeError();
    auto number = numberOf(variable, own);
    if (!number || *number < 0 || *number >= *count)
      return wrong(variable, own,
                   "expected a number from 0 to " + llvm::Twine(*count - 1) +
                       ", as " + ofAll + " is " + llvm::Twine(*count));
    meeting.place.process = static_cast<int32_t>(*number);
    meeting.place.numProcesses = static_cast<int32_t>(*count);
    meeting.source =
        llvm::formatv("{0}={1} and {2}={3}", own, *number, ofAll, *count);
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    meeting.place.host = name;
    return llvm::Error::success();
  }

  llvm::Error readPlaceOnHost() {
    int64_t most = meeting.place.numProcesses;
    meeting.place.indexOnHost = -1;
    meeting.place.numOnHost = 0;
    if (isSet(variable, "LOCAL_WORLD_SIZE")) {
      auto count = readNumber(variable, "LOCAL_WORLD_SIZE", 1, most);
      if (!count)
        return count.takeError();
      most = *count;
      if (isSet(variable, "LOCAL_RANK"))
        meeting.place.numOnHost = static_cast<int32_t>(most);
    }
    for (const char *name : {"LOCAL_RANK", "SLURM_LOCALID"}) {
      if (!isSet(variable, name) || (ofRanks && name[0] == 'S'))
        continue;
      auto index = readNumber(variable, name, 0, most - 1);
      if (!index)
        return index.takeError();
      meeting.place.indexOnHost = static_cast<int32_t>(*index);
      break;
    }
    return llvm::Error::success();
  }

  llvm::Error readHost() {
    meeting.host = splitAddress(control).first.str();
    if (meeting.host.empty())
      meeting.host = textOf(variable, "MASTER_ADDR");
    for (const char *name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST"})
      if (meeting.host.empty())
        meeting.host = firstOfNodes(textOf(variable, name));
    if (!meeting.host.empty())
      return llvm::Error::success();
    return makeErrorf(ExitCode::Usage,
                      "{0} processes were started, and nothing says where "
                      "process 0 is: set MASTER_ADDR to its host, or give "
                      "--control HOST:PORT",
                      meeting.place.numProcesses);
  }

  llvm::Error readPort() {
    llvm::StringRef given = splitAddress(control).second;
    if (!given.empty() && given != "0") {
      if (!given.getAsInteger(10, meeting.port))
        return llvm::Error::success();
      return makeErrorf(ExitCode::Usage,
                        "--control={0}: a port is a number below 65536",
                        control);
    }
    if (isSet(variable, "MASTER_PORT")) {
      // The next one has to be a port, too.
      auto port = readNumber(variable, "MASTER_PORT", 1, 65534);
      if (!port)
        return port.takeError();
      meeting.port = static_cast<uint16_t>(*port + 1);
      return llvm::Error::success();
    }
    auto job = numberOf(variable, "SLURM_JOB_ID");
    if (ofRanks || !job)
      return makeErrorf(ExitCode::Usage,
                        "{0} processes were started, and nothing says by which "
                        "port process 0 is found: set MASTER_PORT to the one "
                        "below it, or give --control HOST:PORT",
                        meeting.place.numProcesses);
    // Below those that systems give away, and another one for the next step.
    constexpr uint64_t first = 15000, count = 15000;
    auto step =
        static_cast<uint64_t>(numberOf(variable, "SLURM_STEP_ID").value_or(0));
    meeting.port = static_cast<uint16_t>(
        first + (static_cast<uint64_t>(*job) * 16 + step) % count);
    return llvm::Error::success();
  }

  /// The name of a host may be one of its own addresses there, which no other
  /// host reaches: so all are listened at.
  void findAddress() {
    llvm::StringRef host = meeting.host;
    bool isOwn = host == "localhost" || host.starts_with("127.") ||
                 host == "::1" || !splitAddress(control).first.empty();
    bool isLong = host.contains(':');
    meeting.address = (!isOwn   ? std::string(isLong ? "[::]" : "")
                       : isLong ? "[" + meeting.host + "]"
                                : meeting.host) +
                      ":" + std::to_string(meeting.port);
  }

  std::string makeKey() {
    std::string text = "axrun\n";
    for (const char *name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID",
                             "SLURM_STEP_ID", "AXRUN_KEY"}) {
      bool isSecret = llvm::StringRef(name) == "AXRUN_KEY";
      if (isSecret && isSet(variable, name))
        text = "axrun's key\n";
      else if (isSecret || (ofRanks && name[0] == 'S'))
        continue;
      text += textOf(variable, name) + "\n";
    }
    auto digits = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
    return llvm::toHex(llvm::ArrayRef<uint8_t>(digits).take_front(16),
                       /*LowerCase=*/true);
  }

  Environment variable;
  llvm::StringRef control;
  /// torchrun's variables are there, and not srun's alone.
  bool ofRanks;
  Meeting meeting;
};

} // namespace

const char *readVariable(const char *name) { return std::getenv(name); }

Launcher findLauncher(Environment variable) {
  if (variable("OMPI_COMM_WORLD_SIZE"))
    return numberOf(variable, "OMPI_COMM_WORLD_SIZE").value_or(2) > 1
               ? Launcher::Mpi
               : Launcher::None;
  // torchrun under srun: what srun says is of another process.
  if (hasRanks(variable) &&
      (!hasPmi(variable) || variable("TORCHELASTIC_RUN_ID")))
    return textOf(variable, "WORLD_SIZE") == "1" &&
                   textOf(variable, "RANK") == "0"
               ? Launcher::None
               : Launcher::Variables;
  if (hasPmi(variable))
    return countStarted(variable).value_or(2) > 1 ? Launcher::Mpi
                                                  : Launcher::None;
  return hasTasks(variable) ? Launcher::Variables : Launcher::None;
}

std::optional<int64_t> countStarted(Environment variable) {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (auto count = numberOf(variable, name))
      return count;
  return std::nullopt;
}

bool isLaunched(Environment variable) {
  return countStarted(variable) || hasPmi(variable) || hasRanks(variable);
}

std::string rankOfMpiLauncher(Environment variable) {
  for (const char *name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (isSet(variable, name))
      return textOf(variable, name);
  return "0";
}

bool isFirstOfLauncher(Environment variable) {
  switch (findLauncher(variable)) {
  case Launcher::None:
    return true;
  case Launcher::Mpi:
    return rankOfMpiLauncher(variable) == "0";
  case Launcher::Variables:
    break;
  }
  bool ofRanks = hasRanks(variable);
  auto number = numberOf(variable, ofRanks ? "RANK" : "SLURM_PROCID");
  auto count =
      numberOf(variable, ofRanks ? "WORLD_SIZE" : "SLURM_STEP_NUM_TASKS");
  // Who is none of them has an error of its own.
  return !number || *number <= 0 || (count && *number >= *count);
}

llvm::Expected<Meeting> readMeeting(llvm::StringRef control,
                                    Environment variable) {
  return MeetingReader(control, variable).read();
}

std::pair<llvm::StringRef, llvm::StringRef>
splitAddress(llvm::StringRef address) {
  auto [host, port] = address.rsplit(':');
  if (!address.contains(':') || port.contains(']')) {
    host = address;
    port = "";
  }
  if (host.consume_front("["))
    host.consume_back("]");
  return {host, port};
}

std::string firstOfNodes(llvm::StringRef nodes) {
  std::string name;
  bool inList = false, isTaken = false;
  for (char c : nodes) {
    if (c == '[' || c == ']') {
      inList = c == '[';
      isTaken = false;
    } else if (!inList && c == ',') {
      break;
    } else if (inList && (c == ',' || c == '-')) {
      isTaken = true;
    } else if (!isTaken) {
      name += c;
    }
  }
  return name;
}

void placeAmong(ProcessPlace &place, const std::vector<std::string> &hosts) {
  if (place.numOnHost > 0)
    return;
  auto end = hosts.begin() + place.process;
  if (place.indexOnHost < 0)
    place.indexOnHost =
        static_cast<int32_t>(std::count(hosts.begin(), end, place.host));
  place.numOnHost =
      std::max(static_cast<int32_t>(llvm::count(hosts, place.host)),
               place.indexOnHost + 1);
}

} // namespace ax::rt
