//===- ShardingRules.cpp - Writing down sharding rules --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilder.h"

using namespace ax;
using namespace ax::sharding;

int RuleBuilder::parallel(int64_t size) {
  return rule.addFactor(size, FactorKind::Parallel);
}

int RuleBuilder::whole(int64_t size) {
  return rule.addFactor(size, FactorKind::Whole);
}

int RuleBuilder::reduction(int64_t size, ReduceKind kind) {
  return rule.addFactor(size, FactorKind::Reduction, kind);
}

TensorMap RuleBuilder::allParallel(llvm::ArrayRef<int64_t> shape) {
  TensorMap map;
  for (int64_t size : shape)
    map.push_back({parallel(size)});
  return map;
}

TensorMap RuleBuilder::allWhole(llvm::ArrayRef<int64_t> shape) {
  TensorMap map;
  for (int64_t size : shape)
    map.push_back({whole(size)});
  return map;
}

void RuleBuilder::operand(TensorMap map) {
  rule.operands.push_back(std::move(map));
}

void RuleBuilder::result(TensorMap map) {
  rule.results.push_back(std::move(map));
}

void RuleBuilder::linearIn(std::vector<int> operands) {
  rule.linear.push_back(std::move(operands));
}

Rule RuleBuilder::take() {
  std::vector<bool> used(rule.factors.size()), dropped(rule.factors.size());
  forEachDim([&](std::vector<int> &dim) {
    for (int f : dim)
      if (dim.size() > 1 && rule.factors[f].size == 1)
        dropped[f] = true;
  });
  forEachDim([&](std::vector<int> &dim) {
    llvm::erase_if(dim, [&](int f) { return dropped[f]; });
    for (int f : dim) {
      used[f] = true;
      if (dim.size() > 1)
        rule.factors[f].mayPad = false;
    }
  });
  std::vector<int> newNumber(used.size());
  std::vector<RuleFactor> kept;
  for (size_t f = 0; f < used.size(); ++f) {
    newNumber[f] = kept.size();
    if (used[f])
      kept.push_back(rule.factors[f]);
  }
  forEachDim([&](std::vector<int> &dim) {
    for (int &f : dim)
      f = newNumber[f];
  });
  rule.factors = std::move(kept);
  return std::move(rule);
}

TensorMap ax::broadcastMap(const TensorMap &map,
                           llvm::ArrayRef<int64_t> operandShape,
                           llvm::ArrayRef<int64_t> resultShape) {
  size_t offset = resultShape.size() - operandShape.size();
  TensorMap operandMap(operandShape.size());
  for (size_t i = 0; i < operandShape.size(); ++i)
    if (operandShape[i] == resultShape[i + offset])
      operandMap[i] = map[i + offset];
  return operandMap;
}
