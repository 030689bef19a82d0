//===- InferElementwise.cpp - Result types of element-wise ops ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InferTypes.h"
#include "ax/Dialect/FunctionFacts.h"
#include "ax/Dialect/Limits.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

LogicalResult ax::checkedGive(std::optional<Location> location,
                              SmallVectorImpl<Type> &types,
                              ArrayRef<int64_t> shape, Type element) {
  int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 8;
  int64_t room = maxTensorBytes / ((bits + 7) / 8);
  for (int64_t size : shape) {
    if (size < 0)
      return emitOptionalError(location, "result would have a dimension of ",
                               size, " elements");
    if (size > room)
      return emitOptionalError(location, "result would be ", tooLarge);
    room /= std::max<int64_t>(size, 1);
  }
  return give(types, shape, element);
}

LogicalResult ax::checkElements(std::optional<Location> location,
                                ArrayRef<Value> values) {
  for (Value value : values.drop_front())
    if (value && elementOf(value) != elementOf(values.front()))
      return emitOptionalError(
          location, "element types differ: ", elementOf(values.front()),
          " and ", elementOf(value));
  return success();
}

static LogicalResult checkOperands(std::optional<Location> location,
                                   StringRef function,
                                   FunctionOperands operands, Type element) {
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  auto check = [&](bool fits, StringRef wanted) -> LogicalResult {
    if (fits)
      return success();
    return emitOptionalError(location, function, " needs ", wanted, ", got ",
                             element);
  };
  switch (operands) {
  case FunctionOperands::Floats:
    return check(isFloat, "floating point");
  case FunctionOperands::Numbers:
    return check(!isBool, "numbers");
  case FunctionOperands::Integers:
    return check(isa<IntegerType>(element), "integers");
  case FunctionOperands::Bools:
    return check(isBool, "i1");
  case FunctionOperands::Any:
    return success();
  }
  llvm_unreachable("operands of a function");
}

AX_INFER(UnaryOp) {
  Type element = elementOf(op.getOperand());
  const UnaryFacts &facts = factsOf(op.getKind());
  if (failed(checkOperands(location, stringifyUnaryKind(op.getKind()),
                           facts.operands, element)))
    return failure();
  return give(types, shapeOf(op.getOperand()),
              facts.givesBools ? IntegerType::get(context, 1) : element);
}

static LogicalResult inferBroadcast(std::optional<Location> location, Value lhs,
                                    Value rhs, Type element,
                                    SmallVectorImpl<Type> &types) {
  if (failed(checkElements(location, {lhs, rhs})))
    return failure();
  auto shape = broadcastShapes(shapeOf(lhs), shapeOf(rhs));
  if (failed(shape))
    return emitOptionalError(location,
                             "shapes do not broadcast: ", lhs.getType(),
                             " and ", rhs.getType());
  return checkedGive(location, types, *shape, element);
}

AX_INFER(BinaryOp) {
  Type element = elementOf(op.getLhs());
  if (failed(checkOperands(location, stringifyBinaryKind(op.getKind()),
                           factsOf(op.getKind()).operands, element)))
    return failure();
  return inferBroadcast(location, op.getLhs(), op.getRhs(), element, types);
}

AX_INFER(CompareOp) {
  return inferBroadcast(location, op.getLhs(), op.getRhs(),
                        IntegerType::get(context, 1), types);
}

AX_INFER(SelectOp) {
  if (failed(inferBroadcast(location, op.getOnTrue(), op.getOnFalse(),
                            elementOf(op.getOnTrue()), types)))
    return failure();
  auto chosen = cast<RankedTensorType>(types.pop_back_val());
  auto shape = broadcastShapes(shapeOf(op.getCondition()), chosen.getShape());
  if (failed(shape))
    return emitOptionalError(location, "condition ",
                             op.getCondition().getType(),
                             " does not broadcast with ", chosen);
  return checkedGive(location, types, *shape, chosen.getElementType());
}

static LogicalResult verifySeed(std::optional<Location> location, Value seed,
                                Value step) {
  for (Value scalar : {seed, step})
    if (!shapeOf(scalar).empty() || !elementOf(scalar).isInteger(64))
      return emitOptionalError(location, "seed and step are i64 scalars, not ",
                               scalar.getType());
  return success();
}

AX_INFER(AtMostOp) {
  int64_t limit = op.getLimit(), most = std::numeric_limits<int32_t>::max();
  if (limit < 0 || limit >= most)
    return emitOptionalError(location, "limit ", limit, " is not 0 to ",
                             most - 1);
  return give(types, shapeOf(op.getOperand()), elementOf(op.getOperand()));
}

AX_INFER(DropoutOp) {
  if (failed(verifySeed(location, op.getSeed(), op.getStep())))
    return failure();
  double rate = op.getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOptionalError(location, "rate ", rate,
                             " is not between 0 and 1");
  return give(types, shapeOf(op.getOperand()), elementOf(op.getOperand()));
}

LogicalResult UniformOp::verify() {
  if (!elementOf(getResult()).isF32())
    return emitOpError("gives f32, not ") << elementOf(getResult());
  return verifySeed(getLoc(), getSeed(), getStep());
}

LogicalResult CastOp::verify() {
  if (shapeOf(getOperand()) != shapeOf(getResult()))
    return emitOpError("operand and result differ in shape");
  return success();
}
