//===- Recipe.cpp - Pins from a strategy ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Recipe.h"
#include "SequencePins.h"

#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Sharding/Digits.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

SubAxes ax::axesOf(Role role, const Mesh &mesh) {
  const char *name = role == Role::Row ? meshAxis::row : meshAxis::col;
  return mesh.axisSize(name) > 1 ? SubAxes{mesh.whole(name)} : SubAxes{};
}

bool ax::splitsWell(int64_t size, const SubAxes &axes) {
  int64_t parts = numParts(axes);
  int64_t padded = (size + parts - 1) / parts * parts;
  return padded * 10 <= size * 11;
}

namespace {

class RecipeMaker {
public:
  RecipeMaker(const ShardGraph &graph, const Mesh &mesh,
              const RecipeOptions &options)
      : graph(graph), mesh(mesh), options(options),
        weightOps(findWeightOps(graph)), roles(graph, weightOps, mesh) {
    int64_t row = mesh.axisSize(meshAxis::row),
            depth = mesh.axisSize(meshAxis::depth);
    std::string col = std::to_string(mesh.axisSize(meshAxis::col));
    cause = row == 1 && depth == 1 ? "--tp=" + col
                                   : "--tp=" + std::to_string(row) + "x" + col +
                                         "x" + std::to_string(depth);
  }

  Recipe make() {
    pinBatch();
    pinGathered();
    pinHeads();
    pinGroups();
    for (const WeightOp &weight : weightOps)
      pinWeight(weight);
    SequencePins sequence(graph, mesh, weightOps, roles, batched, recipe);
    sequence.pinContext();
    if (options.sequenceParallel)
      sequence.pinBetweenPairs();
    return std::move(recipe);
  }

private:
  void pinBatch();
  void pinBatchSums(const SubAxes &split);
  SubAxes splitOfBatch(int64_t batch, const std::string &input);
  void pinGathered();
  void pinHeads();
  void pinGroups();
  void pinWeight(const WeightOp &weight);
  void pinDepth(const WeightOp &weight, const SubAxes &kAxes,
                const SubAxes &nAxes);

  SubAxes axes(std::initializer_list<const char *> names) const {
    SubAxes result;
    for (const char *name : names)
      if (mesh.axisSize(name) > 1)
        result.push_back(mesh.whole(name));
    return result;
  }
  /// Pins a factor. With `anyPlace`, neighbours say where the axes split: a
  /// fused gate and up as 2 * n{col}. With `elseWhole`, nothing splits what
  /// they do not.
  void pinFactor(int op, int factor, const SubAxes &axes, bool anyPlace = false,
                 bool elseWhole = false) {
    FactorPin pin{op, factor,
                  DimLayout::split(graph.rule(op).factors[factor].size, axes),
                  PinLevel::Recipe, cause};
    pin.anyPlace = anyPlace && !axes.empty();
    pin.elseWhole = elseWhole;
    recipe.pins.factors.push_back(std::move(pin));
  }
  void pinTensor(int tensor, int dim, const SubAxes &axes, std::string cause,
                 bool open = false, PinLevel level = PinLevel::Recipe) {
    int64_t size = graph.graph.tensors[tensor].shape[dim];
    recipe.pins.tensors.push_back({tensor, dim, DimLayout::split(size, axes),
                                   level, std::move(cause), open});
  }
  /// Notes what the factor that was pinned last is called.
  void ask(const SubAxes &axes, const Twine &what) {
    if (!axes.empty())
      recipe.asked[recipe.pins.factors.size() - 1] = what.str();
  }
  /// `op`: -1 where no one op is meant.
  void warn(int op, const Twine &text) {
    recipe.warnings.push_back({op < 0 ? nullptr : graph.ops[op], text.str()});
  }
  /// Where the features of `weight`'s input and output live.
  int inputNode(const WeightOp &weight, int &dim) const {
    const GraphOp &op = graph.graph.ops[weight.op];
    dim = dimOfFactor(op.rule.operands[weight.x], weight.k);
    return op.operands[weight.x];
  }
  int outputNode(const WeightOp &weight, int &dim) const {
    const GraphOp &op = graph.graph.ops[weight.op];
    dim = dimOfFactor(op.rule.results[0], weight.n);
    return op.results[0];
  }

