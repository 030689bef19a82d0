//===- Report.cpp - What was found, for people ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace ax;
using namespace ax::flight;

/// Lines of a kind that are shown.
constexpr size_t most = 16;

static std::string clean(llvm::StringRef text, size_t length = 400) {
  std::string result = shorten(text, length);
  for (char &c : result)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '?';
  return result;
}

/// `rank 2`, `ranks 0, 1 and 5`.
static std::string namesOf(llvm::ArrayRef<int64_t> ranks) {
  if (ranks.size() == 1)
    return "rank " + std::to_string(ranks[0]);
  std::string text = "ranks ";
  size_t shown = std::min(ranks.size(), most);
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0                  ? ""
             : i + 1 == ranks.size() ? " and "
                                     : ", ") +
            std::to_string(ranks[i]);
  if (shown < ranks.size())
    text += " and " + std::to_string(ranks.size() - shown) + " more";
  return text;
}

static std::string describe(const Group &group) {
  if (group.isTransfer)
    return "transfer '" + clean(group.name) + "' from rank " +
           std::to_string(group.ranks[0]) + " to rank " +
           std::to_string(group.ranks[1]);
  return "group " + clean(group.name) + " of " + namesOf(group.ranks);
}

static std::string describe(const Event &event) {
  std::string text = "'" + clean(event.name) + "' (" +
                     clean(event.what.empty() ? event.kind : event.what) +
                     ", " + std::to_string(event.bytes) +
                     " bytes, micro-batch " + std::to_string(event.microBatch);
  if (!event.nodes.empty())
    text += std::string(event.nodes.size() > 1 ? ", nodes " : ", node ") +
            clean(llvm::join(event.nodes, " "));
  return text + ")";
}

static std::string describe(const Place &place) {
  return "number " + std::to_string(place.sequence) + " of " +
         describe(*place.group) + ": " + describe(*place.event);
}

static std::string secondsBetween(int64_t from, int64_t to) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(
      "%.3f s", (static_cast<double>(to) - static_cast<double>(from)) * 1e-6);
  return text;
}

/// Why there are records, once for all ranks that say the same.
static void printReasons(const Records &records, llvm::raw_ostream &os) {
  std::map<std::string, std::vector<int64_t>> reasons;
  for (const auto &[rank, record] : records.ranks)
    reasons[(record.isFailure ? "failed: " : "asked by: ") +
            clean(record.reason, 1000)]
        .push_back(rank);
  os << "records of " << records.ranks.size() << " of " << records.numRanks
     << " ranks\n";
  for (const auto &[reason, ranks] : reasons)
    os << "  " << namesOf(ranks) << ", " << reason << '\n';
}

/// What a rank's own record says of it.
static void printStop(const Record &record, llvm::raw_ostream &os) {
  if (record.stoppedUntil)
    os << "  its process was stopped for " << secondsBetween(0, record.stopped)
       << ", until " << secondsBetween(*record.stoppedUntil, record.taken)
       << " before its record\n";
}

static void printFallen(const Fallen &one, const Records &records,
                        const Analysis &analysis, llvm::raw_ostream &os) {
  std::vector<int64_t> waiting;
  for (const Wait &wait : analysis.waits)
    if (llvm::is_contained(wait.awaited, one.rank))
      waiting.push_back(wait.rank);
  // While ranks run, one is always behind.
  bool hasFailed = llvm::any_of(
      records.ranks, [](const auto &each) { return each.second.isFailure; });
  os << "rank " << one.rank << (hasFailed ? " fell out: " : " is behind: ")
     << namesOf(waiting) << (waiting.size() == 1 ? " waits" : " wait")
     << " for it\n"
     << "  it has not come to " << describe(one.missed) << '\n';
  if (!one.hasRecord) {
    os << "  it left no record: its process has ended, is stopped, or could "
          "not write\n";
    return;
  }
  const Record &record = records.ranks.at(one.rank);
  printStop(record, os);
  if (one.last)
    os << "  the last that it finished, "
       << secondsBetween(*one.last->event->finished, record.taken)
       << " before its record, is " << describe(*one.last) << '\n';
  os << "  then it was at: "
     << (record.doing.empty() ? "nothing: it had not been given the next run"
                              : clean(record.doing))
     << '\n';
}

static void printHeld(const Held &one, llvm::raw_ostream &os) {
  os << "rank " << one.rank << " fell out";
  if (one.microseconds)
    os << ": its process was stopped for "
       << secondsBetween(0, *one.microseconds);
  else
    os << ": it has begun what others wait in, and does not wait for its end";
  if (one.place)
    os << (one.place->event->finished ? ", at the latest in " : ", in ")
       << describe(*one.place);
  os << '\n';
}

static const char *whyNone(const Analysis &analysis) {
  if (analysis.waits.empty())
    return "no rank fell out: none waits for another\n";
  if (llvm::all_of(analysis.waits,
                   [](const Wait &wait) { return wait.awaited.empty(); }))
    return "no rank fell out that records tell of: all have come to what they "
           "wait in, where one was stopped or has lost its connection\n";
  return "no rank fell out: those that are waited for wait, too\n";
}

static void printWaits(const Records &records, const Analysis &analysis,
                       llvm::raw_ostream &os) {
  for (const Wait &wait : llvm::ArrayRef(analysis.waits).take_front(most)) {
    os << "rank " << wait.rank << " waits for "
       << (wait.awaited.empty() ? "the end, as all have come"
                                : namesOf(wait.awaited))
       << ", since "
       << secondsBetween(*wait.place.event->waited,
                         records.ranks.at(wait.rank).taken)
       << ", in " << describe(wait.place) << '\n';
  }
  if (analysis.waits.size() > most)
    os << "and " << analysis.waits.size() - most << " more ranks wait\n";
}

static void printDisagreements(const Analysis &analysis,
                               llvm::raw_ostream &os) {
  for (const Disagreement &each :
       llvm::ArrayRef(analysis.disagreements).take_front(most))
    os << "ranks disagree on the " << (each.isOfShape ? "shape" : "order")
       << ": number " << each.sequence << " of " << describe(*each.group)
       << " is on rank " << each.first << ' ' << describe(*each.ofFirst)
       << ", and on rank " << each.second << ' ' << describe(*each.ofSecond)
       << '\n';
  if (analysis.disagreements.size() > most)
    os << "and they disagree in " << analysis.disagreements.size() - most
       << " more groups\n";
  if (analysis.disagreements.empty())
    os << "ranks agree on order and shape of all that is in their records\n";
}

void flight::printReport(const Records &records, const Analysis &analysis,
                         llvm::raw_ostream &os) {
  printReasons(records, os);
  if (!analysis.missing.empty())
    os << "no record of " << namesOf(analysis.missing) << '\n';
  for (const Fallen &one : llvm::ArrayRef(analysis.fallen).take_front(most))
    printFallen(one, records, analysis, os);
  if (analysis.fallen.size() > most)
    os << "and " << analysis.fallen.size() - most << " more ranks fell out\n";
  for (const Held &one : llvm::ArrayRef(analysis.held).take_front(most))
    printHeld(one, os);
  if (analysis.held.size() > most)
    os << "and " << analysis.held.size() - most << " more ranks fell out\n";
  if (analysis.late) {
    os << "rank " << analysis.late->rank << " fell out for "
       << secondsBetween(0, analysis.late->microseconds)
       << ": so long after all others it began to wait\n";
    printStop(records.ranks.at(analysis.late->rank), os);
  } else if (analysis.fallen.empty() && analysis.held.empty())
    os << whyNone(analysis);
  printWaits(records, analysis, os);
  printDisagreements(analysis, os);
}
