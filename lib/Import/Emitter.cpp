//===- Emitter.cpp - Emission, constants, states --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Emitter.h"

#include "Fold.h"

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/Limits.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Interpreter/Elements.h"

#include "llvm/ADT/SetVector.h"

using namespace ax;
using namespace ax::import;
using mlir::RankedTensorType;

/// Operations of a program: phases take longer than the model is worth.
static constexpr int64_t maxOperations = 200000;

Emitter::Emitter(mlir::MLIRContext *context, ModelFolder &folder, bool training,
                 bool evaluationMode)
    : builder(context), location(mlir::UnknownLoc::get(context)),
      folder(folder), training(training), evaluationMode(evaluationMode),
      diagnostics(context, [this](mlir::Diagnostic &diagnostic) {
        std::string message = diagnostic.str();
        bool isLarge = llvm::StringRef(message).contains(tooLarge);
        fail(isLarge ? ExitCode::Unsupported : ExitCode::BadModel, message);
        return mlir::success();
      }) {}

ArrayRef<int64_t> Emitter::shapeOf(Value value) {
  return ax::tensorType(value).getShape();
}

DType Emitter::typeOf(Value value) {
  return *interpreter::toDType(ax::tensorType(value).getElementType());
}

int64_t Emitter::numElementsOf(Value value) {
  return ax::tensorType(value).getNumElements();
}

RankedTensorType Emitter::tensorType(DType type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(
      shape, interpreter::toElementType(type, builder.getContext()));
}

/// Messages may quote several types of many dimensions.
static constexpr size_t maxMessage = 600;

Value Emitter::fail(ExitCode code, const llvm::Twine &message) {
  if (!failed) {
    failed = true;
    failureCode = code;
    failure = shorten(message.str(), maxMessage);
  }
  return {};
}

void Emitter::addContext(const llvm::Twine &context) {
  if (failed && !hasContext)
    failure = (context + ": " + failure).str();
  hasContext = failed;
}

llvm::Error Emitter::takeFailure() {
  if (!failed)
    return llvm::Error::success();
  failed = hasContext = false;
  return makeError(failureCode, failure);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static bool isUniform(const HostTensor &tensor) {
  int64_t size = byteSize(tensor.getType());
  auto bytes = tensor.rawBytes();
  return bytes.empty() || bytes.drop_back(size) == bytes.drop_front(size);
}

Value Emitter::constantOp(RankedTensorType type,
                          mlir::DenseElementsAttr value) {
  auto op = ax::ConstantOp::create(builder, location, type, value);
  remember(op);
  return op.getResult();
}

Value Emitter::constant(HostTensor tensor) {
  if (failed)
    return {};
  RankedTensorType type = tensorType(tensor.getType(), tensor.getShape());
  int64_t count = tensor.numElements();
  if (count > 0 && isUniform(tensor)) {
    HostTensor element(tensor.getType(), {});
    std::copy_n(tensor.data(), byteSize(tensor.getType()),
                element.mutableData());
    Value result = constantOp(type, toSplat(type, element));
    if (count < minUniformElements)
      contents[result] = std::move(tensor);
    return result;
  }
  // A stand-in; `finish` writes the elements of those that are still used.
  mlir::DenseElementsAttr placeholder =
      count == 0 ? interpreter::toElementsAttr(tensor, builder.getContext())
                 : toSplat(type, HostTensor(tensor.getType(), {}));
  Value result = constantOp(type, placeholder);
  contents[result] = std::move(tensor);
  return result;
}

Value Emitter::scalar(DType type, double value) {
  HostTensor tensor(type, {});
  tensor.setDouble(0, value);
  return constant(std::move(tensor));
}

Value Emitter::splat(DType type, ArrayRef<int64_t> shape, double value) {
  return broadcast(scalar(type, value), shape);
}

Value Emitter::ints(ArrayRef<int64_t> values) {
  return constant(HostTensor::fromValues<int64_t>(
      {static_cast<int64_t>(values.size())}, values));
}

Value Emitter::like(Value value, double number) {
  return value ? scalar(typeOf(value), number) : Value();
}

std::string ax::import::stateName(const std::string &name) {
  // Programs have these names.
  bool isTaken = name == "main" || name == ax::preparationProgram ||
                 ax::isEvaluationMode(name);
  return isTaken ? name + ".weight" : name;
}

Value Emitter::load(const std::string &name, const Weight &weight) {
  Value &value = loads[name];
  if (value)
    return value;
  std::string symbol = stateName(name);
  value = ax::LoadOp::create(
      builder, location, tensorType(weight.type, weight.shape),
      mlir::FlatSymbolRefAttr::get(builder.getContext(), symbol));
  states[value] = {symbol, weight, std::nullopt, std::nullopt};
  return value;
}

Emitter::LoadedState *Emitter::stateOf(Value value) {
  // Exporters give a slope of one number the dimensions of what it meets.
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape->getOperand(0);
  auto found = states.find(value);
  return found == states.end() ? nullptr : &found->second;
}

void Emitter::setKind(Value state, WeightKind kind) {
  if (LoadedState *found = stateOf(state); found && !found->kind)
    found->kind = kind;
}

void Emitter::noteInitialState(Value state) {
  LoadedState *found = training && state ? stateOf(state) : nullptr;
  if (!found || found->kind || !isFloat(found->weight.type))
    return;
  auto bytes = folder.bytesOf(found->weight);
  if (!bytes)
    // Who loads the weight says so.
    return llvm::consumeError(bytes.takeError());
  if (llvm::all_of(*bytes, [](uint8_t byte) { return byte == 0; }))
    found->kind = WeightKind::InitialState;
}

std::vector<std::string> Emitter::inputsBehind(Value value) const {
  llvm::SetVector<Value> behind;
  behind.insert(value);
  std::vector<std::string> names;
  for (size_t i = 0; i < behind.size(); ++i) {
    if (mlir::Operation *op = behind[i].getDefiningOp()) {
      behind.insert(op->operand_begin(), op->operand_end());
      continue;
    }
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(behind[i].getLoc()))
      names.push_back(name.getName().str());
  }
  return names;
}

