//===- Emitter.cpp - Emission, constants, folding -------------------------===//

#include "Emitter.h"

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/Evaluation.h"
#include "ax/Dialect/Limits.h"
#include "ax/Dialect/Random.h"
#include "ax/Eval/Elements.h"
#include "ax/Eval/Evaluate.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace ax;
using namespace ax::import;
using mlir::RankedTensorType;

/// Operations of a program: phases take longer than the model is worth.
static constexpr int64_t maxOperations = 200000;
/// Constants of more elements than this are not made by folding.
static constexpr int64_t maxFoldElements = int64_t(1) << 25;
/// Above this, constants whose elements are all the same stay one number.
static constexpr int64_t minUniformElements = 256;
/// Weights up to this size are read and folded like constants.
static constexpr int64_t maxFoldWeightBytes = 64 << 10;
/// Integers and masks are no weights: indices that an exporter folded.
static constexpr int64_t maxFoldIndexBytes = 16 << 20;

Emitter::Emitter(mlir::MLIRContext *context, ModelFolder &folder,
                 bool foldWeights, bool evaluation)
    : builder(context), location(mlir::UnknownLoc::get(context)),
      folder(folder), foldWeights(foldWeights), evaluation(evaluation),
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
  return *eval::toDType(ax::tensorType(value).getElementType());
}

int64_t Emitter::numElementsOf(Value value) {
  return ax::tensorType(value).getNumElements();
}

RankedTensorType Emitter::tensorType(DType type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape,
                               eval::toElementType(type, builder.getContext()));
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

/// A splat of `type` with the element of the scalar `element`.
static mlir::DenseElementsAttr toSplat(RankedTensorType type,
                                       const HostTensor &element) {
  return mlir::DenseElementsAttr::get(
      type, eval::toElementsAttr(element, type.getContext())
                .getSplatValue<mlir::Attribute>());
}

