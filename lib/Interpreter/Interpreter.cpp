//===- Interpreter.cpp - Reference interpreter of ax operations -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Interpreter/Interpreter.h"

#include "Kernels.h"

#include "ax/Dialect/Indexing.h"
#include "ax/Local/Local.h"
#include "ax/Support/Error.h"

using namespace mlir;

namespace ax::interpreter {

static std::string describe(Operation *op) {
  llvm::StringRef node = getNodeName(op);
  std::string name = op->getName().getStringRef().str();
  return node.empty() ? name : name + " of node '" + node.str() + "'";
}

static llvm::Error fault(Operation *op, const llvm::Twine &message) {
  return makeError(ExitCode::Unsupported, describe(op) + ": " + message);
}

static bool hasType(const HostTensor &tensor, Value value) {
  RankedTensorType type = tensorType(value);
  return toDType(type.getElementType()) == tensor.getType() &&
         type.getShape() == ArrayRef<int64_t>(tensor.getShape());
}

/// Operands have the op's types, and the results can be held.
static llvm::Error check(Operation *op, Operands operands) {
  if (operands.size() != op->getNumOperands())
    return fault(op, "wrong number of operands");
  for (auto [i, value] : llvm::enumerate(op->getOperands()))
    if (!hasType(operands[i], value))
      return fault(op, "operand " + llvm::Twine(i) + " is " +
                           operands[i].typeToString() +
                           ", which is not what the operation says");
  for (Value result : op->getResults()) {
    std::optional<DType> type = toDType(tensorType(result).getElementType());
    if (!type)
      return fault(op, "a result has a type without values at run time");
    if (!checkedNumElements(tensorType(result).getShape(), byteSize(*type)))
      return fault(op, "a result is too large");
  }
  return llvm::Error::success();
}

using StepFn = llvm::function_ref<llvm::Expected<PerRank>(Operation *op,
                                                          PerRank operands)>;

/// Does the operations of `block` in order, each for all ranks, and returns
/// the operands of its terminator. Values are dropped after their last use.
static llvm::Expected<PerRank> walk(Block &block, PerRank arguments,
                                    StepFn step) {
  struct Held {
    std::vector<HostTensor> ranks;
    unsigned uses;
  };
  llvm::DenseMap<Value, Held> held;
  size_t numRanks = arguments.size();
  auto hold = [&](ValueRange values, PerRank tensors) {
    for (auto [i, value] : llvm::enumerate(values)) {
      auto uses = static_cast<unsigned>(
          std::distance(value.use_begin(), value.use_end()));
      if (uses == 0)
        continue;
      Held &entry = held[value];
      entry.uses = uses;
      for (auto &ofRank : tensors)
        entry.ranks.push_back(std::move(ofRank[i]));
    }
  };
  hold(block.getArguments(), std::move(arguments));
  for (Operation &op : block) {
    PerRank operands(numRanks);
    for (Value value : op.getOperands()) {
      Held &entry = held.find(value)->second;
      for (size_t rank = 0; rank < numRanks; ++rank)
        operands[rank].push_back(entry.ranks[rank]);
      if (--entry.uses == 0)
        held.erase(value);
    }
    if (op.hasTrait<OpTrait::IsTerminator>())
      return operands;
    llvm::Expected<PerRank> results = step(&op, std::move(operands));
    if (!results)
      return results.takeError();
    hold(op.getResults(), std::move(*results));
  }
  return PerRank(numRanks);
}

/// Interprets the body of what is one command, a kernel or a library's.
static llvm::Expected<Results> interpretBody(Block &block, Operands operands,
                                             const Place *place) {
  PerRank arguments = {Results(operands)};
  llvm::Expected<PerRank> results =
      walk(block, std::move(arguments),
           [&](Operation *inner, PerRank in) -> llvm::Expected<PerRank> {
             llvm::Expected<Results> out = interpret(inner, in[0], place);
             if (!out)
               return out.takeError();
             return PerRank{std::move(*out)};
           });
  if (!results)
    return results.takeError();
  return std::move(results->front());
}

/// The place's number along `axes`.
static llvm::Expected<int64_t> indexAlong(AxesAttr axes, Operation *op,
                                          const Place *place) {
  if (!place)
    return fault(op, "no place on a mesh is known");
  return place->mesh->index(axes.resolve(*place->mesh), place->coordinates);
}

llvm::Expected<Results> interpret(Operation *op, Operands operands,
                                  const Place *place) {
  if (llvm::Error error = check(op, operands))
    return error;
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    llvm::Expected<HostTensor> value = toHostTensor(constant.getValue());
    if (!value)
      return value.takeError();
    return Results{std::move(*value)};
  }
  if (isa<FusionOp, LibraryOp>(op))
    return interpretBody(op->getRegion(0).front(), operands, place);
  if (auto index = dyn_cast<AxisIndexOp>(op)) {
    auto number = indexAlong(index.getAxes(), op, place);
    if (!number)
      return number.takeError();
    HostTensor result = emptyLike(index.getResult());
    result.setInt(0, *number);
    return Results{result};
  }
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    auto number = indexAlong(accumulate.getAxes(), op, place);
    if (!number)
      return number.takeError();
    if (*number == 0)
      return Results{operands[0]};
  }
  if (auto checked = dyn_cast<CheckIndicesOp>(op)) {
    auto indices = toIndices(operands[0], checked.getSizes());
    if (!indices)
      return addContext(indices.takeError(), describe(op));
    HostTensor result = emptyLike(checked.getResult());
    for (auto [i, index] : llvm::enumerate(*indices))
      result.setInt(i, index);
    return Results{std::move(result)};
  }
  if (auto report = dyn_cast<ReportFaultOp>(op)) {
    int64_t place = operands[0].getInt(0);
    int64_t count =
        cast<RankedTensorType>(report.getIndices()).getNumElements();
    if (place >= 0 && place < count)
      return fault(op, "index " + std::to_string(operands[0].getInt(1)) +
                           " is out of range");
    return Results();
  }
  if (auto atMost = dyn_cast<AtMostOp>(op)) {
    for (int64_t number : operands[0].toInts())
      if (number < 0 || number > static_cast<int64_t>(atMost.getLimit()))
        return fault(op, std::to_string(number) + " is not 0 to " +
                             std::to_string(atMost.getLimit()));
    return Results{operands[0]};
  }
  if (auto sizes = getIndexedSizes(op))
    if (auto indices = toIndices(operands[indicesOperand], *sizes); !indices)
      return addContext(indices.takeError(), describe(op));
  if (isa<AwaitOp>(op))
    return Results{operands[0]};
