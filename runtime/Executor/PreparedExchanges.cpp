//===- PreparedExchanges.cpp - What ranks are to do together --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PreparedExchanges.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Support/Error.h"
#include "ax/Support/WireFormat.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <set>

namespace ax::rt {

void PreparedExchanges::add(const FlightExchange &exchange) {
  auto [at, isNew] =
      groupNumbers.try_emplace(&exchange.getGroup(), groups.size());
  if (isNew)
    groups.push_back({&exchange.getGroup(), {}, {}});
  Group &group = groups[at->second];
  operationNumbers[&exchange] = group.operations.size();
  std::shared_ptr<const FlightOperation> operation = exchange.getOperation();
  std::string bytes = std::to_string(operation->bytes) + " bytes";
  // Both ends of a transfer call it by their own names.
  group.operations.push_back(group.group->isTransfer
                                 ? bytes
                                 : "'" + operation->name + "' (" +
                                       operation->what + ", " + bytes + ")");
}

void PreparedExchanges::addStart(const FlightExchange &exchange,
                                 int32_t microBatch) {
  groups[groupNumbers.at(&exchange.getGroup())].starts.emplace_back(
      operationNumbers.at(&exchange), microBatch);
}

PreparedExchanges::Group PreparedExchanges::Group::inOrder() const {
  Group sorted = *this;
  if (!group->isTransfer)
    return sorted;
  llvm::sort(sorted.operations);
  for (auto &[operation, microBatch] : sorted.starts)
    operation = static_cast<size_t>(
        llvm::lower_bound(sorted.operations, operations[operation]) -
        sorted.operations.begin());
  llvm::sort(sorted.starts);
  return sorted;
}

uint64_t PreparedExchanges::Group::getKey() const {
  std::string bytes = group->name;
  bytes += group->isTransfer ? '\1' : '\0';
  for (int32_t member : group->ranks)
    appendVarint(bytes, static_cast<uint64_t>(member));
  return llvm::xxh3_64bits(bytes);
}

uint64_t PreparedExchanges::Group::getDigest() const {
  std::string bytes;
  for (const std::string &operation : operations) {
    bytes += operation;
    bytes += '\0';
  }
  for (const auto &[operation, microBatch] : starts) {
    appendVarint(bytes, operation);
    appendVarint(bytes, static_cast<uint64_t>(microBatch));
  }
  return llvm::xxh3_64bits(bytes);
}

std::vector<std::string> PreparedExchanges::Group::describe() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < operations.size(); ++i)
    lines.push_back("it prepares as number " + std::to_string(i) + " " +
                    operations[i]);
  lines.push_back("it prepares nothing more");
  for (size_t i = 0; i < starts.size(); ++i)
    lines.push_back("a step starts as number " + std::to_string(i) + " " +
                    operations[starts[i].first] + " of micro-batch " +
                    std::to_string(starts[i].second));
  return lines;
}

namespace {

enum Field : uint32_t { Rank = 1, Key, Digest, Size };
enum DetailField : uint32_t { Host = 1, Holder, Name, Member, Line };

/// What ranks have of a group.
struct Held {
  uint64_t size = 0;
  /// By rank.
  std::map<int32_t, uint64_t> digests;
};

/// Two members of a group of which the first has another, or which the second
/// lacks; -1: one that is not known yet.
struct Difference {
  uint64_t key = 0;
  int32_t first = -1, second = -1;
};

/// What two ranks tell of a group that they differ in.
struct Detail {
  std::string host, name;
  std::vector<int32_t> members;
  std::vector<std::string> lines;
};

class Comparison {
public:
  llvm::Error add(llvm::StringRef bytes);
  /// The first, in the order in which ranks were added.
  std::optional<Difference> find() const;
  bool hasGroup(int32_t rank, uint64_t key) const {
    auto found = groups.find(key);
    return found != groups.end() && found->second.digests.count(rank);
  }

private:
  std::map<uint64_t, Held> groups;
  std::vector<uint64_t> order;
};

} // namespace

