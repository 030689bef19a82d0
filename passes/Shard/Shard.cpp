//===- Shard.cpp - Layouts for everything, collectives where they differ --===//
#include "../Pipeline/Placement.h"
#include "../StageAndAction.h"
#include "Apply.h"
#include "Recipe.h"
#include "UpdatePins.h"
#include "UserPins.h"
#include "ax/Cost/OpCost.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallSet.h"

namespace ax {
#define GEN_PASS_DEF_SHARD
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

/// Biases are added after the sum is complete, so they stand alone until
/// Optimize fuses what can be.
template <typename OpT>
static void splitBias(OpT op, int64_t channelDim) {
  Value bias = op.getBias();
  if (!bias)
    return;
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  RankedTensorType type = tensorType(op.getResult());
  Value shaped = bias;
  if (channelDim + 1 != type.getRank()) {
    SmallVector<int64_t> shape(type.getRank() - channelDim, 1);
    shape[0] = type.getDimSize(channelDim);
    shaped = ReshapeOp::create(
        builder, op.getLoc(),
        RankedTensorType::get(shape, type.getElementType()), bias);
  }
  op.getBiasMutable().clear();
  auto sum = BinaryOp::create(builder, op.getLoc(), BinaryKind::add,
                              op.getResult(), shaped);
  for (Operation *made = op->getNextNode(); made != sum->getNextNode();
       made = made->getNextNode())
    copyStageAndAction(op, made);
  op.getResult().replaceAllUsesExcept(sum.getResult(), sum);
}

static void splitBiases(ProgramOp program) {
  program.walk([](Operation *op) {
    if (auto linear = dyn_cast<LinearOp>(op))
      splitBias(linear, tensorType(linear.getResult()).getRank() - 1);
    else if (auto conv = dyn_cast<ConvOp>(op))
      splitBias(conv, 1);
    else if (auto conv = dyn_cast<ConvTransposeOp>(op))
      splitBias(conv, 1);
  });
}

namespace {
struct Shard : ax::impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() override {
    cost::Machine machine;
    sharding::PropagateOptions options;
    options.cost = cost::collectiveCost(machine);
    options.flopsPerSecond = machine.flopsPerSecond;
    options.bytesPerSecond = machine.bytesPerSecond;
    sharding::Propagator propagator(getOperation().getMesh(), options);
    for (ProgramOp program :
         llvm::to_vector(getOperation().getBody().getOps<ProgramOp>()))
      if (failed(shard(program, propagator)) || failed(checkTime(program)))
        return signalPassFailure();
  }

  /// What cannot be cut into micro-batches is the strategy's fault, and said
  /// here, where that is known.
  LogicalResult checkTime(ProgramOp program) {
    sharding::Mesh mesh = getOperation().getMesh();
    return mesh.numTimeSlices() > 1 ? Placement(program, mesh).run()
                                    : success();
  }

  LogicalResult shard(ProgramOp program, sharding::Propagator &propagator) {
    sharding::Mesh mesh = getOperation().getMesh();
    splitBiases(program);
    FailureOr<ShardGraph> graph = ShardGraph::build(program);
    if (failed(graph))
      return failure();
    if (decomposeSplitRows(*graph, mesh)) {
      graph = ShardGraph::build(program);
      if (failed(graph))
        return failure();
    }
    Recipe recipe = makeRecipe(*graph, mesh, {sequenceParallel});
    // What is said of one program is true of the other.
    bool isSecond =
        pinStates(*graph, SymbolTable(getOperation()), mesh, recipe.pins);
    if (llvm::Error error =
            addUserPins(*graph, program, pins, mesh, isSecond, recipe.pins))
      return program.emitError(describeError(std::move(error)).message);
    sharding::Propagation found =
        propagator.propagate(graph->graph, recipe.pins);
    // Where weights are is known only now.
    if (pinUpdates(*graph, program, found, mesh, zero, recipe.pins))
      found = propagator.propagate(graph->graph, recipe.pins);
    llvm::append_range(recipe.warnings, findUnsplit(*graph, recipe, found));
    // A recurrent layer is one node, and many ops.
    llvm::SmallSet<std::pair<StringRef, StringRef>, 8> told;
    for (const RecipeWarning &warning : recipe.warnings) {
      Operation *op = warning.op ? warning.op : program.getOperation();
      if (told.insert({getNodeName(op), warning.text}).second && !isSecond &&
          failed(complain(op, warning.text)))
        return failure();
    }
    for (const std::string &warning : found.warnings)
      if (!isSecond && failed(complain(program, warning)))
        return failure();
    program.walk([](Operation *op) { op->removeAttr(gatheredAttr); });
    return applyLayouts(program, *graph, found, mesh, propagator.getResharder(),
                        zero);
  }

  /// A state is stored as the program before this one has it. Whether there
  /// was one.
  static bool pinStates(const ShardGraph &graph, const SymbolTable &states,
                        const sharding::Mesh &mesh, sharding::Pins &pins) {
    bool any = false;
    for (auto [tensor, value] : llvm::enumerate(graph.values)) {
      auto load = value.getDefiningOp<LoadOp>();
      if (!load)
        continue;
      RankedTensorType type =
          states.lookup<StateOp>(load.getState()).getTensorType();
      if (!type.getEncoding())
        continue;
      any = true;
      for (auto [dim, split] : llvm::enumerate(getLayout(type, mesh).dims))
        pins.tensors.push_back({static_cast<int>(tensor), static_cast<int>(dim),
                                split, sharding::PinLevel::Recipe,
                                "it is stored so",
                                /*open=*/false, /*spreads=*/false});
    }
    return any;
  }

  /// A layer that cannot be split as asked.
  LogicalResult complain(Operation *op, StringRef text) {
    StringRef name = getNodeName(op);
    auto say = [&](InFlightDiagnostic diagnostic) {
      if (!name.empty())
        diagnostic << "'" << name << "': ";
      diagnostic << text;
      return diagnostic;
    };
    if (strict)
      return say(op->emitError());
    say(op->emitWarning());
    return success();
  }
};
} // namespace