  const ShardGraph &graph;
  const Mesh &mesh;
  const RecipeOptions &options;
  std::vector<WeightOp> weightOps;
  Roles roles;
  std::string cause;
  Recipe recipe;
  /// Segments whose split the attention heads in them decide.
  llvm::DenseSet<int> withHeads;
  /// Weights that are stored split over depth.
  llvm::DenseSet<int> overDepth;
  /// The tensors, and in each the dimension, that the batch comes first in.
  TensorDims batched;
};

} // namespace

static int64_t groupsOf(Operation *op) {
  if (auto conv = dyn_cast<ConvOp>(op))
    return conv.getGroups();
  return cast<ConvTransposeOp>(op).getGroups();
}

std::string ax::insteadOf(int64_t parts) {
  return parts == 1 ? "replicated instead"
                    : "split " + std::to_string(parts) +
                          " ways, the rest is replicated";
}

static bool isBatched(Value input) {
  auto argument = cast<BlockArgument>(input);
  return cast<ProgramOp>(argument.getOwner()->getParentOp())
      .isBatched(argument.getArgNumber());
}

/// The batch is the first dimension of the first input that takes one; other
/// inputs take part where theirs is as large.
void RecipeMaker::pinBatch() {
  int64_t batch = -1;
  SubAxes split;
  for (size_t t = 0; t < graph.graph.tensors.size(); ++t) {
    const GraphTensor &tensor = graph.graph.tensors[t];
    if (tensor.role != TensorRole::Input || tensor.shape.empty() ||
        !isBatched(graph.values[t]))
      continue;
    if (batch < 0) {
      batch = tensor.shape[0];
      split = splitOfBatch(batch, tensor.name);
    }
    if (tensor.shape[0] != batch)
      continue;
    batched.insert({t, 0});
    if (!split.empty())
      pinTensor(t, 0, split, "the batch is split", /*open=*/true);
  }
  pinBatchSums(split);
}

/// The backward pass sums over the batch where the batch is: a weight's
/// gradient is reduced, never are activations gathered for it, however small
/// the model. (Where nothing splits the batch, this only finds it.)
void RecipeMaker::pinBatchSums(const SubAxes &split) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const GraphOp &op = graph.graph.ops[i];
    llvm::SmallDenseSet<int> ofBatch;
    for (auto [tensor, map] : llvm::zip_equal(op.operands, op.rule.operands))
      for (auto [dim, factors] : llvm::enumerate(map))
        if (!factors.empty() && batched.contains({tensor, dim}))
          ofBatch.insert(factors.front());
    for (auto [tensor, map] : llvm::zip_equal(op.results, op.rule.results))
      for (auto [dim, factors] : llvm::enumerate(map))
        if (!factors.empty() && ofBatch.contains(factors.front()))
          batched.insert({tensor, dim});
    if (split.empty() || markedAction(graph.ops[i]) != Action::Backward)
      continue;
    for (int factor : ofBatch)
      if (const RuleFactor &f = op.rule.factors[factor];
          f.kind == FactorKind::Reduction && f.size % numParts(split) == 0) {
        pinFactor(i, factor, split);
        recipe.pins.factors.back().cause = "the batch is split";
      }
  }
}

/// Returns as many of the axes as divide the batch, outermost first.
SubAxes RecipeMaker::splitOfBatch(int64_t batch, const std::string &input) {
  SubAxes all = axes({meshAxis::data, meshAxis::depth, meshAxis::micro}), split;
  int64_t rest = batch;
  std::string product, who;
  for (const SubAxis &axis : all) {
    product += (product.empty() ? "" : " x ") + axis.axis;
    if (rest % axis.size == 0) {
      split.push_back(axis);
      rest /= axis.size;
      continue;
    }
    who += who.empty() ? "" : " and ";
    who += axis.axis == meshAxis::micro ? "the micro-batches"
                                        : "the ranks along " + axis.axis;
  }
  if (!who.empty())
    warn(-1, Twine("the batch of ") + Twine(batch) + " (input '" + input +
                 "') is not divided by " + product + " = " +
                 Twine(numParts(all)) + ": " + who +
                 " compute the same; choose a batch that " +
                 Twine(numParts(all)) + " divides");
  return split;
}

