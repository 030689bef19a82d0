//===- UserPins.cpp - Pins that the user wrote ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "UserPins.h"
#include "PinLists.h"
#include "ShardAnalysis.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Passes/Passes.h"
#include "ax/Sharding/LayoutText.h"
#include "ax/Support/Error.h"

#include "llvm/Support/GlobPattern.h"

namespace ax {
#define GEN_PASS_DEF_USERPINS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

namespace {

/// A layer with a weight, one that has heads or groups, or a tensor.
struct PinTarget {
  std::string name;
  const WeightOp *layer = nullptr;
  int headed = -1;
  int tensor = -1;
};

class UserPinAdder {
public:
  UserPinAdder(const ShardGraph &graph, ProgramOp program, const Mesh &mesh,
               Pins &pins)
      : graph(graph), program(program), mesh(mesh), pins(pins),
        weightOps(findWeightOps(graph)) {
    for (const char *axis : {meshAxis::row, meshAxis::col})
      if (mesh.axisSize(axis) > 1)
        split.push_back(mesh.whole(axis));
  }

  /// Whether it names anything.
  llvm::Expected<bool> add(const ShardPin &asked);

private:
  llvm::Error pinContraction(const WeightOp &weight, StringRef layout);
  llvm::Error pin(const PinTarget &target, StringRef layout);
  llvm::Error pinTensor(int tensor, StringRef layout);
  void pinFactor(int op, int factor, const SubAxes &axes) {
    pins.factors.push_back(
        {op, factor,
         DimLayout::split(graph.rule(op).factors[factor].size, axes),
         PinLevel::User, cause});
  }

  const ShardGraph &graph;
  ProgramOp program;
  const Mesh &mesh;
  Pins &pins;
  std::vector<WeightOp> weightOps;
  SubAxes split;
  std::string cause;
};

} // namespace

llvm::Error UserPinAdder::pinContraction(const WeightOp &weight,
                                         StringRef layout) {
  if (layout != "colwise" && layout != "rowwise" && layout != "replicate")
    return makeError(ExitCode::Usage,
                     cause + ": a layer is colwise, rowwise or replicate");
  int asked = layout == "colwise" ? weight.n : weight.k;
  const RuleFactor &factor = graph.rule(weight.op).factors[asked];
  if (layout != "replicate" && factor.size < numParts(split))
    return makeError(ExitCode::Usage, cause + ": " + Twine(factor.size) +
                                          " features cannot be split " +
                                          Twine(numParts(split)) + " ways");
  for (int f : {weight.k, weight.n})
    pinFactor(weight.op, f,
              layout != "replicate" && f == asked ? split : SubAxes());
  return llvm::Error::success();
}

llvm::Error UserPinAdder::pinTensor(int tensor, StringRef text) {
  const GraphTensor &value = graph.graph.tensors[tensor];
  Layout layout = Layout::replicated(value.shape);
  if (text != "replicate") {
    ParsedLayout parsed = parseLayout(
        std::string_view(text.data(), text.size()), value.shape, mesh);
    if (!parsed.layout)
      return makeError(ExitCode::Usage, cause + ": " + parsed.fault);
    layout = *parsed.layout;
  }
  if (!layout.partial.empty())
    return makeError(ExitCode::Usage,
                     cause + ": a stored tensor cannot be a partial sum");
  for (const SubAxis &axis : layout.usedAxes())
    if (axis.axis == meshAxis::pipe)
      return makeError(ExitCode::Usage,
                       cause +
                           ": 'pipe' numbers the stages, and each tensor is "
                           "in one of them: layouts have other axes");
  for (size_t dim = 0; dim < layout.dims.size(); ++dim)
    pins.tensors.push_back({tensor, static_cast<int>(dim), layout.dims[dim],
                            PinLevel::User, cause});
  return llvm::Error::success();
}

llvm::Error UserPinAdder::pin(const PinTarget &target, StringRef layout) {
  if (target.layer)
    return pinContraction(*target.layer, layout);
  if (target.tensor >= 0)
    return pinTensor(target.tensor, layout);
  for (int factor : findHeadsOrGroups(graph, target.headed))
    pinFactor(target.headed, factor, {});
  return llvm::Error::success();
}

static std::string causeOf(const ShardPin &asked) {
  return "--shard=" + asked.pattern + "=" + asked.layout;
}

static llvm::Expected<llvm::GlobPattern> globOf(const ShardPin &asked) {
  auto glob = llvm::GlobPattern::create(asked.pattern);
  if (!glob)
    return makeError(ExitCode::Usage,
                     causeOf(asked) + ": " + llvm::toString(glob.takeError()));
  return glob;
}

static bool matches(const llvm::GlobPattern &glob, Operation *op) {
  return llvm::any_of(getNodeNames(op),
                      [&](StringRef name) { return glob.match(name); });
}

static llvm::Expected<std::vector<PinTarget>>
findTargets(const ShardGraph &graph, ArrayRef<WeightOp> weightOps,
            ProgramOp program, const ShardPin &asked) {
  llvm::Expected<llvm::GlobPattern> glob = globOf(asked);
  if (!glob)
    return glob.takeError();
  // A glob for layers often matches their weights too, and the other way
  // round; the layout says which are meant.
  StringRef wanted = asked.layout;
  bool isText = wanted.ltrim().starts_with("[");
  bool isWay = wanted == "colwise" || wanted == "rowwise";
  std::vector<PinTarget> targets;
  auto tryLayer = [&](int op, PinTarget target) {
    if (!matches(*glob, graph.ops[op]))
      return;
    target.name = getNodeName(graph.ops[op]).str();
    targets.push_back(std::move(target));
  };
  for (const WeightOp &weight : weightOps)
    if (!isText)
      tryLayer(weight.op, {{}, &weight});
  for (size_t op = 0; op < graph.ops.size(); ++op)
    if (wanted == "replicate" && !findHeadsOrGroups(graph, op).empty())
      tryLayer(op, {{}, nullptr, static_cast<int>(op)});
  auto tryTensor = [&](Value value, StringRef name) {
    if (!isWay && !name.empty() && glob->match(name))
      targets.push_back(
          {name.str(), nullptr, -1, graph.tensorOf.lookup(value)});
  };
  for (auto [i, argument] : llvm::enumerate(program.getBody().getArguments()))
    tryTensor(argument, program.getArgName(i));
  Operation *output = program.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(output->getOperands()))
    tryTensor(value, program.getResultName(i));
  for (Value value : graph.values)
    if (auto load = value.getDefiningOp<LoadOp>())
      tryTensor(value, load.getState());
  return targets;
}

