//===- CarryStates.cpp - What a step leaves for the next is a state -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example, of a cache whose heads are split over col:
//
//   program(%past : [{}, {col}]) -> (%y, %now {ax.carried = "past"})
//
// becomes
//
//   state @past : [{}, {col}]
//   program() -> (%y)   %past = load @past; ...; store @past, %now
//
// so that each rank keeps its heads, and nothing of them comes and goes.
//
//===----------------------------------------------------------------------===//
#include "CreateStep.h"
#include "ShardAnalysis.h"
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/BitVector.h"

namespace ax {
#define GEN_PASS_DEF_CARRYSTATES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

namespace {
struct CarryStates : ax::impl::CarryStatesBase<CarryStates> {
  using CarryStatesBase::CarryStatesBase;

  void runOnOperation() final {
    auto programs = getOperation().getBody().getOps<ProgramOp>();
    if (llvm::none_of(programs, carriesAny))
      return markAllAnalysesPreserved();
    for (ProgramOp program : programs)
      if (failed(run(program)))
        return signalPassFailure();
  }

private:
  static bool carriesAny(ProgramOp program) {
    for (unsigned i = 0, e = program.getNumResults(); i < e; ++i)
      if (program.getResultAttr(i, kCarried))
        return true;
    return false;
  }

  LogicalResult run(ProgramOp program);
  LogicalResult carry(ProgramOp program, unsigned result,
                      BlockArgument argument);
  StateOp stateFor(ProgramOp program, BlockArgument argument);
  /// `value` in the layout of `wanted`.
  Value bring(OpBuilder &builder, Value value, RankedTensorType wanted,
              StringRef state, Operation *place);
  LogicalResult checkTime(ProgramOp program, BlockArgument argument);

  /// By the names of inputs.
  llvm::DenseMap<StringAttr, StateOp> states;
};
} // namespace

LogicalResult CarryStates::run(ProgramOp program) {
  Block &body = program.getBody().front();
  llvm::BitVector arguments(program.getNumArguments()),
      results(program.getNumResults());
  for (unsigned i = 0, e = program.getNumResults(); i < e; ++i) {
    auto input =
        dyn_cast_or_null<StringAttr>(program.getResultAttr(i, kCarried));
    if (!input)
      continue;
    auto argument = llvm::find_if(body.getArguments(), [&](BlockArgument one) {
      return program.getArgName(one.getArgNumber()) == input.getValue();
    });
    if (argument == body.getArguments().end())
      return program.emitOpError("has no input '")
             << input.getValue() << "', which output '"
             << program.getResultName(i) << "' is in the next step";
    if (failed(carry(program, i, *argument)))
      return failure();
    arguments.set(argument->getArgNumber());
    results.set(i);
  }
  body.getTerminator()->eraseOperands(results);
  return success(succeeded(program.eraseResults(results)) &&
                 succeeded(program.eraseArguments(arguments)));
}

/// Each micro-batch would leave another value, of which only the last was kept.
LogicalResult CarryStates::checkTime(ProgramOp program,
                                     BlockArgument argument) {
  const Mesh &mesh = getAnalysis<ShardAnalysis>().getMesh();
  if (mesh.numTimeSlices() == 1)
    return success();
  return program.emitError("input '")
         << program.getArgName(argument.getArgNumber())
         << "' is carried from step to step: use --micro-batches=1";
}

StateOp CarryStates::stateFor(ProgramOp program, BlockArgument argument) {
  StringRef name = program.getArgName(argument.getArgNumber());
  StateOp &state = states[StringAttr::get(&getContext(), name)];
  if (state)
    return state;
  // A weight, or a program, may have the name.
  SymbolTable symbols(getOperation());
  OpBuilder builder(*getOperation().getBody().getOps<ProgramOp>().begin());
  state =
      StateOp::create(builder, argument.getLoc(), name, tensorType(argument));
  symbols.insert(state);
  return state;
}

Value CarryStates::bring(OpBuilder &builder, Value value,
                         RankedTensorType wanted, StringRef state,
                         Operation *place) {
  ShardAnalysis &shared = getAnalysis<ShardAnalysis>();
  const Mesh &mesh = shared.getMesh();
  RankedTensorType type = tensorType(value);
  auto because =
      builder.getStringAttr("it is stored as " + state.str() + " is");
  for (const Step &step :
       shared.getPropagator()
           .getResharder()
           .plan(getLayout(type, mesh), getLayout(wanted, mesh),
                 cost::elementBytesOf(type))
           .steps) {
    value = createStep(builder, value.getLoc(), step, value, mesh, because);
    if (place)
      copyStageAndAction(place, value.getDefiningOp());
  }
  return value;
}

LogicalResult CarryStates::carry(ProgramOp program, unsigned result,
                                 BlockArgument argument) {
  if (failed(checkTime(program, argument)))
    return failure();
  StateOp state = stateFor(program, argument);
  RankedTensorType stored = state.getTensorType(), taken = tensorType(argument);
  if (stored.getShape() != taken.getShape() ||
      stored.getElementType() != taken.getElementType())
    return program.emitError("input '")
           << program.getArgName(argument.getArgNumber()) << "' of @"
           << program.getSymName() << " is " << withoutLayout(taken)
           << ", and of a program before it " << withoutLayout(stored)
           << ": what is carried has one shape";
  Operation *end = program.getBody().front().getTerminator();
  OpBuilder builder(&program.getBody().front(),
                    program.getBody().front().begin());
  auto load =
      LoadOp::create(builder, argument.getLoc(), stored, state.getSymName());
  Operation *first =
      argument.use_empty() ? nullptr : *argument.getUsers().begin();
  argument.replaceAllUsesWith(
      bring(builder, load, tensorType(argument), state.getSymName(), first));
  Value value = end->getOperand(result);
  Operation *maker = value.getDefiningOp();
  // Where it is made, so that a stage which ends there has both.
  if (maker)
    builder.setInsertionPointAfter(maker);
  Value brought = bring(builder, value, stored, state.getSymName(), maker);
  auto store =
      StoreOp::create(builder, brought.getLoc(), state.getSymName(), brought);
  if (maker)
    copyStageAndAction(maker, store);
  return success();
}