static llvm::Error damaged() {
  return makeError(ExitCode::RunFailed, "what another process has sent of its "
                                        "exchanges is none of what it can be");
}

static std::string encodeDigests(llvm::ArrayRef<PreparedExchanges> ranks) {
  std::string out;
  for (const PreparedExchanges &rank : ranks) {
    appendVarintField(out, Rank, static_cast<uint64_t>(rank.getRank()));
    for (const PreparedExchanges::Group &group : rank.getGroups()) {
      appendFixed64Field(out, Key, group.getKey());
      appendVarintField(out, Size, group.group->ranks.size());
      appendFixed64Field(out, Digest, group.inOrder().getDigest());
    }
  }
  return out;
}

llvm::Error Comparison::add(llvm::StringRef bytes) {
  WireReader reader({bytes.bytes_begin(), bytes.bytes_end()});
  WireField field;
  int32_t rank = -1;
  Held *held = nullptr;
  // Whether the last key still lacks its digest.
  bool isOpen = false;
  while (reader.read(field)) {
    if (isOpen && (field.number == Rank || field.number == Key))
      return damaged();
    if (field.number == Rank) {
      rank = static_cast<int32_t>(field.value);
    } else if (field.number == Key && rank >= 0) {
      isOpen = true;
      auto [at, isNew] = groups.try_emplace(field.value);
      if (isNew)
        order.push_back(field.value);
      held = &at->second;
    } else if (field.number == Size && held) {
      held->size = field.value;
    } else if (field.number == Digest && held) {
      held->digests[rank] = field.value;
      isOpen = false;
    } else {
      return damaged();
    }
  }
  return isOpen || reader.isMalformed() ? damaged() : llvm::Error::success();
}

std::optional<Difference> Comparison::find() const {
  for (uint64_t key : order) {
    const Held &held = groups.at(key);
    auto [first, digest] = *held.digests.begin();
    for (const auto &[rank, other] : held.digests)
      if (other != digest)
        return Difference{key, first, rank};
  }
  for (uint64_t key : order) {
    const Held &held = groups.at(key);
    if (held.digests.size() < held.size)
      return Difference{key, held.digests.begin()->first, -1};
  }
  return std::nullopt;
}

static std::string encode(const Difference &difference) {
  std::string bytes;
  appendVarint(bytes, difference.key);
  appendVarint(bytes, static_cast<uint64_t>(difference.first));
  appendVarint(bytes, static_cast<uint64_t>(difference.second));
  return bytes;
}

static llvm::Expected<Difference> decodeDifference(llvm::StringRef bytes) {
  WireReader reader({bytes.bytes_begin(), bytes.bytes_end()});
  uint64_t key, first, second;
  if (!reader.readVarint(key) || !reader.readVarint(first) ||
      !reader.readVarint(second))
    return damaged();
  return Difference{key, static_cast<int32_t>(first),
                    static_cast<int32_t>(second)};
}

/// The host, and what its ranks that are asked have of the group.
static std::string encodeDetails(const Difference &difference,
                                 llvm::StringRef host,
                                 llvm::ArrayRef<PreparedExchanges> ranks) {
  std::string out;
  appendBytesField(out, Host, host);
  for (const PreparedExchanges &rank : ranks) {
    appendVarintField(out, Holder, static_cast<uint64_t>(rank.getRank()));
    if (rank.getRank() != difference.first &&
        rank.getRank() != difference.second)
      continue;
    for (const PreparedExchanges::Group &group : rank.getGroups()) {
      if (group.getKey() != difference.key)
        continue;
      appendBytesField(out, Name, group.group->describe());
      for (int32_t member : group.group->ranks)
        appendVarintField(out, Member, static_cast<uint64_t>(member));
      for (const std::string &line : group.inOrder().describe())
        appendBytesField(out, Line, line);
    }
  }
  return out;
}