/// What of the operations that it names, none of which can be pinned so, the
/// first one is.
static std::string whatItNames(const ShardGraph &graph, const ShardPin &asked) {
  llvm::Expected<llvm::GlobPattern> glob = globOf(asked);
  assert(glob && "targets were looked for");
  auto first = llvm::find_if(graph.ops,
                             [&](Operation *op) { return matches(*glob, op); });
  if (first == graph.ops.end())
    return "";
  bool isHeaded = !findHeadsOrGroups(graph, first - graph.ops.begin()).empty();
  return "; '" + getNodeName(*first).str() + "' " +
         (isHeaded ? "has heads or groups, which can only be replicated"
                   : "is an operation that is split as those beside it are");
}

static llvm::Error namesNothing(const ShardGraph &graph,
                                const ShardPin &asked) {
  StringRef wanted = asked.layout;
  const char *what = wanted == "colwise" || wanted == "rowwise" ? "layer"
                     : wanted.ltrim().starts_with("[")
                         ? "weight, input or output"
                         : "layer, weight, input or output";
  return makeError(ExitCode::Usage, causeOf(asked) + ": no " + what +
                                        " is named so" +
                                        whatItNames(graph, asked));
}

llvm::Expected<bool> UserPinAdder::add(const ShardPin &asked) {
  cause = causeOf(asked);
  auto targets = findTargets(graph, weightOps, program, asked);
  if (!targets)
    return targets.takeError();
  for (const PinTarget &target : *targets)
    if (llvm::Error error = pin(target, asked.layout))
      return error;
  return !targets->empty();
}

llvm::Expected<std::vector<std::string>> ax::namesOfPin(const ShardGraph &graph,
                                                        ProgramOp program,
                                                        const ShardPin &asked) {
  std::vector<WeightOp> weightOps = findWeightOps(graph);
  auto targets = findTargets(graph, weightOps, program, asked);
  if (!targets)
    return targets.takeError();
  if (targets->empty())
    return namesNothing(graph, asked);
  std::vector<std::string> names;
  for (const PinTarget &target : *targets)
    names.push_back(target.name);
  return names;
}

llvm::Expected<llvm::BitVector> ax::addUserPins(const ShardGraph &graph,
                                                ProgramOp program,
                                                ArrayRef<ShardPin> asked,
                                                const Mesh &mesh, Pins &pins) {
  UserPinAdder adder(graph, program, mesh, pins);
  llvm::BitVector named(asked.size());
  for (auto [i, pin] : llvm::enumerate(asked)) {
    auto isNamed = adder.add(pin);
    if (!isNamed)
      return isNamed.takeError();
    if (*isNamed)
      named.set(i);
  }
  return named;
}

namespace {
struct UserPins : ax::impl::UserPinsBase<UserPins> {
  using UserPinsBase::UserPinsBase;

  void runOnOperation() final {
    auto &shared = getAnalysis<ShardAnalysis>();
    llvm::BitVector named(pins.size());
    ProgramOp first;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      const ShardGraph *graph = shared.graphOf(program);
      if (!graph)
        return signalPassFailure();
      Pins found;
      auto ofProgram =
          addUserPins(*graph, program, pins, shared.getMesh(), found);
      if (!ofProgram)
        return fail(program, ofProgram.takeError());
      named |= *ofProgram;
      if (!first && !sharesStates(program))
        first = program;
      addPins(*graph, found, shared.getMesh());
    }
    // What training computes has not all outputs that prediction has.
    if (int missing = named.find_first_unset(); first && missing >= 0)
      return fail(first, namesNothing(*shared.graphOf(first), pins[missing]));
    markAllAnalysesPreserved();
  }

  void fail(ProgramOp program, llvm::Error why) {
    program.emitError(describeError(std::move(why)).message);
    signalPassFailure();
  }
};
} // namespace
