//===- RuleTable.cpp - Rules as numbers of layouts ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model of N equal layers has N equal Linears: one entry with one rule, and
// for each way in which they are split one list of layouts, all found by lists
// of numbers. So Rule.cpp works on layouts themselves once for each way, and
// propagation, which asks in every round, compares numbers.
//
//===----------------------------------------------------------------------===//

#include "RuleTable.h"

namespace ax::sharding::detail {

static std::vector<std::vector<SizesId>>
sizesOf(const Rule &rule, const std::vector<TensorMap> &maps,
        LayoutTable &table) {
  std::vector<std::vector<SizesId>> result;
  for (const TensorMap &map : maps) {
    result.emplace_back();
    for (const std::vector<int> &factors : map) {
      std::vector<int64_t> sizes;
      for (int factor : factors)
        sizes.push_back(rule.factors[factor].size);
      result.back().push_back(table.add(sizes));
    }
  }
  return result;
}

RuleEntry::RuleEntry(const Rule &rule, LayoutTable &table)
    : rule(rule), operandSizes(sizesOf(rule, rule.operands, table)),
      resultSizes(sizesOf(rule, rule.results, table)), table(table) {}

Assignment RuleEntry::assignment(const std::vector<DimId> &factors,
                                 const Passing &passing) const {
  Assignment result;
  for (DimId factor : factors)
    result.factors.push_back(table[factor].value);
  result.passedPartial = table[passing.axes];
  result.passedKind = passing.kind;
  result.linearSet = passing.linearSet;
  return result;
}

/// The layers of a model that are alike have one entry, and mostly the same
/// assignments: the 32nd looks up what was computed for the first.
const OpLayouts &RuleEntry::layouts(const std::vector<DimId> &factors,
                                    const Passing &passing) {
  key.clear();
  for (DimId factor : factors)
    key.push_back(static_cast<int>(factor));
  key.push_back(static_cast<int>(passing.axes));
  key.push_back(static_cast<int>(passing.kind));
  key.push_back(passing.linearSet);
  if (auto at = known.find(key); at != known.end())
    return at->second;
  Assignment assigned = assignment(factors, passing);
  OpLayouts &made = known[key];
  for (size_t i = 0; i < rule.operands.size(); ++i)
    made.operands.push_back(
        table.add(operandLayout(rule, assigned, static_cast<int>(i))));
  for (size_t i = 0; i < rule.results.size(); ++i)
    made.results.push_back(
        table.add(resultLayout(rule, assigned, static_cast<int>(i))));
  return made;
}

static std::string layoutFault(const char *what, size_t number,
                               const Layout &has, const Layout &right,
                               const Mesh &mesh) {
  return what + std::to_string(number) + " is " + toString(has, mesh) +
         ", by the others it is " + toString(right, mesh);
}

/// Operands say how factors are split. What results those factors give is then
/// held against the results that there are: they differ where somebody has
/// edited a layout.
const InferredOp &RuleEntry::infer(const OpLayouts &layouts) {
  key.clear();
  for (const auto *ids : {&layouts.operands, &layouts.results})
    for (LayoutId id : *ids)
      key.push_back(static_cast<int>(id));
  if (auto at = inferred.find(key); at != inferred.end())
    return at->second;
  InferredOp &made = inferred[key];
  std::vector<Layout> operands, results;
  for (LayoutId id : layouts.operands)
    operands.push_back(table[id].value);
  for (LayoutId id : layouts.results)
    results.push_back(table[id].value);
  InferredAssignment found =
      inferAssignment(rule, operands, results, table.getMesh());
  if (!found.assignment) {
    made.fault = found.fault;
    return made;
  }
  for (const DimLayout &factor : found.assignment->factors)
    made.factors.push_back(table.add(canonicalize(factor)));
  made.passing = {table.add(found.assignment->passedPartial),
                  found.assignment->passedKind, found.assignment->linearSet};
  const OpLayouts &right = this->layouts(made.factors, made.passing);
  for (size_t i = 0; i < results.size(); ++i)
    if (right.results[i] != layouts.results[i])
      made.fault = layoutFault("result ", i, results[i],
                               table[right.results[i]].value, table.getMesh());
  return made;
}

/// Sums that are passed on are no part of this: whoever splits an op over an
/// axis has it pass nothing over this axis.
bool RuleEntry::isLegal(const std::vector<DimId> &factors) {
  if (auto at = legal.find(factors); at != legal.end())
    return at->second;
  return legal[factors] =
             !findFault(rule, assignment(factors, {}), table.getMesh());
}

RuleEntry &RuleTable::add(const Rule &rule) {
  return entries.try_emplace(numbersOf(rule), rule, table).first->second;
}

} // namespace ax::sharding::detail
