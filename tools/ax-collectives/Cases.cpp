//===- Cases.cpp - Which collectives are measured -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Cases.h"

#include <algorithm>

namespace ax {

const char *nameOf(CaseKind kind) {
  switch (kind) {
  case CaseKind::AllReduce:
    return "all_reduce";
  case CaseKind::AllGather:
    return "all_gather";
  case CaseKind::ReduceScatter:
    return "reduce_scatter";
  case CaseKind::Broadcast:
    return "broadcast";
  case CaseKind::AllToAll:
    return "all_to_all";
  case CaseKind::Permute:
    return "permute";
  case CaseKind::SendReceive:
    return "send_recv";
  }
  __builtin_unreachable();
}

CaseCounts countsOf(CaseKind kind, int64_t bytes, int32_t ranks) {
  int64_t part = std::max<int64_t>(1, bytes / 4 / ranks);
  switch (kind) {
  case CaseKind::AllGather:
    return {part, part * ranks};
  case CaseKind::ReduceScatter:
    return {part * ranks, part};
  default:
    return {part * ranks, part * ranks};
  }
}

double busFactor(CaseKind kind, int32_t ranks) {
  double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
  case CaseKind::AllReduce:
    return 2 * others;
  case CaseKind::AllGather:
  case CaseKind::ReduceScatter:
  case CaseKind::AllToAll:
    return others;
  default:
    return 1;
  }
}

float sourceValue(int32_t rank, int64_t index) {
  return static_cast<float>((index * 7 + rank * 13) % 101);
}

float expectedValue(CaseKind kind, int32_t ranks, int32_t rank, int64_t index,
                    const CaseCounts &counts) {
  int64_t part = std::min(counts.source, counts.destination);
  if (kind == CaseKind::AllToAll)
    part = counts.source / ranks;
  auto sum = [&](int64_t at) {
    float result = 0;
    for (int32_t from = 0; from < ranks; ++from)
      result += sourceValue(from, at);
    return result;
  };
  switch (kind) {
  case CaseKind::AllReduce:
    return sum(index);
  case CaseKind::ReduceScatter:
    return sum(rank * part + index);
  case CaseKind::AllGather:
    return sourceValue(static_cast<int32_t>(index / part), index % part);
  case CaseKind::Broadcast:
    return sourceValue(0, index);
  case CaseKind::AllToAll:
    return sourceValue(static_cast<int32_t>(index / part),
                       rank * part + index % part);
  case CaseKind::Permute:
  case CaseKind::SendReceive:
    return sourceValue((rank + ranks - 1) % ranks, index);
  }
  __builtin_unreachable();
}

} // namespace ax
