//===- Analysis.h - Which rank fell out -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXANALYZEFLIGHT_ANALYSIS_H
#define AX_TOOLS_AXANALYZEFLIGHT_ANALYSIS_H

#include "ReadRecords.h"

namespace ax::flight {

/// An exchange on one rank, in the records that were analyzed.
struct Place {
  const Group *group = nullptr;
  int64_t sequence = 0;
  const Event *event = nullptr;
};

/// A rank that waits in an exchange.
struct Wait {
  int64_t rank = 0;
  Place place;
  /// The members that have not come to it; of those without a record nobody
  /// knows, so that they count where no other is missing.
  std::vector<int64_t> awaited;
};

/// Two ranks that do another thing under one number.
struct Disagreement {
  int64_t first = 0, second = 0;
  const Group *group = nullptr;
  int64_t sequence = 0;
  const Event *ofFirst = nullptr, *ofSecond = nullptr;
  /// Whether they do the same, but of other sizes.
  bool isOfShape = false;
};

/// A rank that others wait for, and that does not wait itself; or, where there
/// is none, nor a late one, that waits in what all others have finished.
struct Fallen {
  int64_t rank = 0;
  bool hasRecord = false;
  /// What it has not come to, on a rank that waits there.
  Place missed;
  /// What it finished last; none where its record has no such thing.
  std::optional<Place> last;
};

/// A rank that began to wait long after all others that wait.
struct Late {
  int64_t rank = 0;
  int64_t microseconds = 0;
};

/// A rank that was stopped in an exchange to which all had come, or that has
/// begun one and does not wait for its end.
struct Held {
  int64_t rank = 0;
  /// How long its process was stopped; none where nobody knows that it was.
  std::optional<int64_t> microseconds;
  /// What it was in; none where that is not known.
  std::optional<Place> place;
};

struct Analysis {
  std::vector<int64_t> missing;
  std::vector<Wait> waits;
  std::vector<Fallen> fallen;
  /// Where none fell out.
  std::vector<Held> held;
  /// Where none was held, either: one that was stopped goes on before its
  /// launcher ends it, and is in step again when it writes its record.
  std::optional<Late> late;
  /// The first of each group.
  std::vector<Disagreement> disagreements;
};

/// Points into the records.
Analysis analyze(const Records &records);

} // namespace ax::flight

#endif // AX_TOOLS_AXANALYZEFLIGHT_ANALYSIS_H