Value Emitter::constantOp(RankedTensorType type,
                          mlir::DenseElementsAttr value) {
  return ax::ConstantOp::create(builder, location, type, value).getResult();
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
      count == 0 ? eval::toElementsAttr(tensor, builder.getContext())
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
  bool isTaken = name == "main" || ax::isEvaluation(name);
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

void Emitter::setKind(Value state, WeightKind kind) {
  auto found = states.find(state);
  if (found != states.end() && !found->second.kind)
    found->second.kind = kind;
}

void Emitter::updateState(Value old, Value updated) {
  if (auto state = states.find(old); state != states.end() && updated)
    updates.emplace_back(state->second.name, updated);
}

static bool isMoving(mlir::Operation *op) {
  return mlir::isa<ax::ReshapeOp, ax::TransposeOp, ax::BroadcastOp, ax::SliceOp,
                   ax::ConcatOp, ax::CastOp>(op);
}

std::optional<HostTensor> Emitter::uniformValue(Value value) const {
  auto op = value.getDefiningOp<ax::ConstantOp>();
  if (!op)
    return std::nullopt;
  if (auto known = contents.find(value); known != contents.end()) {
    if (known->second.numElements() != 1)
      return std::nullopt;
    return known->second.reshaped({});
  }
  auto splat = mlir::dyn_cast<mlir::SplatElementsAttr>(op.getValue());
  if (!splat)
    return std::nullopt;
  auto type = RankedTensorType::get({}, splat.getElementType());
  llvm::Expected<HostTensor> element =
      eval::toHostTensor(splat.resizeSplat(type));
  if (!element) {
    llvm::consumeError(element.takeError());
    return std::nullopt;
  }
  return *element;
}

bool Emitter::isKnown(Value value) const {
  mlir::Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (mlir::isa<ax::ConstantOp>(op))
    return true;
  if (auto state = states.find(value); state != states.end()) {
    const Weight &weight = state->second.weight;
    if (folder.lacks(weight.file))
      return false;
    return isFloat(weight.type)
               ? foldWeights && weight.length <= maxFoldWeightBytes
               : weight.length <= maxFoldIndexBytes;
  }
  return isMoving(op) &&
         ax::tensorType(value).getNumElements() <= maxFoldWeightBytes &&
         llvm::all_of(op->getOperands(),
                      [this](Value operand) { return isKnown(operand); });
}

std::optional<HostTensor> Emitter::knownValue(Value value) {
  mlir::Operation *op = value ? value.getDefiningOp() : nullptr;
  if (failed || !op || numElementsOf(value) > maxFoldElements)
    return std::nullopt;
  if (auto known = contents.find(value); known != contents.end())
    return known->second;
  if (auto state = states.find(value); state != states.end()) {
    if (!state->second.contents) {
      llvm::Expected<HostTensor> tensor = folder.read(state->second.weight);
      if (!tensor) {
        ErrorDescription why = describeError(tensor.takeError());
        fail(why.code, why.message);
        return std::nullopt;
      }
      state->second.contents = std::move(*tensor);
    }
    return state->second.contents;
  }
  if (std::optional<HostTensor> element = uniformValue(value)) {
    llvm::Expected<HostTensor> tensor =
        HostTensor::allocate(typeOf(value), Shape(shapeOf(value)));
    if (!tensor) {
      llvm::consumeError(tensor.takeError());
      return std::nullopt;
    }
    int64_t size = byteSize(element->getType());
    uint8_t *to = tensor->mutableData();
    for (int64_t i = 0, n = tensor->numElements(); i < n; ++i)
      std::copy_n(element->data(), size, to + i * size);
    return std::move(*tensor);
  }
  if (!isMoving(op))
    return std::nullopt;
  std::vector<HostTensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<HostTensor> tensor = knownValue(operand);
    if (!tensor)
      return std::nullopt;
    operands.push_back(std::move(*tensor));
  }
  std::optional<std::vector<HostTensor>> results = evaluate(op, operands);
  if (!results)
    return std::nullopt;
  return results->front();
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

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

std::optional<std::vector<HostTensor>>
Emitter::evaluate(mlir::Operation *op, ArrayRef<HostTensor> operands) {
  // Without elements, other dimensions may be of any size.
  auto isHuge = [](Value value) {
    return llvm::any_of(shapeOf(value),
                        [](int64_t size) { return size > maxFoldElements; });
  };
  if (llvm::any_of(op->getResults(), isHuge) ||
      llvm::any_of(op->getOperands(), isHuge))
    return std::nullopt;
  for (Value result : op->getResults())
    foldBudget -= numElementsOf(result);
  for (const HostTensor &operand : operands)
    foldBudget -= operand.numElements();
  if (foldBudget < 0)
    return std::nullopt;
  auto results = eval::evaluate(op, operands);
  if (results)
    return std::vector<HostTensor>(results->begin(), results->end());
  // It is left to the program, which may never get there.
  llvm::consumeError(results.takeError());
  return std::nullopt;
}

/// Elements that are read for each one of the result; a bound.
static uint64_t readsPerResult(mlir::Operation *op) {
  uint64_t reads = 1;
  auto times = [&](int64_t size) {
    reads = llvm::SaturatingMultiply(reads, static_cast<uint64_t>(size));
  };
  if (auto pool = mlir::dyn_cast<ax::PoolOp>(op)) {
    llvm::for_each(pool.getKernel(), times);
  } else if (auto dot = mlir::dyn_cast<ax::DotOp>(op)) {
    for (int64_t dim : dot.getLhsContract())
      times(ax::tensorType(dot.getLhs()).getDimSize(dim));
  } else if (mlir::isa<ax::ConvOp, ax::ConvTransposeOp, ax::AttentionOp>(op)) {
    times(ax::tensorType(op->getOperand(1)).getNumElements());
  }
  return reads;
}

/// Folding does nothing that takes long.
static bool isCheap(mlir::Operation *op) {
  constexpr uint64_t maxWork = uint64_t(1) << 26;
  uint64_t results = ax::tensorType(op->getResult(0)).getNumElements();
  uint64_t reads = readsPerResult(op);
  return reads == 1 || llvm::SaturatingMultiply(results, reads) <= maxWork;
}

bool Emitter::fold(OpClass opClass, mlir::Operation *op,
                   llvm::SmallVectorImpl<Value> &results) {
  if (isRandom(op))
    return false;
  if (!llvm::all_of(op->getOperands(),
                    [this](Value operand) { return isKnown(operand); }))
    return false;
  int64_t elements = 0, bytes = 0;
  for (Value result : op->getResults()) {
    elements += ax::tensorType(result).getNumElements();
    bytes += ax::tensorType(result).getNumElements() * byteSize(typeOf(result));
  }

  // Large and uniform: compute one element.
  int64_t largest = elements;
  for (Value operand : op->getOperands())
    largest = std::max(largest, numElementsOf(operand));
  if (opClass != OpClass::Other && largest >= minUniformElements) {
    std::vector<HostTensor> scalars;
    for (Value operand : op->getOperands())
      if (std::optional<HostTensor> element = uniformValue(operand))
        scalars.push_back(std::move(*element));
    bool uniform = scalars.size() == op->getNumOperands() && !scalars.empty();
    if (uniform && opClass == OpClass::Moving)
      uniform = llvm::all_of(scalars, [&](const HostTensor &scalar) {
        return scalar.isIdentical(scalars.front());
      });
    if (uniform) {
      auto type = mlir::cast<RankedTensorType>(op->getResult(0).getType());
      HostTensor element = scalars.front();
      if (opClass == OpClass::Elementwise) {
        mlir::OperationState state(location, op->getName());
        mlir::OpBuilder::InsertionGuard guard(builder);
        for (const HostTensor &scalar : scalars)
          state.operands.push_back(constant(scalar));
        mlir::Operation *one = op->clone();
        one->setOperands(state.operands);
        one->getResult(0).setType(
            RankedTensorType::get({}, type.getElementType()));
        auto folded = evaluate(one, scalars);
        one->destroy();
        if (!folded)
          return false;
        element = folded->front();
      }
      results.push_back(constantOp(type, toSplat(type, element)));
      return true;
    }
  }

  bool fromWeights = false;
  int64_t operandBytes = 0;
  for (Value operand : op->getOperands()) {
    fromWeights |= !mlir::isa<ax::ConstantOp>(operand.getDefiningOp()) &&
                   isFloat(typeOf(operand));
    operandBytes += numElementsOf(operand) * byteSize(typeOf(operand));
  }
  // A weight that is only moved keeps its name and is not copied.
  if (fromWeights &&
      (isMoving(op) || bytes > std::max(operandBytes, maxFoldWeightBytes)))
    return false;
  if (elements > maxFoldElements || !isCheap(op))
    return false;
  std::vector<HostTensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<HostTensor> tensor = knownValue(operand);
    if (!tensor)
      return false;
    operands.push_back(std::move(*tensor));
  }
  std::optional<std::vector<HostTensor>> values = evaluate(op, operands);
  if (!values)
    return false;
  for (HostTensor &value : *values)
    results.push_back(constant(std::move(value)));
  return true;
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
    results.append(op->result_begin(), op->result_end());
    return results;
  }
  op->erase();
  return results;
}

