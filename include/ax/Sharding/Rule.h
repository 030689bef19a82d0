//===- Rule.h - How the dimensions of an operation relate -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SHARDING_RULE_H
#define AX_SHARDING_RULE_H

#include "ax/Sharding/Layout.h"

namespace ax::sharding {

enum class FactorKind {
  /// The factor is in operands and results alike, and splits freely.
  Parallel,
  /// Results that lack the factor become partial over the axes that split it;
  /// those that have it are split.
  Reduction,
  /// The factor is never split.
  Whole,
};

struct RuleFactor {
  int64_t size = 1;
  FactorKind kind = FactorKind::Parallel;
  /// How the parts of a Reduction combine; means nothing for other kinds.
  ReduceKind reduce = ReduceKind::Sum;
  /// A split need not divide: padding in this factor never reaches a result
  /// that is not padding itself (or the localised op masks it).
  bool mayPad = true;
};

/// Says of one operand or result for each dimension the factors it is made of,
/// major first (indices into Rule::factors). A dimension of size 1 that is
/// broadcast has no factors.
using TensorMap = std::vector<std::vector<int>>;

/// The turn in which splits spread through an op.
enum class OpClass {
  /// Element-wise ops, transpose, reshape, slice, ... come first.
  Elementwise,
  /// Contractions, reductions, normalisations and gathers come next.
  Reduction,
  /// Results with dimensions that no operand has.
  Broadcast,
};

/// How the dimensions of one operation relate; depends on shapes and
/// attributes only.
struct Rule {
  OpClass opClass = OpClass::Elementwise;
  std::vector<RuleFactor> factors;
  std::vector<TensorMap> operands;
  std::vector<TensorMap> results;

  /// Sets of operands in which the op is jointly linear: when all operands of
  /// one set are partial(sum) over the same axes (and the others replicated
  /// over them), the results are partial over them. Add: {{0, 1}}; mul:
  /// {{0}, {1}}; concat: {{0, .., n-1}}; matmul: {{0}, {1}}. Empty for ops
  /// that are not linear.
  std::vector<std::vector<int>> linear;
  /// Partial max / min pass through as well (layout ops, monotone maps).
  bool passesMaxMin = false;

  int addFactor(int64_t size, FactorKind kind = FactorKind::Parallel,
                ReduceKind reduce = ReduceKind::Sum);
};

/// Numbers that two rules share only when they allow the same: all of a rule
/// but its class, which says nothing of what is allowed.
std::vector<int64_t> numbersOf(const Rule &rule);

/// What one operation does with the mesh: how each factor is split (a factor
/// may be compound itself: `3 * 8{col} * 64`), and the sub-axes over which
/// partial operands pass through.
struct Assignment {
  /// One per rule factor; size() equals the factor's size.
  std::vector<DimLayout> factors;
  SubAxes passedPartial;
  ReduceKind passedKind = ReduceKind::Sum;
  /// Which of Rule::linear carries passedPartial; -1 when none is passed.
  int linearSet = -1;

  static Assignment unsplit(const Rule &rule);
};

/// Layout that `assignment` wants of operand `operand`.
Layout operandLayout(const Rule &rule, const Assignment &assignment,
                     int operand);
/// Layout that `assignment` gives to result `result`.
Layout resultLayout(const Rule &rule, const Assignment &assignment, int result);

/// The assignment under which every operand has exactly the given layout, or
/// why there is none. This is the check that `--verify` makes for every op.
struct InferredAssignment {
  std::optional<Assignment> assignment;
  std::string fault;
};
InferredAssignment inferAssignment(const Rule &rule,
                                   const std::vector<Layout> &operands,
                                   const Mesh &mesh);

/// The same, with factors that no operand has (iota, broadcast) taken from the
/// results. The caller compares resultLayout() with what the results have.
InferredAssignment inferAssignment(const Rule &rule,
                                   const std::vector<Layout> &operands,
                                   const std::vector<Layout> &results,
                                   const Mesh &mesh);

/// Why `assignment` is not legal for `rule`: sizes, a whole factor
/// split, an uneven split where padding is not allowed or inside a
/// compound dimension, an axis used twice, partial sums that do not pass, two
/// kinds of partial at once. Nothing when it is legal.
std::optional<std::string>
findFault(const Rule &rule, const Assignment &assignment, const Mesh &mesh);

/// Why `rule` does not describe an op on tensors of these shapes. Nothing when
/// it does. For tests of rules.
std::optional<std::string>
findFault(const Rule &rule, const std::vector<std::vector<int64_t>> &operands,
          const std::vector<std::vector<int64_t>> &results);

} // namespace ax::sharding

#endif // AX_SHARDING_RULE_H
