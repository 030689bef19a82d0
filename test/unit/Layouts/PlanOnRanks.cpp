//===- PlanOnRanks.cpp - Interpreting a plan rank by rank -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlanOnRanks.h"

#include "ax/Codegen/Localize.h"
#include "ax/Compile/Compile.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Interpreter/Distribute.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"
#include "ax/Interpreter/States.h"
#include "ax/Support/Error.h"

#include <cmath>

#include <map>

using namespace mlir;

namespace ax::test {

/// What must never reach a result.
static HostTensor poison(RankedTensorType type) {
  HostTensor tensor(*interpreter::toDType(type.getElementType()),
                    Shape(type.getShape()));
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, NAN);
  return tensor;
}

namespace {
/// A program on the ranks of its stages: all stages have as many, and a
/// transfer joins equal coordinates, so that a stage's ranks need no axis
/// `pipe`.
class OnRanks {
public:
  OnRanks(ProgramOp program, StateValue readState)
      : program(program), readState(readState), mesh(withoutPipe(program)) {}

  llvm::Expected<std::vector<HostTensor>>
  run(llvm::ArrayRef<HostTensor> inputs);

private:
  static sharding::Mesh withoutPipe(ProgramOp program) {
    sharding::Mesh whole = getMesh(program);
    std::vector<sharding::Axis> axes;
    for (const sharding::Axis &axis : whole.getAxes())
      if (axis.name != "pipe")
        axes.push_back(axis);
    return sharding::Mesh(axes);
  }

  llvm::Error runSlice(llvm::ArrayRef<HostTensor> inputs, int64_t slice,
                       bool isOnceAStep);
  static bool isOnceAStep(Value madeByStage) {
    auto stage = madeByStage.getDefiningOp<StageOp>();
    return stage && actionOf(stage)->isOnceAStep();
  }
  llvm::Error runStage(StageOp stage, int64_t slice);
  llvm::Error addStored(std::vector<HostTensor> &results);
  /// What the ranks of a stage hold of `value`.
  llvm::Expected<std::vector<HostTensor>> heldBy(int64_t stage, Value value);
  sharding::Layout layoutOf(Value value) {
    return getLayout(tensorType(value), mesh);
  }
  /// Every rank's part of `global`.
  std::vector<HostTensor> parts(const HostTensor &global, Type type,
                                int64_t slice, interpreter::Padding padding) {
    std::vector<HostTensor> result;
    for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
      result.push_back(interpreter::localPart(
          global, getLayout(cast<RankedTensorType>(type), mesh), mesh,
          mesh.coordinates(rank, slice), padding));
    return result;
  }

  ProgramOp program;
  StateValue readState;
  sharding::Mesh mesh;
  /// Of the present slice, for every rank of a stage.
  std::map<int64_t, llvm::DenseMap<Value, std::vector<HostTensor>>> held;
  /// Sums over the slices so far, and the new values of states, by stage.
  llvm::DenseMap<Value, std::vector<HostTensor>> sums;
  std::map<std::pair<std::string, int64_t>, std::vector<HostTensor>> stored;
  std::vector<std::vector<interpreter::Part>> outputs;
};
} // namespace

llvm::Expected<std::vector<HostTensor>> OnRanks::heldBy(int64_t stage,
                                                        Value value) {
  auto &values = held[stage];
  auto it = values.find(value);
  if (it == values.end())
    return makeErrorf(ExitCode::BadPlan,
                      "stage {0} needs a value that it does not have", stage);
  return it->second;
}

