//===- RuleTable.h - Rules as numbers of layouts ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Equal operations have equal rules, and equal rules under equal assignments
// give equal layouts: here they are computed once for all of them.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SHARDING_RULETABLE_H
#define AX_LIB_SHARDING_RULETABLE_H

#include "LayoutTable.h"

#include "ax/Sharding/Rule.h"

namespace ax::sharding::detail {

/// Partial sums that an op passes on.
struct Passing {
  AxesId axes = LayoutTable::noAxes;
  ReduceKind kind = ReduceKind::Sum;
  int linearSet = -1;

  bool operator==(const Passing &o) const {
    return axes == o.axes && kind == o.kind && linearSet == o.linearSet;
  }
};

struct OpLayouts {
  std::vector<LayoutId> operands, results;
};

/// How an op is split that has given layouts.
struct InferredOp {
  std::vector<DimId> factors;
  Passing passing;
  /// Why its rule has no such assignment; empty when it has.
  std::string fault;
};

/// One rule, and what is known of it.
class RuleEntry {
public:
  RuleEntry(const Rule &rule, LayoutTable &table);

  const Rule rule;
  /// The sizes of the factors of every dimension of every operand and result.
  std::vector<std::vector<SizesId>> operandSizes, resultSizes;

  Assignment assignment(const std::vector<DimId> &factors,
                        const Passing &passing) const;
  /// What operandLayout() and resultLayout() give. Stays where it is.
  const OpLayouts &layouts(const std::vector<DimId> &factors,
                           const Passing &passing);
  /// The inverse. Stays where it is.
  const InferredOp &infer(const OpLayouts &layouts);
  /// True when findFault() finds nothing in an assignment of these factors.
  bool isLegal(const std::vector<DimId> &factors);

private:
  LayoutTable &table;
  std::unordered_map<std::vector<int>, OpLayouts, HashOfNumbers> known;
  std::unordered_map<std::vector<int>, InferredOp, HashOfNumbers> inferred;
  std::unordered_map<std::vector<DimId>, bool, HashOfNumbers> legal;
  std::vector<int> key;
};

class RuleTable {
public:
  explicit RuleTable(LayoutTable &table) : table(table) {}
  /// The same entry for equal rules.
  RuleEntry &add(const Rule &rule);

private:
  LayoutTable &table;
  std::unordered_map<std::vector<int64_t>, RuleEntry, HashOfNumbers> entries;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RULETABLE_H
