//===- SequencePins.cpp - Pins of what counts tokens ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SequencePins.h"

#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/ProgramNames.h"

#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

SequencePins::SequencePins(const ShardGraph &graph, const Mesh &mesh,
                           ArrayRef<WeightOp> weightOps, Roles &roles,
                           const TensorDims &batched, Recipe &recipe)
    : graph(graph), mesh(mesh), weightOps(weightOps), roles(roles),
      batched(batched), recipe(recipe) {
  for (const WeightOp &weight : weightOps) {
    if (weight.x < 0)
      continue;
    const GraphOp &op = graph.graph.ops[weight.op];
    int tensor = op.operands[weight.x];
    int dim = dimOfFactor(op.rule.operands[weight.x], weight.k);
    if (roles.role(tensor, dim) == Role::Row)
      residual[roles.segment(tensor, dim)] = shapeOf(tensor)[dim];
  }
}

SubAxes SequencePins::axes(std::initializer_list<const char *> names) const {
  SubAxes result;
  for (const char *name : names)
    if (mesh.axisSize(name) > 1)
      result.push_back(mesh.whole(name));
  return result;
}

ArrayRef<int64_t> SequencePins::shapeOf(int tensor) const {
  return graph.graph.tensors[tensor].shape;
}

/// The one before the features, unless that is the batch, which some models
/// have behind the sequence.
int SequencePins::dimOfSequence(int tensor) const {
  int last = shapeOf(tensor).size() - 1, dim = last - 1;
  while (dim > 0 && batched.contains({tensor, dim}))
    --dim;
  return batched.contains({tensor, dim}) ? last - 1 : dim;
}

bool SequencePins::isBetweenPairs(int op) const {
  if (!isa<BinaryOp, LayerNormOp, RMSNormOp>(graph.ops[op]) ||
      markedAction(graph.ops[op]) == Action::Update)
    return false;
  int tensor = graph.graph.ops[op].results[0];
  int last = shapeOf(tensor).size() - 1;
  if (last < 2)
    return false;
  // Of norms that are written out, features are in several dimensions.
  auto width = residual.find(roles.segment(tensor, last));
  return width != residual.end() && width->second == shapeOf(tensor)[last];
}

/// A layer whose input has its features last.
bool SequencePins::multipliesTokens(const WeightOp &weight) const {
  if (weight.x < 0 || !isa<LinearOp, DotOp>(graph.ops[weight.op]))
    return false;
  const GraphOp &op = graph.graph.ops[weight.op];
  int last = shapeOf(op.operands[weight.x]).size() - 1;
  return last >= 2 && dimOfFactor(op.rule.operands[weight.x], weight.k) == last;
}

/// Attention's keys and values, which every query needs, are then gathered. So
/// Llama's context parallelism, Grattafiori et al., arXiv 2407.21783, section
/// 3.3.2.
void SequencePins::pinContext() {
  SubAxes context = axes({meshAxis::context});
  if (context.empty())
    return;
  int64_t ways = numParts(context), undivided = 0;
  std::string flag = "--cp=" + std::to_string(ways);
  bool isPinned = false, trains = false;
  auto pin = [&](int tensor, auto &&pinsOf) {
    int dim = dimOfSequence(tensor);
    if (int64_t size = shapeOf(tensor)[dim]; size % ways) {
      undivided = std::max(undivided, size);
      return;
    }
    for (FactorPin &pin : pinsOf(dim)) {
      pin.open = true;
      recipe.pins.factors.push_back(std::move(pin));
      isPinned = true;
    }
  };
  for (const WeightOp &weight : weightOps)
    if (multipliesTokens(weight))
      pin(graph.graph.ops[weight.op].operands[weight.x], [&](int dim) {
        return pinOperandDim(graph.graph, weight.op, weight.x, dim, context,
                             PinLevel::Recipe, flag);
      });
  for (auto [i, op] : llvm::enumerate(graph.graph.ops)) {
    trains |= markedAction(graph.ops[i]) == Action::Backward;
    if (isBetweenPairs(i))
      pin(op.results[0], [&, i = i](int dim) {
        return pinResultDim(graph.graph, i, 0, dim, context, PinLevel::Recipe,
                            flag);
      });
  }
  keepCachesWhole(flag);
  recipe.splitsContext = isPinned;
  if (isPinned && undivided <= 1)
    return;
  std::string why = undivided ? " does not divide the sequence of " +
                                    std::to_string(undivided)
                              : ": no layer has a sequence to split";
  std::string who = isPinned ? "for its layers the ranks" : "the ranks";
  std::string instead = undivided
                            ? "; choose one that " + std::to_string(ways) +
                                  " divides (--dim, --shape), or another --cp"
                            : "";
  recipe.contextFault = RecipeWarning{
      nullptr,
      flag + why + ": " + who + " along context compute the same" + instead,
      /*isError=*/trains && !isPinned};
}

/// Whether it is an input that the step before leaves.
static bool isCarried(Value value) {
  auto input = dyn_cast<BlockArgument>(value);
  if (!input)
    return false;
  auto program = cast<ProgramOp>(input.getOwner()->getParentOp());
  StringRef name = program.getArgName(input.getArgNumber());
  return llvm::any_of(
      llvm::seq<unsigned>(0, program.getNumResults()), [&](unsigned i) {
        auto of =
            dyn_cast_or_null<StringAttr>(program.getResultAttr(i, kCarried));
        return of && of.getValue() == name;
      });
}

void SequencePins::keepCachesWhole(const std::string &flag) {
  for (auto [i, op] : llvm::enumerate(graph.ops)) {
    auto concat = dyn_cast<ConcatOp>(op);
    if (!concat || llvm::none_of(concat.getOperands(), isCarried))
      continue;
    for (int factor : graph.rule(i).results[0][concat.getDim()])
      recipe.pins.factors.push_back(
          {static_cast<int>(i), factor,
           DimLayout::split(graph.rule(i).factors[factor].size, {}),
           PinLevel::Recipe, flag});
  }
}

void SequencePins::pinBetweenPairs() {
  if (mesh.axisSize(meshAxis::col) == 1 || mesh.axisSize(meshAxis::row) > 1)
    return;
  SubAxes context = axes({meshAxis::context}), col = axes({meshAxis::col});
  bool isPinned = false;
  std::string uneven;
  for (auto [i, op] : llvm::enumerate(graph.graph.ops)) {
    if (!isBetweenPairs(i))
      continue;
    int tensor = op.results[0], dim = dimOfSequence(tensor);
    int64_t sequence = shapeOf(tensor)[dim];
    SubAxes split;
    if (sequence % numParts(context) == 0)
      split = context;
    llvm::append_range(split, col);
    if (sequence > 1 && splitsWell(sequence, split)) {
      recipe.pins.tensors.push_back({tensor, dim,
                                     DimLayout::split(sequence, split),
                                     PinLevel::Weak, "--sequence-parallel"});
      isPinned = true;
    } else if (uneven.empty()) {
      uneven = "the sequence of " + std::to_string(sequence) +
               " is not divided by " + std::to_string(numParts(split));
    }
  }
  if (isPinned)
    return;
  if (uneven.empty())
    uneven = "there are no sums or norms of a sequence between tensor-parallel "
             "pairs";
  recipe.warnings.push_back(
      {nullptr, "--sequence-parallel changes nothing: " + uneven});
}
