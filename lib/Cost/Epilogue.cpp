//===- Epilogue.cpp - What a library does along with a product ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Epilogue.h"

#include "ax/Dialect/Actions.h"
#include "ax/Dialect/Activations.h"
#include "ax/Dialect/Tensors.h"

using namespace mlir;
using namespace ax;

SmallVector<Operation *, 4> Epilogue::getOps() const {
  SmallVector<Operation *, 4> ops{bias, activation, residual, last};
  llvm::erase(ops, nullptr);
  return ops;
}

Value Epilogue::getResult() const {
  SmallVector<Operation *, 4> ops = getOps();
  return (ops.empty() ? product : ops.back())->getResult(0);
}

/// The operand of `sum` that `maker` does not give.
static Value otherOperand(Operation *sum, Operation *maker) {
  return sum->getOperand(sum->getOperand(0) == maker->getResult(0));
}

/// What `sum` adds to all of `product`, or to each column; null where that is
/// no bias. What is as large as the result, as all that is added to a vector's
/// product is, may be another product's, and is a residual: of two that a sum
/// adds, one takes it.
static Value biasOf(Operation *product, BinaryOp sum) {
  Value added = otherOperand(sum, product);
  if (added.getType() == product->getResult(0).getType())
    return {};
  auto constant = added.getDefiningOp<ConstantOp>();
  bool isNumber = constant && tensorType(added).getRank() == 0 &&
                  isa<DenseElementsAttr>(constant.getValue());
  return isNumber ? added : findBias(product, sum);
}

Value Epilogue::getBias() const {
  return bias ? biasOf(product, bias) : Value();
}

Value Epilogue::getAddend() const {
  if (!residual)
    return {};
  Operation *maker = product;
  if (bias)
    maker = bias;
  if (activation)
    maker = activation;
  return otherOperand(residual, maker);
}

Operation *Epilogue::getPlace() const { return residual ? residual : bias; }

//===----------------------------------------------------------------------===//
// Devices' libraries
//===----------------------------------------------------------------------===//

static bool isActivation(UnaryOp op) { return ax::isActivation(op.getKind()); }

/// What no library does: more than a bias behind a transposed convolution.
static bool isBeyondAll(const Epilogue &epilogue) {
  return isa<ConvTransposeOp>(epilogue.product) &&
         (epilogue.activation || epilogue.residual || epilogue.last);
}

/// Whether it is of a sum in f32 that others round.
static bool isWide(const Epilogue &epilogue) {
  Operation *product = epilogue.product;
  return elementType(product->getOperand(0)) !=
         elementType(product->getResult(0));
}

namespace {

class CpuLibrary : public Library {
public:
  bool supports(const Epilogue &epilogue) const override {
    if (isBeyondAll(epilogue))
      return false;
    Operation *product = epilogue.product;
    // oneDNN adds a bias to a transposed convolution's f32 one by one, which
    // takes longer than the convolution; a kernel behind it takes it along.
    if (isa<ConvTransposeOp>(product) &&
        elementType(product->getResult(0)).isF32())
      return false;
    if (isWide(epilogue))
      return isa<LinearOp>(product) && !epilogue.activation &&
             !epilogue.residual && !epilogue.last &&
             isNarrowFloat(elementType(product->getOperand(0)));
    if (epilogue.last &&
        (!isa<ConvOp>(product) || !epilogue.residual || epilogue.activation))
      return false;
    return (!epilogue.activation || isActivation(epilogue.activation)) &&
           (!epilogue.last || isActivation(epilogue.last));
  }
};

class GpuLibrary : public Library {
public:
  bool supports(const Epilogue &epilogue) const override {
    // cuDNN convolves, and no more.
    if (isBeyondAll(epilogue) || isWide(epilogue) || epilogue.last ||
        isa<ConvOp, ConvTransposeOp>(epilogue.product))
      return false;
    if (!epilogue.activation)
      return true;
    UnaryOp activation = epilogue.activation;
    if (epilogue.residual)
      return false;
    // In f64 cuBLASLt's GELU is right to ten digits only.
    return activation.getKind() == UnaryKind::relu ||
           (activation.getKind() == UnaryKind::gelu_tanh &&
            !elementType(activation.getResult()).isF64());
  }
};

} // namespace