llvm::Error OnRanks::runStage(StageOp stage, int64_t slice) {
  auto local = codegen::localize(stage, mesh);
  if (!local)
    return local.takeError();
  interpreter::PerRank arguments(mesh.numRanks());
  auto give = [&](const std::vector<HostTensor> &tensors) {
    for (auto [ofRank, tensor] : llvm::zip_equal(arguments, tensors))
      ofRank.push_back(tensor);
  };
  for (Value operand : stage.getOperands()) {
    auto tensors = heldBy(stage.getOn(), operand);
    if (!tensors)
      return tensors.takeError();
    give(*tensors);
  }
  auto plan = program->getParentOfType<PlanOp>();
  LocalStageOp ops = **local;
  for (size_t i = 0; i < ops.getStates().size(); ++i) {
    llvm::StringRef name = ops.getState(i);
    auto state = cast<StateOp>(SymbolTable::lookupSymbolIn(plan, name));
    auto value = readState(name);
    if (!value)
      return value.takeError();
    give(parts(*value, state.getTensorType(), slice,
               interpreter::Padding::Zero));
  }
  for (auto [i, number] : llvm::enumerate(ops.getAccumulated())) {
    Value sum = stage.getResult(number);
    auto argument = ops.getBody().getArgument(ops.getFirstSum() + i);
    // Nothing is known of it before the first.
    HostTensor unknown = poison(tensorType(argument));
    give(slice > 0 ? sums[sum]
                   : std::vector<HostTensor>(mesh.numRanks(), unknown));
  }
  auto results =
      interpreter::interpretRanks(ops, mesh, std::move(arguments), slice);
  if (!results)
    return results.takeError();
  for (auto [i, result] : llvm::enumerate(stage.getResults())) {
    std::vector<HostTensor> tensors;
    for (const auto &ofRank : *results)
      tensors.push_back(ofRank[i]);
    if (llvm::is_contained(ops.getAccumulated(), static_cast<int64_t>(i)))
      sums[result] = tensors;
    held[stage.getOn()][result] = std::move(tensors);
  }
  for (size_t i = 0; i < ops.getStored().size(); ++i)
    for (const auto &ofRank : *results)
      stored[{ops.getStoredState(i).str(), stage.getOn()}].push_back(
          ofRank[stage.getNumResults() + i]);
  return llvm::Error::success();
}

/// The lists of one slice; or, after all of them, those of the step.
llvm::Error OnRanks::runSlice(llvm::ArrayRef<HostTensor> inputs, int64_t slice,
                              bool isOnce) {
  if (!isOnce)
    held.clear();
  for (auto [argument, input] :
       llvm::zip_equal(program.getBody().getArguments(), inputs))
    for (StageOp stage : program.getBody().getOps<StageOp>())
      held[stage.getOn()][argument] =
          parts(input, argument.getType(), slice, interpreter::Padding::Poison);
  for (Operation &op : program.getBody().front()) {
    if (auto stage = dyn_cast<StageOp>(op)) {
      if (actionOf(stage)->isOnceAStep() != isOnce)
        continue;
      if (llvm::Error error = runStage(stage, slice))
        return error;
    } else if (auto transfer = dyn_cast<TransferOp>(op)) {
      if (isOnceAStep(transfer.getOperand()) != isOnce)
        continue;
      auto sent = heldBy(transfer.getFrom(), transfer.getOperand());
      if (!sent)
        return sent.takeError();
      held[transfer.getTo()][transfer.getResult()] = std::move(*sent);
    }
  }
  Operation *end = program.getBody().front().getTerminator();
  for (auto [parts, value] : llvm::zip_equal(outputs, end->getOperands())) {
    if (isOnceAStep(value) != isOnce)
      continue;
    auto tensors = heldBy(value.getDefiningOp<StageOp>().getOn(), value);
    if (!tensors)
      return tensors.takeError();
    for (int64_t s = slice; s < (isOnce ? mesh.numTimeSlices() : slice + 1);
         ++s)
      for (auto [rank, tensor] : llvm::enumerate(*tensors))
        parts.push_back({mesh.coordinates(rank, s), tensor});
  }
  return llvm::Error::success();
}

