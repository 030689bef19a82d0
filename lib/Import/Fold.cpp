//===- Fold.cpp - What is known when the model is imported ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Fold.h"

#include "Emitter.h"

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/Random.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Interpreter.h"

#include "llvm/Support/MathExtras.h"

using namespace ax;
using namespace ax::import;
using mlir::RankedTensorType;

/// Constants of more elements than this are not made by folding.
static constexpr int64_t maxFoldElements = int64_t(1) << 25;
/// Floats that constants are moved to, or become, up to this.
static constexpr int64_t maxFoldFloatBytes = 64 << 10;
/// Indices and masks, which exporters have folded themselves, up to this.
static constexpr int64_t maxFoldIndexBytes = 16 << 20;

/// Quantised weights up to this: scales and zero points fold with each other.
static constexpr int64_t maxFoldQuantizedBytes = 1024;

/// Many numbers that no index has: they stand for others, as weights.
static bool isQuantized(Value value) {
  DType type = Emitter::typeOf(value);
  bool isNarrow = type == DType::I8 || type == DType::U8 ||
                  type == DType::I16 || type == DType::U16;
  return isNarrow &&
         Emitter::numElementsOf(value) * byteSize(type) > maxFoldQuantizedBytes;
}

mlir::DenseElementsAttr ax::import::toSplat(RankedTensorType type,
                                            const HostTensor &element) {
  return mlir::DenseElementsAttr::get(
      type, interpreter::toElementsAttr(element, type.getContext())
                .getSplatValue<mlir::Attribute>());
}

static bool isMoving(mlir::Operation *op) {
  return isView(op) || mlir::isa<ax::ConcatOp, ax::CastOp>(op);
}

/// Whether it takes numbers of fewer bits out of bytes.
static bool isUnpacking(mlir::Operation *op) {
  auto binary = mlir::dyn_cast<ax::BinaryOp>(op);
  return binary && (binary.getKind() == BinaryKind::shr ||
                    binary.getKind() == BinaryKind::bit_and);
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
      interpreter::toHostTensor(splat.resizeSplat(type));
  if (!element) {
    llvm::consumeError(element.takeError());
    return std::nullopt;
  }
  return *element;
}

bool Emitter::isKnown(Value value) const {
  mlir::Operation *op = value.getDefiningOp();
  // How many of its elements count is not known.
  if (!op || boundOf(value))
    return false;
  if (mlir::isa<ax::ConstantOp>(op))
    return true;
  if (auto state = states.find(value); state != states.end()) {
    const Weight &weight = state->second.weight;
    if (folder.lacks(weight.file))
      return false;
    // Floats are weights, which other values may take the place of: what is
    // made of them alone is computed when the plan is loaded.
    return !isFloat(weight.type) && weight.length <= maxFoldIndexBytes;
  }
  // A mask is read, whatever its type was; a weight is not made wider.
  if (mlir::isa<ax::CastOp>(op) && typeOf(value) != DType::Bool &&
      isQuantized(op->getOperand(0)))
    return false;
  int64_t most = isFloat(typeOf(value)) ? maxFoldFloatBytes : maxFoldIndexBytes;
  return isMoving(op) && ax::tensorType(value).getNumElements() <= most &&
         llvm::all_of(op->getOperands(),
                      [this](Value operand) { return isKnown(operand); });
}

std::optional<HostTensor> Emitter::knownValue(Value value) {
  mlir::Operation *op = value ? value.getDefiningOp() : nullptr;
  if (failed || !op || boundOf(value) || numElementsOf(value) > maxFoldElements)
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
      noteFolded(state->second.name, *state->second.contents);
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
  std::optional<std::vector<HostTensor>> results = interpret(op, operands);
  if (!results)
    return std::nullopt;
  return results->front();
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

std::optional<std::vector<HostTensor>>
Emitter::interpret(mlir::Operation *op, ArrayRef<HostTensor> operands) {
  // Without elements, other dimensions may be of any size.
  auto isHuge = [](Value value) {
    return llvm::any_of(shapeOf(value),
                        [](int64_t size) { return size > maxFoldElements; });
  };
  if (llvm::any_of(op->getResults(), isHuge) ||
      llvm::any_of(op->getOperands(), isHuge))
    return std::nullopt;
  int64_t elements = 0;
  for (Value result : op->getResults())
    elements += numElementsOf(result);
  for (const HostTensor &operand : operands)
    elements += operand.numElements();
  // Shapes are made of small ones, whatever masks have taken.
  constexpr int64_t small = 4096;
  if (elements > small) {
    if (elements > foldBudget)
      return std::nullopt;
    foldBudget -= elements;
  }
  auto results = interpreter::interpret(op, operands);
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

bool Emitter::isCheap(mlir::Operation *op) {
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
        auto folded = interpret(one, scalars);
        one->destroy();
        if (!folded)
          return false;
        element = folded->front();
      }
      results.push_back(constantOp(type, toSplat(type, element)));
      return true;
    }
  }

  bool fromWeights = false, widens = false;
  int64_t operandBytes = 0;
  for (Value operand : op->getOperands()) {
    fromWeights |= !mlir::isa<ax::ConstantOp>(operand.getDefiningOp()) &&
                   isQuantized(operand);
    widens |= isQuantized(operand);
    operandBytes += numElementsOf(operand) * byteSize(typeOf(operand));
  }
  // A weight that is only moved, or unpacked, keeps its name and is not copied,
  // one that would become larger stays what it is. Masks are no weights.
  if (typeOf(op->getResult(0)) != DType::Bool &&
      ((fromWeights && (isMoving(op) || isUnpacking(op))) ||
       (widens && bytes > operandBytes)))
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
  std::optional<std::vector<HostTensor>> values = interpret(op, operands);
  if (!values)
    return false;
  // What is kept is dearer: a loop that doubles a tensor writes it cheaply. So
  // constants of all have about 256 MiB.
  foldBudget -= bytes / 2;
  for (HostTensor &value : *values)
    results.push_back(constant(std::move(value)));
  return true;
}
