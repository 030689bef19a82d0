//===- Localize.cpp - What one rank of a stage computes -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Localizer.h"
#include "StageAttrs.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/Indexing.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Support/Error.h"

namespace ax::codegen {
#define GEN_PASS_DEF_LOCALIZE
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;

namespace ax::codegen {

llvm::Error Localizer::fault(Operation *op, const llvm::Twine &message) {
  llvm::StringRef node = getNodeName(op);
  return makeError(
      ExitCode::BadPlan,
      op->getName().getStringRef() +
          (node.empty() ? llvm::Twine("") : " of node '" + node + "'") + ": " +
          message);
}

Operation *Localizer::cloneLocal(Operation *op) {
  Operation *clone = builder.clone(*op, mapping);
  // As a location: equal computations of several nodes are done once.
  clone->setLoc(builder.getLoc());
  clone->removeAttr(kNode);
  bool givesAddends = false;
  for (auto [result, local] :
       llvm::zip_equal(op->getResults(), clone->getResults())) {
    local.setType(localType(result.getType()));
    mapping.map(result, local);
    givesAddends |=
        isNarrowFloat(elementType(result)) && elementType(local).isF32();
  }
  if (!givesAddends)
    return clone;
  widenOperands(clone);
  // What is no addend is rounded at once.
  for (auto [result, local] :
       llvm::zip_equal(op->getResults(), clone->getResults()))
    if (Type narrow = elementType(local); isNarrowFloat(narrow)) {
      local.setType(tensorType(local).clone(builder.getF32Type()));
      mapping.map(result, castTo(local, narrow));
    }
  return clone;
}

/// Makes an operation take f32 whose addends are to be f32. Contractions give
/// them from narrow factors as they are.
void Localizer::widenOperands(Operation *local) {
  auto isNarrow = [](Value value) {
    return isNarrowFloat(tensorType(value).getElementType());
  };
  if (isa<ContractionOpInterface>(local) && local->getNumOperands() == 2 &&
      llvm::all_of(local->getOperands(), isNarrow))
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(local);
  for (OpOperand &operand : local->getOpOperands())
    if (isNarrow(operand.get()))
      operand.set(castTo(operand.get(), builder.getF32Type()));
}

/// Whether `op` adds up in the tensor that it makes.
static bool addsInMemory(Operation *op) {
  auto adds = [](ScatterKind kind) {
    return kind == ScatterKind::add || kind == ScatterKind::mul;
  };
  if (auto scatter = dyn_cast<ScatterElementsOp>(op))
    return adds(scatter.getKind());
  if (auto scatter = dyn_cast<ScatterNDOp>(op))
    return adds(scatter.getKind());
  return isa<MaxPoolGradientOp>(op);
}

/// f32 memory for narrow floats, which are rounded at the end.
void Localizer::widenMemory(Operation *op, Operation *local) {
  Value result = local->getResult(0);
  RankedTensorType type = tensorType(result);
  if (!addsInMemory(local) || !isNarrowFloat(type.getElementType()))
    return;
  result.setType(type.clone(builder.getF32Type()));
  widenOperands(local);
  mapping.map(op->getResult(0), castTo(result, type.getElementType()));
}

llvm::Error
Localizer::doOnParts(Operation *op,
                     llvm::function_ref<void(Operation *local)> adjust) {
  if (llvm::Error error = maskReduced(op))
    return error;
  Operation *local = cloneLocal(op);
  if (getIndexedSizes(op)) {
    builder.setInsertionPoint(local);
    auto indices = checkedIndices(op);
    if (!indices)
      return indices.takeError();
    local->setOperand(indicesOperand, *indices);
    builder.setInsertionPointAfter(local);
  }
  widenMemory(op, local);
  if (adjust)
    adjust(local);
  return llvm::Error::success();
}

/// A plan's parts, states and collectives are no computations of a rank.
template <typename OpTy>
static constexpr bool isComputed =
    OpTy::template hasTrait<ShardingRuleOpInterface::Trait>() &&
    !OpTy::template hasTrait<CollectiveOpInterface::Trait>() &&
    !std::is_same_v<OpTy, LoadOp>;

template <typename OpTy, typename... Others>
llvm::Error Localizer::localizeAs(Operation *op) {
  if constexpr (isComputed<OpTy>)
    if (auto typed = dyn_cast<OpTy>(op))
      return localize(typed);
  if constexpr (sizeof...(Others) > 0)
    return localizeAs<Others...>(op);
  llvm_unreachable("a verified stage has operations of the dialect");
}

llvm::Error Localizer::localizeOp(Operation *op) {
  builder.setLoc(getNodeLocation(op));
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return op->hasAttr("start") ? startCollective(collective)
                                : localizeCollective(collective);
  if (auto wait = dyn_cast<WaitOp>(op)) {
    localizeWait(wait);
    return llvm::Error::success();
  }
  return localizeAs<
#define GET_OP_LIST
#include "ax/Dialect/AxOps.cpp.inc"
      >(op);
}

/// The padding of a state is zero.
Value Localizer::stored(StoreOp store) {
  builder.setLoc(store.getLoc());
  Value local = mapping.lookup(store.getOperand());
  sharding::Layout layout = layoutOf(store.getOperand());
  Type element = tensorType(local).getElementType();
  for (auto [dim, split] : llvm::enumerate(layout.dims))
    if (!sharding::digitsOf(split))
      local =
          maskDim(local, dim, split, constant(builder.getZeroAttr(element)));
  return local;
}

/// The first micro-batch starts the sum, or the maximum.
Value Localizer::addedUp(Value addend, Value sum, BinaryKind kind) {
  sharding::SubAxes slices;
  for (const sharding::Axis &axis : mesh.getAxes())
    if (axis.inTime && axis.size > 1)
      slices.push_back(mesh.whole(axis.name));
  Value isFirst = compare(CompareKind::eq, axisIndex(slices), constantInt(0));
  return select(isFirst, addend, binary(kind, sum, addend));
}

/// Results that go to an output, to other lists of the stage, or into a state
/// that is prepared: what becomes of none of these is read before.
static SmallVector<int64_t> directResults(StageOp stage,
                                          const sharding::Mesh &mesh) {
  SmallVector<int64_t> direct;
  for (OpResult value : stage.getResults())
    if (!isAccumulated(value, mesh) && !keptInPlaceOf(value, mesh) &&
        llvm::any_of(value.getUsers(), llvm::IsaPred<StageOp, ReturnOp>))
      direct.push_back(value.getResultNumber());
  int64_t number = stage->getNumResults();
  for (auto store : stage.getBody().front().getOps<StoreOp>()) {
    auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(
        store, store.getStateAttr());
    if (state.getPrepared())
      direct.push_back(number);
    ++number;
  }
  return direct;
}

/// Operands that a step adds up, and that nothing but this stage reads: the
/// next step starts them anew.
static SmallVector<int64_t> spentOperands(StageOp stage,
                                          const sharding::Mesh &mesh) {
  SmallVector<int64_t> spent;
  for (OpOperand &operand : stage->getOpOperands())
    if (auto sum = dyn_cast<OpResult>(operand.get());
        sum && sum.getDefiningOp<StageOp>() && sum.hasOneUse() &&
        isAccumulated(sum, mesh))
      spent.push_back(operand.getOperandNumber());
  return spent;
}

llvm::Expected<OwningOpRef<LocalStageOp>> Localizer::run(StageOp stage) {
  Block &body = stage.getBody().front();
  SmallVector<Type> arguments;
  for (BlockArgument argument : body.getArguments())
    arguments.push_back(localType(argument.getType()));
  SmallVector<Attribute> states, stored;
  llvm::DenseMap<Attribute, unsigned> stateIndex;
  for (auto load : body.getOps<LoadOp>())
    if (stateIndex.try_emplace(load.getStateAttr(), arguments.size()).second) {
      arguments.push_back(localType(load.getType()));
      states.push_back(load.getStateAttr());
    }
  SmallVector<int64_t> accumulated;
  for (OpResult value : stage.getResults())
    if (isAccumulated(value, mesh)) {
      arguments.push_back(localType(value.getType()));
      accumulated.push_back(value.getResultNumber());
    }
  for (auto store : body.getOps<StoreOp>())
    stored.push_back(store.getStateAttr());

  builder.setLoc(stage.getLoc());
  OwningOpRef<LocalStageOp> result =
      LocalStageOp::create(builder, stage.getSymName(), states, accumulated,
                           stored, directResults(stage, mesh), arguments);
  if (SmallVector<int64_t> spent = spentOperands(stage, mesh); !spent.empty())
    result->getOperation()->setAttr(kSpent,
                                    builder.getDenseI64ArrayAttr(spent));
  Block &block = result->getBlock();
  builder.setInsertionPointToStart(&block);
  for (BlockArgument argument : body.getArguments())
    mapping.map(argument, block.getArgument(argument.getArgNumber()));

  for (Operation &op : body.without_terminator()) {
    ++opNumber;
    if (auto load = dyn_cast<LoadOp>(op)) {
      mapping.map(load.getResult(),
                  block.getArgument(stateIndex.lookup(load.getStateAttr())));
      continue;
    }
    if (isa<StoreOp>(op))
      continue;
    if (llvm::Error error = localizeOp(&op))
      return error;
  }
  SmallVector<Value> returned;
  for (Value value : body.getTerminator()->getOperands())
    returned.push_back(mapping.lookup(value));
  builder.setLoc(stage.getLoc());
  for (auto [i, number] : llvm::enumerate(accumulated)) {
    bool isSum = layoutOf(stage.getResult(number)).partialKind ==
                 sharding::ReduceKind::Sum;
    returned[number] =
        addedUp(returned[number],
                block.getArgument(arguments.size() - accumulated.size() + i),
                isSum ? BinaryKind::add : BinaryKind::max);
  }
  for (auto store : body.getOps<StoreOp>())
    returned.push_back(this->stored(store));
  builder.setLoc(stage.getLoc());
  LocalYieldOp::create(builder, returned);
  return result;
}

llvm::Expected<OwningOpRef<LocalStageOp>> localize(StageOp stage,
                                                   const sharding::Mesh &mesh) {
  stage.getContext()->getOrLoadDialect<AxlDialect>();
  auto local = Localizer(stage.getContext(), mesh).run(stage);
  if (local)
    removeUnused((*local)->getBlock());
  return local;
}

/// How many lists store each state that steps change: what another program
/// prepares has changed before.
static llvm::DenseMap<Attribute, int> countStores(PlanOp plan) {
  llvm::DenseMap<Attribute, int> counts;
  for (auto program : plan.getBody().front().getOps<ProgramOp>())
    if (program.getSymName() != preparationProgram)
      program.walk([&](StoreOp store) { ++counts[store.getStateAttr()]; });
  return counts;
}

/// Says which of the states that the stage loads no list stores.
static void markFrozen(LocalStageOp stage,
                       const llvm::DenseMap<Attribute, int> &stores) {
  SmallVector<int64_t> frozen;
  for (auto [i, state] : llvm::enumerate(stage.getStates()))
    if (!stores.contains(state))
      frozen.push_back(stage.getNumInputs() + static_cast<int64_t>(i));
  if (!frozen.empty())
    stage->setAttr(kFrozen, DenseI64ArrayAttr::get(stage.getContext(), frozen));
}

/// Says which weights one list of the program alone stores. What is zero at
/// first may be made so again, behind the back of who keeps something of it.
static void markOwned(LocalProgramOp local, ProgramOp program,
                      const llvm::DenseMap<Attribute, int> &stores) {
  SmallVector<Attribute> owned;
  program.walk([&](StoreOp store) {
    auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(
        store, store.getStateAttr());
    if (stores.lookup(store.getStateAttr()) == 1 && !state.isZeroAtFirst())
      owned.push_back(store.getStateAttr());
  });
  if (!owned.empty())
    local->setAttr(kOwned, ArrayAttr::get(local.getContext(), owned));
}

llvm::Expected<OwningOpRef<LocalProgramOp>> localize(ProgramOp program) {
  MLIRContext *context = program.getContext();
  context->getOrLoadDialect<AxlDialect>();
  OpBuilder builder(context);
  OwningOpRef<LocalProgramOp> local =
      LocalProgramOp::create(builder, program.getLoc(), program.getSymName());
  Block &body = local->getBody().emplaceBlock();
  sharding::Mesh mesh = getMesh(program);
  // What is done in the program that prepares is done once as it is.
  bool isRepeated = program.getSymName() != preparationProgram;
  auto stores = countStores(program->getParentOfType<PlanOp>());
  if (isRepeated)
    markOwned(*local, program, stores);
  for (auto stage : program.getBody().front().getOps<StageOp>()) {
    auto made = localize(stage, mesh);
    if (!made)
      return addContext(made.takeError(), "stage " + stage.getSymName());
    if (isRepeated)
      markFrozen(made->get(), stores);
    body.push_back(made->release());
  }
  return local;
}

} // namespace ax::codegen

namespace {

struct LocalizePass : codegen::impl::LocalizeBase<LocalizePass> {
  void runOnOperation() override {
    // What one stores tells another that it does not change.
    SmallVector<std::pair<ProgramOp, OwningOpRef<LocalProgramOp>>> all;
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      auto local = codegen::localize(program);
      if (!local) {
        program.emitError(describeError(local.takeError()).message);
        return signalPassFailure();
      }
      all.emplace_back(program, std::move(*local));
    }
    for (auto &[program, local] : all) {
      OpBuilder(program).insert(local.release());
      program.erase();
    }
  }
};

} // namespace