std::optional<WeightKind> Emitter::kindOf(const LoadedState &state) {
  const Weight &weight = state.weight;
  if (state.kind || weight.type != DType::F32)
    return state.kind;
  auto values = folder.bytesOf(weight);
  if (!values) {
    // Who loads the weight says so.
    llvm::consumeError(values.takeError());
    return std::nullopt;
  }
  return kindByValues(*values, weight.shape);
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
    if (!mlir::isa<ax::ConstantOp, ax::LoadOp>(op))
      order.push_back(&op);
  llvm::DenseSet<mlir::Operation *> placed;
  mlir::SymbolTable symbols(stateBuilder.getBlock()->getParentOp());
  for (mlir::Operation *user : order)
    for (Value operand : user->getOperands()) {
      mlir::Operation *op = operand.getDefiningOp();
      if (!op || !mlir::isa<ax::ConstantOp, ax::LoadOp>(op) ||
          !placed.insert(op).second)
        continue;
      op->moveBefore(user);
      if (auto constant = mlir::dyn_cast<ax::ConstantOp>(op)) {
        auto known = contents.find(constant.getResult());
        if (known != contents.end())
          constant.setValueAttr(
              eval::toElementsAttr(known->second, constant.getContext()));
        continue;
      }
      const LoadedState &state = states.at(operand);
      if (symbols.lookup(state.name))
        continue;
      auto made = ax::StateOp::create(stateBuilder, op->getLoc(), state.name,
                                      operand.getType(), state.weight.file,
                                      state.weight.offset, state.weight.length,
                                      mlir::DenseI64ArrayAttr(), false);
      symbols.insert(made);
      if (foldWeights)
        continue;
      if (std::optional<WeightKind> kind = kindOf(state))
        made->setAttr(kWeightKind, builder.getStringAttr(toString(*kind)));
    }
}