void RecipeMaker::pinGathered() {
  for (size_t i = 0; i < graph.ops.size(); ++i)
    if (auto dim = graph.ops[i]->getAttrOfType<IntegerAttr>(gatheredAttr))
      for (int factor : graph.rule(i).operands[0][dim.getInt()])
        pinFactor(i, factor, {});
}

/// Of products of activations, only dimensions that layers give are heads.
void RecipeMaker::pinHeads() {
  llvm::DenseSet<int> given;
  for (const WeightOp &weight : weightOps) {
    int dim, output = outputNode(weight, dim);
    given.insert(roles.segment(output, dim));
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    int dim = dimOfHeads(graph.ops[i]);
    if (dim < 0)
      continue;
    int q = graph.graph.ops[i].operands[0];
    int segment = roles.segment(q, dim);
    if (!isa<AttentionOp>(graph.ops[i]) && !given.contains(segment))
      continue;
    // Both products of one attention have its heads, of which is told once.
    bool isFirst = withHeads.insert(segment).second;
    SubAxes split = axesOf(roles.role(q, dim), mesh);
    if (split.empty())
      continue;
    int64_t heads = graph.graph.tensors[q].shape[dim];
    int64_t ways = numParts(split);
    // Rather fewer ranks with as many heads each, among which the layers beside
    // them are split too, than some with more heads than others.
    if (DimLayout even = splitParts({heads}, split).front();
        !splitsWell(heads, split) && even.isSplit())
      split = even.axes();
    std::vector<FactorPin> pins =
        pinOperandDim(graph.graph, i, 0, dim, split, PinLevel::Recipe, cause);
    int64_t parts = 1;
    for (const FactorPin &pin : pins)
      parts *= numParts(pin.split.axes());
    llvm::append_range(recipe.pins.factors, pins);
    if (!isFirst)
      continue;
    if (parts < ways)
      warn(i, Twine(heads) + " attention heads are not divided by " +
                  Twine(ways) + ": " + insteadOf(parts));
    else if (heads % parts)
      warn(i, Twine(heads) + " attention heads are not divided by " +
                  Twine(parts) + ": a rank has up to " +
                  Twine((heads + parts - 1) / parts) +
                  ", and layers beside them are replicated");
  }
}

/// Convolutions in groups are split by groups, and where these are too few each
/// group's output channels are.
void RecipeMaker::pinGroups() {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!contractsInGroups(graph.ops[i]))
      continue;
    int y = graph.graph.ops[i].results[0];
    SubAxes split = axesOf(roles.role(y, 1), mesh);
    std::vector<FactorPin> pins =
        pinResultDim(graph.graph, i, 0, 1, split, PinLevel::Recipe, cause);
    int64_t parts = 1;
    for (const FactorPin &pin : pins)
      parts *= numParts(pin.split.axes());
    if (int64_t ways = numParts(split); parts < ways)
      warn(i, "its " + Twine(graph.graph.tensors[y].shape[1]) +
                  " output channels in " + Twine(groupsOf(graph.ops[i])) +
                  " groups are not divided by " + Twine(ways) + ": " +
                  insteadOf(parts));
    llvm::append_range(recipe.pins.factors, pins);
  }
}

