//===- ShardGraph.cpp - A program as the sharding engine sees it ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ShardGraph.h"
#include "../Match.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/LookUp.h"

#include "ax/Cost/OpCost.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

static TensorRole roleOf(Operation *op) {
  if (isa<LoadOp>(op))
    return TensorRole::State;
  return isa<ConstantOp>(op) ? TensorRole::Constant : TensorRole::Value;
}

/// Names that causes use; others stay empty.
static std::vector<std::string> factorNames(Operation *op, const Rule &rule) {
  std::vector<std::string> names(rule.factors.size());
  SmallVector<NamedDims> named;
  if (auto contraction = dyn_cast<ContractionOpInterface>(op))
    named = contraction.getNamedDims();
  else if (auto gather = dyn_cast<GatherOp>(op))
    named = {{"vocabulary",
              gather.getOperand(),
              {static_cast<int64_t>(gather.getAxis())},
              true}};
  for (const NamedDims &dims : named) {
    if (!dims.inCauses)
      continue;
    bool isResult = dims.value.getDefiningOp() == op;
    auto operand = llvm::find(op->getOperands(), dims.value);
    const TensorMap &map = isResult
                               ? rule.results[0]
                               : rule.operands[operand - op->operand_begin()];
    for (int64_t dim : dims.dims)
      for (int factor : map[dim])
        names[factor] = dims.name;
  }
  return names;
}

FailureOr<ShardGraph> ShardGraph::build(ProgramOp program) {
  ShardGraph result;
  Mesh noMesh;
  cost::Machine machine = cost::machineOf(program);
  auto addTensor = [&](Value value, TensorRole role, std::string name) {
    RankedTensorType type = tensorType(value);
    GraphTensor tensor;
    tensor.name = std::move(name);
    tensor.shape = type.getShape().vec();
    tensor.elementBytes = cost::elementBytesOf(type);
    // Gradients are widened before they are summed: that is never dearer.
    if (Operation *op = value.getDefiningOp();
        op && markedAction(op) != Action::Forward &&
        isa<FloatType>(type.getElementType()))
      tensor.elementBytes = std::max<int64_t>(tensor.elementBytes.whole, 4);
    tensor.role = role;
    result.tensorOf[value] = result.values.size();
    result.values.push_back(value);
    result.graph.tensors.push_back(std::move(tensor));
  };
  for (auto [i, argument] : llvm::enumerate(program.getBody().getArguments()))
    addTensor(argument, TensorRole::Input, program.getArgName(i).str());
  for (Operation &op : program.getBody().front()) {
    if (auto output = dyn_cast<ReturnOp>(op)) {
      for (Value value : output.getOperands())
        result.graph.tensors[result.tensorOf[value]].isOutput = true;
      continue;
    }
    if (auto store = dyn_cast<StoreOp>(op)) {
      result.graph.tensors[result.tensorOf[store.getOperand()]].isOutput = true;
      continue;
    }
    TensorRole role = roleOf(&op);
    auto load = dyn_cast<LoadOp>(op);
    for (Value value : op.getResults())
      addTensor(value, role,
                load ? load.getState().str() : getNodeName(&op).str());
    if (role != TensorRole::Value)
      continue;
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled)
      return op.emitOpError("cannot be sharded: it has no sharding rule");
    GraphOp node;
    node.name = getNodeName(&op).str();
    if (node.name.empty())
      node.name = op.getName().getStringRef().str();
    node.rule = ruled.getShardingRule();
    for (Value value : op.getOperands())
      node.operands.push_back(result.tensorOf.lookup(value));
    for (Value value : op.getResults())
      node.results.push_back(result.tensorOf.lookup(value));
    node.flops = cost::contractionFlops(&op, noMesh);
    // The engine knows one rate, that of f32.
    if (node.flops > 0)
      node.flops *= machine.flopsPerSecond /
                    machine.flopsPerSecondOf(
                        tensorType(op.getOperand(0)).getElementType());
    node.factorNames = factorNames(&op, node.rule);
    result.graph.ops.push_back(std::move(node));
    result.ops.push_back(&op);
  }
  return result;
}

bool ax::comesApart(Value operand, int64_t dim, int64_t parts) {
  // As of what a weight is made of: few operations.
  constexpr size_t limit = 64;
  llvm::SmallSetVector<std::pair<Value, int64_t>, 16> places;
  if (dim >= 0)
    places.insert({operand, dim});
  for (size_t i = 0; i < places.size() && i < limit; ++i) {
    auto [value, at] = places[i];
    auto ruled =
        dyn_cast_or_null<ShardingRuleOpInterface>(value.getDefiningOp());
    if (!ruled || ruled->getNumResults() != 1)
      continue;
    Rule rule = ruled.getShardingRule();
    const std::vector<int> &factors = rule.results[0][at];
    if (factors.empty())
      continue;
    // The first says which block it is, the others where in it.
    int64_t blocks = rule.factors[factors.front()].size;
    if (factors.size() > 1 && blocks % parts != 0 && parts % blocks != 0)
      return false;
    for (OpOperand &from : ruled->getOpOperands())
      for (auto [d, map] :
           llvm::enumerate(rule.operands[from.getOperandNumber()]))
        if (!map.empty() && map.front() == factors.front())
          places.insert({from.get(), static_cast<int64_t>(d)});
  }
  return true;
}

bool ax::contractsInGroups(Operation *op) {
  auto inGroups = [](auto conv) {
    int64_t groups = conv.getGroups();
    return groups > 1 && tensorType(conv.getX()).getDimSize(1) > groups;
  };
  if (markedAction(op) != Action::Forward)
    return false;
  if (auto conv = dyn_cast<ConvOp>(op))
    return inGroups(conv);
  auto transposed = dyn_cast<ConvTransposeOp>(op);
  return transposed && inGroups(transposed);
}

