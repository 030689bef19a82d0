//===- RuleBuilder.h - Writing down sharding rules --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_DIALECT_RULEBUILDER_H
#define AX_LIB_DIALECT_RULEBUILDER_H

#include "ax/Dialect/Tensors.h"

namespace ax {

/// Collects the rule of one op: factors first, then the maps of all operands
/// and results in order.
class RuleBuilder {
public:
  explicit RuleBuilder(sharding::OpClass opClass) { rule.opClass = opClass; }

  int parallel(int64_t size);
  int whole(int64_t size);
  int reduction(int64_t size,
                sharding::ReduceKind kind = sharding::ReduceKind::Sum);
  /// A split of `factor` has to divide.
  void neverPad(int factor) { rule.factors[factor].mayPad = false; }

  /// One Parallel (Whole) factor for each dimension.
  sharding::TensorMap allParallel(llvm::ArrayRef<int64_t> shape);
  sharding::TensorMap allWhole(llvm::ArrayRef<int64_t> shape);

  void operand(sharding::TensorMap map);
  void result(sharding::TensorMap map);
  void linearIn(std::vector<int> operands);
  void passMaxMin() { rule.passesMaxMin = true; }

  /// The rule. A factor of size 1 that shares a dimension with others is
  /// dropped everywhere; other factors that share a dimension may not be
  /// padded; factors that no dimension has vanish.
  sharding::Rule take();

private:
  template <typename Fn>
  void forEachDim(Fn fn) {
    for (auto *maps : {&rule.operands, &rule.results})
      for (sharding::TensorMap &map : *maps)
        for (std::vector<int> &dim : map)
          fn(dim);
  }

  sharding::Rule rule;
};

/// `map` of a tensor of `from`, for an operand that broadcasts to it: aligned
/// at the last dimension, without the factors of dimensions of size 1.
sharding::TensorMap broadcastMap(const sharding::TensorMap &map,
                                 llvm::ArrayRef<int64_t> operandShape,
                                 llvm::ArrayRef<int64_t> resultShape);

} // namespace ax

#endif // AX_LIB_DIALECT_RULEBUILDER_H