/// What a step leaves of the states, each as every stage that holds it has it.
llvm::Error OnRanks::addStored(std::vector<HostTensor> &results) {
  auto plan = program->getParentOfType<PlanOp>();
  for (auto &[key, tensors] : stored) {
    auto state = cast<StateOp>(SymbolTable::lookupSymbolIn(plan, key.first));
    std::vector<interpreter::Part> parts;
    for (int64_t slice = 0; slice < mesh.numTimeSlices(); ++slice)
      for (auto [rank, tensor] : llvm::enumerate(tensors))
        parts.push_back({mesh.coordinates(rank, slice), tensor});
    auto whole = interpreter::assemble(
        parts, getLayout(state.getTensorType(), mesh), mesh);
    if (!whole)
      return whole.takeError();
    results.push_back(std::move(*whole));
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<HostTensor>>
OnRanks::run(llvm::ArrayRef<HostTensor> inputs) {
  Operation *end = program.getBody().front().getTerminator();
  outputs.resize(end->getNumOperands());
  for (int64_t slice = 0; slice < mesh.numTimeSlices(); ++slice)
    if (llvm::Error error = runSlice(inputs, slice, /*isOnceAStep=*/false))
      return error;
  if (llvm::Error error = runSlice(inputs, 0, /*isOnceAStep=*/true))
    return error;
  std::vector<HostTensor> results;
  for (auto [parts, value] : llvm::zip_equal(outputs, end->getOperands())) {
    auto whole = interpreter::assemble(parts, layoutOf(value), mesh);
    if (!whole)
      return whole.takeError();
    results.push_back(std::move(*whole));
  }
  if (llvm::Error error = addStored(results))
    return error;
  return results;
}

llvm::Expected<std::vector<HostTensor>>
interpretOnRanks(ProgramOp program, llvm::ArrayRef<HostTensor> inputs,
                 StateValue readState) {
  auto plan = program->getParentOfType<PlanOp>();
  auto prepare = plan.lookupSymbol<ProgramOp>(preparationProgram);
  if (!prepare)
    return OnRanks(program, readState).run(inputs);
  auto made = OnRanks(prepare, readState).run({});
  if (!made)
    return made.takeError();
  std::map<std::string, HostTensor> prepared;
  for (StateOp state : plan.getBody().getOps<StateOp>())
    if (state.getPrepared())
      prepared[state.getSymName().str()];
  for (auto [entry, value] : llvm::zip_equal(prepared, *made))
    entry.second = std::move(value);
  auto read = [&](llvm::StringRef name) -> llvm::Expected<HostTensor> {
    if (auto found = prepared.find(name.str()); found != prepared.end())
      return found->second;
    return readState(name);
  };
  return OnRanks(program, read).run(inputs);
}

llvm::ArrayRef<NamedStrategy> strategies() {
  static const NamedStrategy all[] = {
      {"One", "1"},
      {"Tensor2", "2"},
      {"Tensor3", "3"},
      {"Tensor4", "4"},
      {"Tensor2x2x1", "2x2x1"},
      {"Tensor1x2x2", "1x2x2"},
      {"Tensor2x2x2", "2x2x2"},
      {"Data2", "1", 2},
      {"Sequence2", "2", 1, 1, 1, true},
      {"Sequence4", "4", 1, 1, 1, true},
      {"Pipe2", "1", 1, 2},
      {"Pipe2Micro2", "1", 1, 2, 2},
      {"Tensor2Pipe2", "2", 1, 2},
      {"Data2Tensor2Pipe2Micro2", "2", 2, 2, 2},
  };
  return all;
}

LogicalResult runPhases(ModuleOp module, const NamedStrategy &named) {
  CompileOptions options;
  Strategy &strategy = options.strategy;
  strategy.tensor = llvm::cantFail(TensorGrid::parse(named.tensor));
  strategy.data = named.data;
  strategy.pipe = named.pipe;
  strategy.micro = named.micro;
  strategy.sequenceParallel = named.sequenceParallel;
  strategy.zero = named.zero;
  strategy.schedule = llvm::cantFail(ScheduleChoice::parse(named.schedule));
  strategy.cuts = named.cuts;
  if (named.training)
    strategy.training = *named.training;
  if (llvm::Error error = compile(module, options))
    return module.emitError(describeError(std::move(error)).message);
  return success();
}

ProgramOp firstProgram(ModuleOp module) {
  ProgramOp found;
  module.walk([&](ProgramOp program) {
    found = program;
    return WalkResult::interrupt();
  });
  return found;
}

double relativeDifference(const HostTensor &actual,
                          const HostTensor &expected) {
  if (actual.getType() != expected.getType() ||
      actual.getShape() != expected.getShape())
    return INFINITY;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    double value = expected.getDouble(i);
    double here = std::fabs(value - actual.getDouble(i));
    if (std::isnan(here))
      return INFINITY;
    largest = std::max(largest, std::fabs(value));
    difference = std::max(difference, here);
  }
  return difference == 0 ? 0 : difference / largest;
}

llvm::Expected<HostTensor> readState(PlanOp plan, llvm::StringRef name) {
  return interpreter::readState(
      cast<StateOp>(SymbolTable::lookupSymbolIn(plan, name)));
}

} // namespace ax::test