llvm::SmallVector<Value> Emitter::finishEmit(OpClass opClass,
                                             mlir::Operation *op) {
  llvm::SmallVector<Value> results;
  if (failed || mlir::failed(op->getName().verifyInvariants(op))) {
    fail(ExitCode::BadModel, "malformed operation");
    op->erase();
    return results;
  }
  for (Value result : op->getResults())
    if (std::string fault =
            findSizeFault(shapeOf(result), byteSize(typeOf(result)));
        !fault.empty())
      fail(ExitCode::Unsupported, "a tensor " + fault);
  if (!failed && !fold(opClass, op, results)) {
    if (++numOperations > maxOperations)
      fail(ExitCode::Unsupported,
           "the model has more than " + llvm::Twine(maxOperations) +
               " operations, its loops and sequences written out");
    remember(op);
    keepBounds(op);
    results.append(op->result_begin(), op->result_end());
    return results;
  }
  op->erase();
  return results;
}

std::optional<WeightKind> Emitter::kindOf(const LoadedState &state) {
  const Weight &weight = state.weight;
  if (state.kind || !isFloat(weight.type))
    return state.kind;
  auto values = folder.bytesOf(weight);
  if (!values) {
    // Who loads the weight says so.
    llvm::consumeError(values.takeError());
    return std::nullopt;
  }
  return kindByValues(weight.type, *values, weight.shape);
}

void Emitter::finish(mlir::Block &body, mlir::OpBuilder &stateBuilder) {
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (op.use_empty() && !op.hasTrait<mlir::OpTrait::IsTerminator>()) {
      for (Value result : op.getResults()) {
        contents.erase(result);
        states.erase(result);
      }
      op.erase();
    }
  // Constants and weights next to their first use.
  std::vector<mlir::Operation *> order;
  for (mlir::Operation &op : body)
    if (!isSource(&op))
      order.push_back(&op);
  llvm::DenseSet<mlir::Operation *> placed;
  mlir::SymbolTable symbols(stateBuilder.getBlock()->getParentOp());
  for (mlir::Operation *user : order)
    for (Value operand : user->getOperands()) {
      mlir::Operation *op = operand.getDefiningOp();
      if (!isSource(op) || !placed.insert(op).second)
        continue;
      op->moveBefore(user);
      if (auto constant = mlir::dyn_cast<ax::ConstantOp>(op)) {
        auto known = contents.find(constant.getResult());
        if (known != contents.end())
          constant.setValueAttr(interpreter::toElementsAttr(
              known->second, constant.getContext()));
        continue;
      }
      const LoadedState &state = states.at(operand);
      if (symbols.lookup(state.name))
        continue;
      auto made = ax::StateOp::create(
          stateBuilder, op->getLoc(), state.name, operand.getType(),
          state.weight.file, state.weight.offset, state.weight.length,
          mlir::TypeAttr(), mlir::DenseI64ArrayAttr(), DealtAttr(), false);
      symbols.insert(made);
      if (!training)
        continue;
      if (std::optional<WeightKind> kind = kindOf(state))
        made->setAttr(kWeightKind, builder.getStringAttr(toString(*kind)));
    }
}