static llvm::Error decodeDetails(llvm::StringRef bytes,
                                 std::map<int32_t, Detail> &details) {
  WireReader reader({bytes.bytes_begin(), bytes.bytes_end()});
  WireField field;
  std::string host;
  Detail *detail = nullptr;
  while (reader.read(field)) {
    if (field.number == Host) {
      host = field.text().str();
    } else if (field.number == Holder) {
      detail = &details[static_cast<int32_t>(field.value)];
      detail->host = host;
    } else if (field.number == Name && detail) {
      detail->name = field.text().str();
    } else if (field.number == Member && detail) {
      detail->members.push_back(static_cast<int32_t>(field.value));
    } else if (field.number == Line && detail) {
      detail->lines.push_back(field.text().str());
    } else {
      return damaged();
    }
  }
  return reader.isMalformed() ? damaged() : llvm::Error::success();
}

static std::string describeRank(int32_t rank,
                                const std::map<int32_t, Detail> &details) {
  ProcessPlace place;
  place.process = rank;
  if (auto found = details.find(rank); found != details.end())
    place.host = found->second.host;
  return describePlace(place);
}

/// The error that all have.
static llvm::Error describe(Difference difference,
                            const std::map<int32_t, Detail> &details,
                            const Comparison &comparison) {
  auto found = details.find(difference.first);
  if (found == details.end())
    return damaged();
  const Detail &one = found->second;
  std::string first = describeRank(difference.first, details);
  for (int32_t member : one.members)
    if (difference.second < 0 && !comparison.hasGroup(member, difference.key))
      difference.second = member;
  std::string second = describeRank(difference.second, details);
  auto other = details.find(difference.second);
  if (other == details.end() || other->second.name.empty())
    return makeErrorf(ExitCode::Usage,
                      "{0} does nothing in {1}, where {2} waits for it: {3}",
                      second, one.name, first,
                      one.lines.empty() ? "nothing" : one.lines.front());
  auto lineOf = [](const Detail &detail, size_t i) {
    return i < detail.lines.size() ? detail.lines[i]
                                   : std::string("a step starts nothing more");
  };
  size_t i = 0;
  while (i < one.lines.size() && lineOf(one, i) == lineOf(other->second, i))
    ++i;
  return makeErrorf(ExitCode::Usage,
                    "{0} does not do in {1} what {2} does: {3}, and on the "
                    "other {4}",
                    second, one.name, first, lineOf(other->second, i),
                    lineOf(one, i));
}

llvm::Error agreeOnExchanges(World &world,
                             llvm::ArrayRef<PreparedExchanges> mine) {
  auto digests = world.gather("prepared exchanges", encodeDigests(mine));
  if (!digests)
    return digests.takeError();
  Comparison comparison;
  auto verdict = share(world, "whether ranks prepared the same",
                       [&]() -> llvm::Expected<std::string> {
                         for (const std::string &bytes : *digests)
                           if (llvm::Error error = comparison.add(bytes))
                             return error;
                         auto found = comparison.find();
                         return found ? encode(*found) : std::string();
                       });
  if (!verdict)
    return verdict.takeError();
  if (verdict->empty())
    return llvm::Error::success();
  auto difference = decodeDifference(*verdict);
  if (!difference)
    return difference.takeError();
  auto texts =
      world.gather("what they prepared",
                   encodeDetails(*difference, world.getPlace().host, mine));
  if (!texts)
    return texts.takeError();
  return share(world, "what differs",
               [&]() -> llvm::Expected<std::string> {
                 std::map<int32_t, Detail> details;
                 for (const std::string &bytes : *texts)
                   if (llvm::Error error = decodeDetails(bytes, details))
                     return error;
                 return describe(*difference, details, comparison);
               })
      .takeError();
}

} // namespace ax::rt