const Library &ax::cpuLibrary() {
  static const CpuLibrary library;
  return library;
}

const Library &ax::gpuLibrary() {
  static const GpuLibrary library;
  return library;
}

//===----------------------------------------------------------------------===//
// What is there
//===----------------------------------------------------------------------===//

static bool isProduct(Operation *op) {
  return isa_and_present<LayerOpInterface>(op);
}

/// An addend of narrow floats is f32 on its rank: it is no value of its type.
static bool isWidened(Value value) {
  RankedTensorType type = tensorType(value);
  return isNarrowFloat(type.getElementType()) &&
         localPartType(type, getMesh(value.getDefiningOp())).getElementType() !=
             type.getElementType();
}

/// A product that `accept` takes, of those that `value` is made of by at most
/// the operations of an epilogue; null where there is none.
static Operation *findAbove(Value value,
                            llvm::function_ref<bool(Operation *)> accept) {
  SmallVector<Value> values{value};
  for (int step = 0; step <= 4; ++step) {
    SmallVector<Value> further;
    for (Value at : values) {
      Operation *maker = at.getDefiningOp();
      if (isProduct(maker) && accept(maker))
        return maker;
      if (isa_and_present<UnaryOp, BinaryOp>(maker))
        llvm::append_range(further, maker->getOperands());
    }
    values = std::move(further);
  }
  return nullptr;
}

/// The one reader of what `found` gives so far, if it may be done with it.
template <typename OpTy>
static OpTy onlyReader(const Epilogue &found) {
  Value value = found.getResult();
  if (!value.hasOneUse() || isWidened(value))
    return {};
  auto reader = dyn_cast<OpTy>(*value.user_begin());
  bool fits = reader && reader.getResult().getType() == value.getType() &&
              reader->getBlock() == found.product->getBlock() &&
              haveSameStageAndAction(reader, found.product);
  return fits ? reader : OpTy();
}

/// Bias and activation, as far as they are there.
static Epilogue findActivation(Operation *product, const Library &library) {
  Epilogue found;
  found.product = product;
  Epilogue longer = found;
  longer.bias = onlyReader<BinaryOp>(found);
  if (longer.bias && longer.bias.getKind() == BinaryKind::add &&
      longer.getBias() && library.supports(longer))
    found = longer;
  longer = found;
  longer.activation = onlyReader<UnaryOp>(found);
  return longer.activation && library.supports(longer) ? longer : found;
}

/// `found`, a bias and an activation at most, with the sum that reads it, if
/// `library` does that.
static std::optional<Epilogue> withResidual(Epilogue found,
                                            const Library &library) {
  BinaryOp sum = onlyReader<BinaryOp>(found);
  if (!sum || sum.getKind() != BinaryKind::add ||
      sum.getLhs().getType() != sum.getRhs().getType())
    return std::nullopt;
  found.residual = sum;
  return library.supports(found) ? std::optional(found) : std::nullopt;
}

/// Whether a product behind `product`, in the order of the block, gives what
/// the residual adds, and so adds what `product` gives.
static bool isTaken(const Epilogue &found, const Library &library) {
  Value addend = found.getAddend();
  return findAbove(addend, [&](Operation *product) {
    Epilogue other = findActivation(product, library);
    return other.getResult() == addend &&
           product->getBlock() == found.product->getBlock() &&
           found.product->isBeforeInBlock(product) &&
           withResidual(other, library);
  });
}

Epilogue ax::findEpilogue(Operation *product, const Library &library) {
  if (!isProduct(product)) {
    Epilogue none;
    none.product = product;
    return none;
  }
  Epilogue found = findActivation(product, library);
  std::optional<Epilogue> longer = withResidual(found, library);
  if (longer && !isTaken(*longer, library))
    found = *longer;
  Epilogue whole = found;
  whole.last = onlyReader<UnaryOp>(found);
  return whole.last && whole.last != whole.activation && library.supports(whole)
             ? whole
             : found;
}

Operation *ax::findProduct(Operation *op, const Library &library) {
  if (!isa<UnaryOp, BinaryOp>(op))
    return nullptr;
  return findAbove(op->getResult(0), [&](Operation *product) {
    return llvm::is_contained(findEpilogue(product, library).getOps(), op);
  });
}