void RecipeMaker::pinWeight(const WeightOp &weight) {
  const GraphOp &op = graph.graph.ops[weight.op];
  int nDim, kDim = -1;
  int output = outputNode(weight, nDim);
  int input = weight.x < 0 ? -1 : inputNode(weight, kDim);
  WeightSides sides = roles.sides(weight);
  SubAxes kAxes = axesOf(sides.k, mesh), nAxes = axesOf(sides.n, mesh);
  int64_t k = op.rule.factors[weight.k].size;
  int64_t n = op.rule.factors[weight.n].size;
  bool kFollowsHeads =
      input >= 0 && withHeads.contains(roles.segment(input, kDim));
  bool nFollowsHeads = withHeads.contains(roles.segment(output, nDim));

  const TensorMap &map = op.rule.operands[weight.weight];
  Value operand = graph.ops[weight.op]->getOperand(weight.weight);
  auto fits = [&](int factor, const SubAxes &axes) {
    return splitsWell(op.rule.factors[factor].size, axes) &&
           comesApart(operand, dimOfFactor(map, factor), numParts(axes));
  };
  bool kFits = kAxes.empty() || kFollowsHeads || fits(weight.k, kAxes);
  bool nFits = nAxes.empty() || nFollowsHeads || fits(weight.n, nAxes);
  // What one dimension cannot take, the other may.
  if (!kFits && input >= 0 && !nFollowsHeads) {
    SubAxes both = nAxes;
    llvm::append_range(both, kAxes);
    if (nFits && n % numParts(both) == 0) {
      pinFactor(weight.op, weight.k, {});
      pinFactor(weight.op, weight.n, both);
      // Gathered once: the layers behind would each exchange what they share
      // with it (the patch embedding's channels are a transformer's residual).
      pinTensor(output, nDim, nAxes, cause);
      pinDepth(weight, {}, both);
      return;
    }
  } else if (!nFits && input >= 0 && !kFollowsHeads) {
    SubAxes both = kAxes;
    llvm::append_range(both, nAxes);
    if (kFits && k % numParts(both) == 0) {
      pinFactor(weight.op, weight.k, both);
      pinFactor(weight.op, weight.n, {});
      pinDepth(weight, both, {});
      return;
    }
  }
  for (auto [fits, name, size, axes] :
       {std::tuple(kFits, "input", k, kAxes), {nFits, "output", n, nAxes}})
    // A table of a few rows is no layer that anybody asks to split.
    if (!fits && input >= 0)
      warn(weight.op, Twine("its ") + Twine(size) + " " + name +
                          " features are not divided by " +
                          Twine(numParts(axes)) + ": replicated instead");
  if (!kFits)
    kAxes.clear();
  if (!nFits)
    nAxes.clear();
  // Beside heads, these say how far; tables follow what they are for.
  if (!kFits || !kAxes.empty()) {
    pinFactor(weight.op, weight.k, kAxes, /*anyPlace=*/true, kFollowsHeads);
    if (input >= 0 && !kFollowsHeads)
      ask(kAxes, Twine(k) + " input features");
  }
  if (!nFits || !nAxes.empty()) {
    pinFactor(weight.op, weight.n, nAxes, /*anyPlace=*/true, nFollowsHeads);
    if (input >= 0 && !nFollowsHeads)
      ask(nAxes, Twine(n) + " output features");
  }
  pinDepth(weight, kAxes, nAxes);
}

/// The weight is stored split over depth too, and gathered before use.
void RecipeMaker::pinDepth(const WeightOp &weight, const SubAxes &kAxes,
                           const SubAxes &nAxes) {
  SubAxes depth = axes({meshAxis::depth});
  const GraphOp &op = graph.graph.ops[weight.op];
  int tensor = op.operands[weight.weight];
  // A tied weight is stored in one way.
  if (depth.empty() || graph.graph.tensors[tensor].role != TensorRole::State ||
      !overDepth.insert(tensor).second)
    return;
  const TensorMap &map = op.rule.operands[weight.weight];
  // Along k: the layout of n may be compound, and only propagation knows it.
  for (auto [factor, used] :
       {std::pair(weight.k, kAxes), std::pair(weight.n, nAxes)}) {
    int dim = dimOfFactor(map, factor);
    SubAxes stored = used;
    llvm::append_range(stored, depth);
    bool isN = factor == weight.n;
    if (dim < 0 || map[dim].size() != 1 ||
        op.rule.factors[factor].size % numParts(stored) != 0)
      continue;
    if (isN && weight.x >= 0 && used.empty() &&
        !axesOf(Role::Col, mesh).empty())
      continue;
    pinTensor(tensor, dim, stored, "weights are stored split over depth");
    return;
  }
}

Recipe ax::makeRecipe(const ShardGraph &graph, const Mesh &mesh,
                      const RecipeOptions &options) {
  return RecipeMaker(graph, mesh, options).make();
}
