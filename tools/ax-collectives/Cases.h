//===- Cases.h - Which collectives are measured -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_CASES_H
#define AX_TOOLS_COLLECTIVES_CASES_H

#include <cstdint>

namespace ax {

enum class CaseKind {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  AllToAll,
  Permute,
  SendReceive,
};
constexpr int32_t numCases = 7;

const char *nameOf(CaseKind kind);

/// How many f32 a source and a destination have in a case of `bytes`: those of
/// the larger of both, as nccl-tests count.
struct CaseCounts {
  int64_t source, destination;
};
CaseCounts countsOf(CaseKind kind, int64_t bytes, int32_t ranks);

/// Returns by what nccl-tests multiply bytes per time, so that rates of any
/// number of ranks compare with what the wires carry.
double busFactor(CaseKind kind, int32_t ranks);

/// Element `index` of the source of a rank, and of what it gets.
float sourceValue(int32_t rank, int64_t index);
float expectedValue(CaseKind kind, int32_t ranks, int32_t rank, int64_t index,
                    const CaseCounts &counts);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_CASES_H