int ax::dimOfHeads(Operation *op) {
  if (isa<AttentionOp>(op))
    return 1;
  auto dot = dyn_cast<DotOp>(op);
  if (!dot || markedAction(op) != Action::Forward || isWeight(dot.getLhs()) ||
      isWeight(dot.getRhs()) || dot.getLhsBatch().size() < 2)
    return -1;
  return dot.getLhsBatch().back();
}

std::vector<int> ax::findHeadsOrGroups(const ShardGraph &graph, int op) {
  if (int dim = dimOfHeads(graph.ops[op]); dim >= 0)
    return graph.rule(op).operands[0][dim];
  if (contractsInGroups(graph.ops[op]))
    return graph.rule(op).results[0][1];
  return {};
}

int ax::dimOfFactor(const TensorMap &map, int factor) {
  for (size_t dim = 0; dim < map.size(); ++dim)
    if (llvm::is_contained(map[dim], factor))
      return dim;
  return -1;
}

/// The only factor of a dimension; -1 when it has none or several.
static int onlyFactor(const std::vector<int> &factors) {
  return factors.size() == 1 ? factors[0] : -1;
}

/// What `value` was before it was moved or cast.
static Value originOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether it looks up matrices among a layer's: those of the experts that
/// tokens choose.
static bool looksUpWeights(Operation *op) {
  return looksUpMatrices(op) && isWeight(op->getOperand(0));
}

/// Whether it is matrices that are looked up, with what else is, as the scales
/// of integers.
static bool isLookedUp(Value value) {
  // They are made of few operations, as weights are.
  constexpr size_t limit = 64;
  llvm::SmallSetVector<Value, 16> made;
  made.insert(value);
  bool hasMatrices = false;
  for (size_t i = 0; i < made.size() && i < limit; ++i) {
    Operation *op = made[i].getDefiningOp();
    auto gather = dyn_cast_or_null<GatherOp>(op);
    if (gather && gather.getAxis() == 0 && isWeight(gather.getOperand()))
      hasMatrices |= looksUpWeights(gather);
    else if (op && (isElementwise(op) || isView(op) ||
                    isa<TransposeOp, SliceOp, BroadcastOp>(op)))
      made.insert_range(op->getOperands());
    else if (!isWeight(made[i]))
      return false;
  }
  return hasMatrices && made.size() < limit;
}

/// What matrices are looked up by: numbers of experts, which are no words.
static llvm::DenseSet<Value> findChoices(const ShardGraph &graph) {
  llvm::DenseSet<Value> choices;
  for (Operation *op : graph.ops)
    if (auto gather = dyn_cast<GatherOp>(op); looksUpWeights(gather))
      choices.insert(originOf(gather.getIndices()));
  return choices;
}

/// A dot of activations with a weight of integers, or with matrices that are
/// looked up. (Of a weight of floats it is a linear already.)
static WeightOp weightOpOf(DotOp dot, int number, const Rule &rule) {
  WeightOp found;
  bool isBatch = !dot.getLhsBatch().empty();
  auto isOne = [&](Value value) {
    return isBatch ? isLookedUp(value) : isWeight(value);
  };
  bool left = isOne(dot.getLhs());
  if (left == isOne(dot.getRhs()) || dot.getLhsContract().size() != 1 ||
      (!isBatch && !tensorType(dot).getElementType().isInteger()))
    return found;
  found.op = number;
  found.x = left ? 1 : 0;
  found.weight = left ? 0 : 1;
  int64_t k = (left ? dot.getLhsContract() : dot.getRhsContract())[0];
  ArrayRef<int64_t> batch = left ? dot.getLhsBatch() : dot.getRhsBatch();
  const TensorMap &map = rule.operands[found.weight];
  if (map.size() != batch.size() + 2)
    return found;
  found.k = onlyFactor(map[k]);
  for (int64_t dim = 0; dim < static_cast<int64_t>(map.size()); ++dim)
    if (dim != k && !llvm::is_contained(batch, dim))
      found.n = onlyFactor(map[dim]);
  return found;
}

std::vector<WeightOp> ax::findWeightOps(const ShardGraph &graph) {
  std::vector<WeightOp> result;
  llvm::DenseSet<Value> choices = findChoices(graph);
  auto isState = [](Value value) {
    return isa_and_nonnull<LoadOp>(value.getDefiningOp());
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    // The backward pass follows the forward one.
    if (markedAction(graph.ops[i]) != Action::Forward)
      continue;
    const Rule &rule = graph.rule(i);
    WeightOp found;
    found.op = i;
    llvm::TypeSwitch<Operation *>(graph.ops[i])
        .Case<LayerOpInterface>([&](LayerOpInterface layer) {
          int64_t dim = layer.getFeatureDim();
          int k = onlyFactor(rule.operands[0][dim]);
          // Groups are not summed over.
          if (k < 0 || rule.factors[k].kind == FactorKind::Parallel)
            return;
          found.k = k;
          found.n = onlyFactor(rule.results[0][dim]);
        })
        .Case<DotOp>([&](DotOp dot) { found = weightOpOf(dot, i, rule); })
        .Case<GatherOp>([&](GatherOp gather) {
          if (gather.getAxis() != 0 || !isState(gather.getOperand()) ||
              choices.contains(originOf(gather.getIndices())) ||
              tensorType(gather.getOperand()).getRank() != 2)
            return;
          found.x = -1;
          found.weight = 0;
          found.k = onlyFactor(rule.operands[0][0]);
          found.n = onlyFactor(rule.operands[0][1]);
        });
    if (found.k >= 0 && found.n >= 0)
      result.push_back(found);
  }
  return result;
}