#define AX_FILE(Name)                                                          \
  if (std::optional<Results> results = interpret##Name(op, operands))          \
    return std::move(*results);
#include "Families.inc"
#undef AX_FILE
  return fault(op, "cannot be evaluated");
}

static llvm::Expected<PerRank> interpretGlobally(Operation *op,
                                                 PerRank operands,
                                                 StateReader readState,
                                                 StateWriter writeState) {
  if (isa<CollectiveOpInterface, WaitOp, TransferOp>(op))
    return operands;
  if (auto load = dyn_cast<LoadOp>(op)) {
    llvm::Expected<HostTensor> value = readState(load);
    if (!value)
      return value.takeError();
    if (!hasType(*value, load.getResult()))
      return fault(op,
                   "state " + load.getState() + " is " + value->typeToString());
    return PerRank{{std::move(*value)}};
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    if (writeState)
      writeState(store, std::move(operands[0][0]));
    return PerRank(1);
  }
  auto step = [&](Operation *inner, PerRank in) {
    return interpretGlobally(inner, std::move(in), readState, writeState);
  };
  if (auto stage = dyn_cast<StageOp>(op))
    return walk(stage.getBody().front(), std::move(operands), step);
  if (isa<ScheduleOp>(op))
    return PerRank(1);
  llvm::Expected<Results> results = interpret(op, operands[0]);
  if (!results)
    return results.takeError();
  return PerRank{std::move(*results)};
}

/// `nameOf`: what follows the number of an input in a message.
static llvm::Error
checkArguments(Block &block, Operands inputs,
               llvm::function_ref<std::string(unsigned)> nameOf) {
  if (inputs.size() != block.getNumArguments())
    return makeErrorf(ExitCode::BadInput, "{0} inputs given, {1} needed",
                      inputs.size(), block.getNumArguments());
  for (auto [i, argument] : llvm::enumerate(block.getArguments()))
    if (!hasType(inputs[i], argument))
      return makeErrorf(ExitCode::BadInput, "input {0}{1} is {2}", i, nameOf(i),
                        inputs[i].typeToString());
  return llvm::Error::success();
}

llvm::Expected<Results> interpretProgram(ProgramOp program, Operands inputs,
                                         StateReader readState,
                                         StateWriter writeState) {
  if (llvm::Error error =
          checkArguments(program.getBody().front(), inputs, [&](unsigned i) {
            return (" '" + program.getArgName(i) + "'").str();
          }))
    return error;
  llvm::Expected<PerRank> results =
      walk(program.getBody().front(), {Results(inputs)},
           [&](Operation *op, PerRank operands) {
             return interpretGlobally(op, std::move(operands), readState,
                                      writeState);
           });
  if (!results)
    return results.takeError();
  return std::move(results->front());
}

llvm::Expected<PerRank> interpretRanks(LocalStageOp local,
                                       const sharding::Mesh &mesh,
                                       PerRank inputs, int64_t slice) {
  assert(static_cast<int64_t>(inputs.size()) == mesh.numRanks());
  for (const Results &ofRank : inputs)
    if (llvm::Error error = checkArguments(
            local.getBlock(), ofRank, [](unsigned) { return std::string(); }))
      return error;
  std::vector<Place> places;
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    places.push_back({&mesh, mesh.coordinates(rank, slice)});
  auto step = [&](Operation *op, PerRank operands) -> llvm::Expected<PerRank> {
    PerRank results(operands.size());
    if (auto collective = dyn_cast<LocalCollectiveOpInterface>(op)) {
      for (unsigned part = 0; part < op->getNumOperands(); ++part) {
        std::vector<HostTensor> tensors;
        for (const Results &ofRank : operands)
          tensors.push_back(ofRank[part]);
        for (auto [ofRank, tensor] : llvm::zip_equal(
                 results, interpretCollective(collective, part, mesh, tensors)))
          ofRank.push_back(tensor);
      }
      return results;
    }
    for (size_t rank = 0; rank < operands.size(); ++rank) {
      llvm::Expected<Results> ofRank =
          interpret(op, operands[rank], &places[rank]);
      if (!ofRank)
        return ofRank.takeError();
      results[rank] = std::move(*ofRank);
    }
    return results;
  };
  return walk(local.getBlock(), std::move(inputs), step);
}

} // namespace ax::interpreter
