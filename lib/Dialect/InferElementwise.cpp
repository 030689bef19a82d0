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

/// What a function of such operands wants when it does not get it.
static StringRef findWanted(FunctionOperands operands, Type element) {
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  switch (operands) {
  case FunctionOperands::Floats:
    return isFloat ? "" : "floating point";
  case FunctionOperands::Numbers:
    return isBool ? "numbers" : "";
  case FunctionOperands::Integers:
    return isFloat ? "integers" : "";
  case FunctionOperands::Bools:
    return isBool ? "" : "i1";
  case FunctionOperands::Any:
    return "";
  }
  llvm_unreachable("operands of a function");
}

AX_INFER(UnaryOp) {
  Type element = elementOf(op.getOperand());
  const UnaryFacts &facts = factsOf(op.getKind());
  if (StringRef wanted = findWanted(facts.operands, element); !wanted.empty())
    return emitOptionalError(location, stringifyUnaryKind(op.getKind()),
                             " needs ", wanted, ", got ", element);
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
  switch (op.getKind()) {
  case BinaryKind::logical_and:
  case BinaryKind::logical_or:
  case BinaryKind::logical_xor:
    if (!element.isInteger(1))
      return emitOptionalError(location, stringifyBinaryKind(op.getKind()),
                               " needs i1, got ", element);
    break;
  case BinaryKind::bit_and:
  case BinaryKind::bit_or:
  case BinaryKind::bit_xor:
  case BinaryKind::shl:
  case BinaryKind::shr:
    if (!isa<IntegerType>(element))
      return emitOptionalError(location, stringifyBinaryKind(op.getKind()),
                               " needs integers, got ", element);
    break;
  default:
    break;
  }
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
