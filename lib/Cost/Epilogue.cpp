//===- Epilogue.cpp - What a library does along with a product ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Epilogue.h"

#include "ax/Dialect/Actions.h"

using namespace mlir;
using namespace ax;

SmallVector<Operation *, 3> Epilogue::getOps() const {
  SmallVector<Operation *, 3> ops{activation, residual, last};
  llvm::erase(ops, nullptr);
  return ops;
}

Value Epilogue::getResult() const {
  SmallVector<Operation *, 3> ops = getOps();
  return (ops.empty() ? product : ops.back())->getResult(0);
}

Value Epilogue::getAddend() const {
  if (!residual)
    return {};
  Operation *maker = product;
  if (activation)
    maker = activation;
  OperandRange operands = residual->getOperands();
  return operands[operands[0] == maker->getResult(0)];
}

//===----------------------------------------------------------------------===//
// Device cpu
//===----------------------------------------------------------------------===//

static bool isActivation(UnaryOp op) {
  switch (op.getKind()) {
  case UnaryKind::relu:
  case UnaryKind::gelu:
  case UnaryKind::gelu_tanh:
  case UnaryKind::silu:
  case UnaryKind::sigmoid:
  case UnaryKind::tanh:
    return true;
  default:
    return false;
  }
}

namespace {

class CpuLibrary : public Library {
public:
  bool supports(const Epilogue &epilogue) const override {
    Operation *product = epilogue.product;
    if (!isa<LinearOp, ConvOp>(product))
      return false;
    // A sum in f32 is for others to round.
    auto elementOf = [](Value value) {
      return tensorType(value).getElementType();
    };
    if (elementOf(product->getOperand(0)) != elementOf(product->getResult(0)))
      return false;
    if (epilogue.last &&
        (!isa<ConvOp>(product) || !epilogue.residual || epilogue.activation))
      return false;
    return (!epilogue.activation || isActivation(epilogue.activation)) &&
           (!epilogue.last || isActivation(epilogue.last));
  }
};

} // namespace

const Library &ax::cpuLibrary() {
  static const CpuLibrary library;
  return library;
}

//===----------------------------------------------------------------------===//
// What is there
//===----------------------------------------------------------------------===//

static bool isProduct(Operation *op) {
  return isa_and_present<LinearOp, DotOp, ConvOp, ConvTransposeOp>(op);
}

/// An addend of narrow floats is f32 on its rank: it is no value of its type.
static bool isWidened(Value value) {
  RankedTensorType type = tensorType(value);
  return isNarrowFloat(type.getElementType()) &&
         localPartType(type, getMesh(value.getDefiningOp())).getElementType() !=
             type.getElementType();
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

/// The activation alone, if there is one.
static Epilogue findActivation(Operation *product, const Library &library) {
  Epilogue found{product, {}, {}, {}};
  Epilogue longer = found;
  longer.activation = onlyReader<UnaryOp>(found);
  return longer.activation && library.supports(longer) ? longer : found;
}

/// `found`, an activation at most, with the sum that reads it, if `library`
/// does that.
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
  Operation *maker = addend.getDefiningOp();
  if (auto activation = dyn_cast_or_null<UnaryOp>(maker))
    maker = activation.getOperand().getDefiningOp();
  if (!isProduct(maker) || maker->getBlock() != found.product->getBlock() ||
      maker->isBeforeInBlock(found.product))
    return false;
  Epilogue other = findActivation(maker, library);
  return other.getResult() == addend && withResidual(other, library);
}

Epilogue ax::findEpilogue(Operation *product, const Library &library) {
  if (!isProduct(product))
    return {product, {}, {}, {}};
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
  SmallVector<Operation *> makers{op};
  // An epilogue has three operations at most.
  for (int step = 0; step < 3; ++step) {
    SmallVector<Operation *> further;
    for (Operation *maker : makers) {
      if (!isa<UnaryOp, BinaryOp>(maker))
        continue;
      for (Value operand : maker->getOperands())
        if (Operation *before = operand.getDefiningOp()) {
          if (isProduct(before) &&
              llvm::is_contained(findEpilogue(before, library).getOps(), op))
            return before;
          further.push_back(before);
        }
    }
    makers = std::move(further);
  }
  return nullptr;
}
