//===- ReadRecords.cpp - The flight records of a folder -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ReadRecords.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <set>

using namespace ax;
using namespace ax::flight;
namespace json = llvm::json;

namespace {

/// A record of 1,000 events is far from these.
constexpr uint64_t mostBytes = uint64_t(64) << 20;
constexpr uint64_t mostBytesOfAll = uint64_t(2) << 30;
constexpr size_t mostBytesOfLine = size_t(1) << 20;
constexpr int64_t mostRanks = 1 << 20;
constexpr int mostDepth = 8;

llvm::Error damaged(const llvm::Twine &message) {
  return makeError(ExitCode::BadInput, message);
}

/// The parser recurses: what is deeper than any record is not given to it.
bool isDeep(llvm::StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '{' || c == '[') && ++depth > mostDepth)
      return true;
    else if (!inString && (c == '}' || c == ']'))
      --depth;
  }
  return false;
}

/// Fields of one line; the first that is missing or of another type is told.
class Fields {
public:
  explicit Fields(const json::Object &object) : object(object) {}

  bool has(llvm::StringRef name) const { return object.get(name); }
  int64_t integer(llvm::StringRef name, int64_t least = 0) {
    auto value = object.getInteger(name);
    if (!value || *value < least)
      miss(name);
    return value.value_or(least);
  }
  std::string text(llvm::StringRef name) {
    auto value = object.getString(name);
    if (!value)
      miss(name);
    return value.value_or("").str();
  }
  bool boolean(llvm::StringRef name) {
    auto value = object.getBoolean(name);
    if (!value)
      miss(name);
    return value.value_or(false);
  }
  /// null: none.
  std::optional<int64_t> time(llvm::StringRef name) {
    const json::Value *value = object.get(name);
    if (value && value->kind() == json::Value::Null)
      return std::nullopt;
    return integer(name);
  }
  std::vector<std::string> texts(llvm::StringRef name) {
    std::vector<std::string> values;
    each(name, [&](const json::Value &value) {
      auto text = value.getAsString();
      values.push_back(text.value_or("").str());
      return text.has_value();
    });
    return values;
  }
  std::vector<int64_t> integers(llvm::StringRef name) {
    std::vector<int64_t> values;
    each(name, [&](const json::Value &value) {
      auto number = value.getAsInteger();
      values.push_back(number.value_or(0));
      return number.has_value();
    });
    return values;
  }
  /// Also of what the caller finds.
  void miss(llvm::StringRef name) {
    if (missing.empty())
      missing = name;
  }
  llvm::Error takeError() const {
    return missing.empty()
               ? llvm::Error::success()
               : damaged("no such '" + missing + "' is in a record");
  }

private:
  void each(llvm::StringRef name,
            llvm::function_ref<bool(const json::Value &)> take) {
    const json::Array *array = object.getArray(name);
    if (!array || !llvm::all_of(*array, take))
      miss(name);
  }

  const json::Object &object;
  std::string missing;
};

/// Reads the lines of one file.
class Reader {
public:
  explicit Reader(int64_t rank) { record.rank = rank; }

  llvm::Error readLine(llvm::StringRef line);
  bool isBegun() const { return begun; }
  Record record;

private:
  void readHeader(Fields &fields);
  void readGroup(Fields &fields);
  void readEvent(Fields &fields);

  bool begun = false;
  /// By number.
  std::vector<GroupHistory *> groups;
};

} // namespace

