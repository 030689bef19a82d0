//===- TabulateBytes.cpp - What is made of a byte is looked up ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: a quantised network's SiLU of n numbers q of eight bits. With scales
// and zero points of a number each
//
//   x = (q - z) * s
//   g = quantised(sigmoid(x))
//   y = quantised(x * (g - z') * s')
//
// are n exponentials and some forty operations more, but y is one of 256 bytes,
// which one is told by q. These 256 are worked out, as often as the parameters
// change: mostly in the first step alone.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/FunctionFacts.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Gradients/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_TABULATEBYTES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static constexpr int64_t numBytes = 256;

static bool isOfBytes(Value value) { return elementType(value).isInteger(8); }

static bool isOneNumber(Value value) {
  return tensorType(value).getNumElements() == 1;
}

namespace {

/// What the elements of a value are made of, each of one.
struct Origin {
  /// Of eight bits, in the value's shape; null where there is none.
  Value bytes;
  /// Instructions for an element, or somewhat more.
  int64_t cost = 0;
};

class ByteTabulator {
public:
  explicit ByteTabulator(LocalStageOp stage) : stage(stage) {}

  void run() {
    for (Operation &op : stage.getBlock()) {
      if (!isElementwise(&op) || op.getNumResults() != 1)
        continue;
      Origin origin = findOrigin(&op);
      if (!origin.bytes)
        continue;
      Value result = op.getResult(0);
      origins[result] = origin;
      if (isOfBytes(result) && isWorthTable(result, origin))
        wanted.insert(&op);
    }
    // What only a later one is made of is gone by then.
    while (!wanted.empty()) {
      Operation *op = wanted.pop_back_val();
      lookUp(op->getResult(0));
      eraseUnused(op);
    }
  }

private:
  Origin originOf(Value value) const {
    auto found = origins.find(value);
    if (found != origins.end())
      return found->second;
    return {isOfBytes(value) ? value : Value(), 0};
  }

  Origin findOrigin(Operation *op) const {
    constexpr int64_t most = 1000;
    Origin origin;
    for (Value operand : op->getOperands()) {
      if (isOneNumber(operand))
        continue;
      Origin of = originOf(operand);
      bool isOther = origin.bytes && of.bytes != origin.bytes;
      if (!of.bytes || isOther || shapeOf(operand) != shapeOf(op->getResult(0)))
        return {};
      origin.bytes = of.bytes;
      origin.cost += of.cost;
    }
    auto cost = functionCostOf(op).value_or(FunctionCost::One);
    origin.cost = std::min(most, origin.cost + static_cast<int64_t>(cost));
    return origin;
  }

  static bool isWorthTable(Value result, const Origin &origin) {
    // It takes about as long as some instructions with vectors of numbers of 32
    // bits to write bytes and read them again, and to look them up.
    constexpr int64_t leastCost = 24, leastElements = 16 * numBytes;
    return origin.cost >= leastCost &&
           tensorType(result).getNumElements() >= leastElements;
  }

  void lookUp(Value result) {
    Value bytes = origins.lookup(result).bytes;
    OpBuilder builder(result.getDefiningOp());
    TensorBuilder t(result.getLoc(), builder);
    SmallVector<char> patterns(numBytes);
    for (int64_t i = 0; i != numBytes; ++i)
      patterns[i] = static_cast<char>(i);
    auto type = RankedTensorType::get({numBytes}, elementType(bytes));
    made.clear();
    made[bytes] = ConstantOp::create(
        t.b, DenseElementsAttr::getFromRawBuffer(type, patterns));
    Value table = tabulate(t, result);
    result.replaceAllUsesWith(
        LookUpOp::create(t.b, result.getType(), table, bytes));
  }

  /// `value` of each byte.
  Value tabulate(TensorBuilder &t, Value value) {
    if (Value of = made.lookup(value))
      return of;
    Operation *op = value.getDefiningOp();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isOneNumber(operand) ? t.reshape(operand, {1})
                                              : tabulate(t, operand));
    Operation *copy = t.b.clone(*op);
    copy->setOperands(operands);
    Value of = copy->getResult(0);
    of.setType(tensorType(of).clone(ArrayRef<int64_t>(numBytes)));
    return made[value] = of;
  }

  /// Erases `op`, if it is unused, and what nobody else has used.
  void eraseUnused(Operation *op) {
    llvm::SetVector<Operation *> perhaps;
    perhaps.insert(op);
    while (!perhaps.empty()) {
      Operation *last = perhaps.pop_back_val();
      if (!last->use_empty() || !isPure(last))
        continue;
      for (Value operand : last->getOperands())
        if (Operation *maker = operand.getDefiningOp())
          perhaps.insert(maker);
      wanted.remove(last);
      last->erase();
    }
  }

  LocalStageOp stage;
  /// Whose results are looked up.
  llvm::SetVector<Operation *> wanted;
  llvm::DenseMap<Value, Origin> origins;
  llvm::DenseMap<Value, Value> made;
};

struct TabulateBytesPass : codegen::impl::TabulateBytesBase<TabulateBytesPass> {
  void runOnOperation() override {
    forEachStage(getOperation(),
                 [](LocalStageOp stage) { ByteTabulator(stage).run(); });
  }
};

} // namespace