llvm::Error Reader::readLine(llvm::StringRef line) {
  if (line.size() > mostBytesOfLine)
    return damaged("it is longer than any line of a record");
  if (isDeep(line))
    return damaged("its brackets are deeper than those of any record");
  auto value = json::parse(line);
  if (!value)
    return damaged(llvm::toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  if (!object)
    return damaged("it is no JSON object");
  Fields fields(*object);
  if (!begun)
    readHeader(fields);
  else if (fields.has("group"))
    readGroup(fields);
  else
    readEvent(fields);
  begun = true;
  return fields.takeError();
}

void Reader::readHeader(Fields &fields) {
  if (fields.integer("flight_record") != 1)
    fields.miss("flight_record");
  if (fields.integer("rank") != record.rank)
    fields.miss("rank");
  record.numRanks = fields.integer("num_ranks", 1);
  if (record.numRanks > mostRanks || record.rank >= record.numRanks)
    fields.miss("num_ranks");
  record.run = fields.text("run");
  record.host = fields.text("host");
  record.isFailure = fields.boolean("is_failure");
  record.reason = fields.text("reason");
  record.doing = fields.text("doing");
  record.taken = fields.integer("taken");
  record.stopped = fields.integer("stopped");
  record.stoppedUntil = fields.time("stopped_until");
}

void Reader::readGroup(Fields &fields) {
  if (fields.integer("group") != static_cast<int64_t>(groups.size()))
    fields.miss("group");
  Group group{fields.text("name"), fields.boolean("is_transfer"),
              fields.integers("ranks")};
  std::set<int64_t> members(group.ranks.begin(), group.ranks.end());
  if (members.size() != group.ranks.size() || !members.count(record.rank) ||
      *members.begin() < 0 || *members.rbegin() >= record.numRanks ||
      (group.isTransfer && members.size() != 2))
    fields.miss("ranks");
  GroupHistory &history = record.groups[std::move(group)];
  history.started = fields.integer("started");
  history.finished = fields.integer("finished");
  if (history.finished > history.started)
    fields.miss("finished");
  groups.push_back(&history);
}

void Reader::readEvent(Fields &fields) {
  auto number = static_cast<size_t>(fields.integer("in_group"));
  int64_t sequence = fields.integer("sequence");
  if (number >= groups.size()) {
    fields.miss("in_group");
    return;
  }
  GroupHistory &history = *groups[number];
  if (sequence == INT64_MAX)
    fields.miss("sequence");
  else
    // Events go on while groups are written down.
    history.started = std::max(history.started, sequence + 1);
  history.events[sequence] = {
      fields.text("kind"),           fields.text("name"),
      fields.text("what"),           fields.integer("bytes"),
      fields.integer("micro_batch"), fields.texts("nodes"),
      fields.time("started"),        fields.time("waited"),
      fields.time("finished")};
}

/// `bytes`: what may still be read of all files.
static llvm::Expected<Record>
readRecord(const std::string &path, int64_t rank, uint64_t &bytes,
           const std::function<void(const std::string &)> &warn) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status) ||
      status.type() != llvm::sys::fs::file_type::regular_file)
    return damaged("it is no regular file that can be read");
  if (status.getSize() > std::min(mostBytes, bytes))
    return damaged("it is larger than any record");
  bytes -= status.getSize();
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false,
                                          /*IsVolatile=*/true);
  if (!file)
    return damaged(file.getError().message());
  Reader reader(rank);
  llvm::StringRef rest = (*file)->getBuffer();
  for (int64_t line = 1; !rest.empty(); ++line) {
    size_t end = rest.find('\n');
    if (end == llvm::StringRef::npos) {
      if (!reader.isBegun())
        break;
      warn("'" + path + "' is cut off in line " + std::to_string(line) +
           ": what is before it counts");
      break;
    }
    if (llvm::Error error = reader.readLine(rest.take_front(end)))
      return addContext(std::move(error), "line " + llvm::Twine(line));
    rest = rest.drop_front(end + 1);
  }
  if (!reader.isBegun())
    return damaged("it has no whole line");
  return std::move(reader.record);
}

/// By rank; of what has such a name.
static llvm::Expected<std::map<int64_t, std::string>>
findFiles(const std::string &folder) {
  std::map<int64_t, std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end;
       it != end && !error; it.increment(error)) {
    llvm::StringRef path = it->path();
    llvm::StringRef name = path.substr(path.find_last_of('/') + 1);
    int64_t rank = 0;
    if (name.consume_front("rank-") && name.consume_back(".jsonl") &&
        !name.getAsInteger(10, rank) && std::to_string(rank) == name &&
        rank >= 0 && rank < mostRanks)
      files[rank] = path.str();
  }
  if (error)
    return makeErrnoError("cannot read the folder '" + folder + "'",
                          error.value());
  if (files.empty())
    return damaged("'" + folder +
                   "' has no flight record (rank-N.jsonl), which axrun "
                   "--flight-recorder=DIR writes");
  return files;
}

llvm::Expected<Records>
flight::readRecords(const std::string &folder,
                    const std::function<void(const std::string &)> &warn) {
  auto files = findFiles(folder);
  if (!files)
    return files.takeError();
  std::vector<Record> read;
  uint64_t bytes = mostBytesOfAll;
  for (const auto &[rank, path] : *files) {
    auto record = readRecord(path, rank, bytes, warn);
    if (record)
      read.push_back(std::move(*record));
    else
      warn("'" + path + "' is no flight record: " +
           shorten(describeError(record.takeError()).message));
  }
  if (read.empty())
    return damaged("'" + folder + "' has no flight record that is whole");
  const Record &newest = *std::max_element(
      read.begin(), read.end(),
      [](const Record &a, const Record &b) { return a.taken < b.taken; });
  std::string run = newest.run;
  Records records;
  records.numRanks = newest.numRanks;
  auto isOfRun = [&](const Record &record) {
    return record.run == run && record.numRanks == records.numRanks;
  };
  bool hasFailed = llvm::any_of(read, [&](const Record &record) {
    return isOfRun(record) && record.isFailure;
  });
  for (Record &record : read) {
    int64_t rank = record.rank;
    if (!isOfRun(record))
      warn("the record of rank " + std::to_string(rank) +
           " is of another run, and left out");
    else if (hasFailed && !record.isFailure)
      warn("the record of rank " + std::to_string(rank) +
           " is of before the failure, and left out");
    else
      records.ranks[rank] = std::move(record);
  }
  return records;
}
